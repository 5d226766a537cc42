"""Ship or don't ship, and why.

A way to search is shipped when, against the cosine, on queries of later lists:

- it puts more of what was judged in the right order: one comparison in a hundred at least, and an interval of the
  difference, paired over queries, is above zero. The interval allows for trying several ways (Bonferroni);
- neither queries near to judged ones nor queries unlike them are likely to get worse: no 95 % interval of ``first`` is
  below zero, and none of ``right`` reaches five comparisons in a hundred below it. Of a part with fewer than ten
  queries nobody can tell, and the verdict says so;
- enough of what it would show was judged: three tenths, and seven tenths of what it is for the cosine. Beyond that the
  log of a search cannot tell what another search would do.

Of several the one with the largest gain is taken. When nothing is, and a gain worth having may still be in the log, or
too little of what would be shown was judged, it is not enough evidence; when the interval leaves no room for a gain, or
something gets worse, it is no. Clicks on lists that the search made itself leave a wide gap between what they surely
say and what they may say; when the best gains by the one reckoning and not by the other, that is not enough evidence
either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..evaluate import Measure, compare
from .measures import Figures

SHIP, DONT_SHIP, NOT_ENOUGH = "ship", "don't ship", "not enough evidence"
# Lists before and queries after, which tell good from bad, below which nobody should decide anything.
FEWEST = 30
# Of what would be shown, the share that was judged, and against that of the cosine.
_JUDGED_AT_ALL, _JUDGED_ENOUGH = 0.3, 0.7
# A gain of right comparisons that is worth having, and a loss that a part of the queries must not come near to.
WORTH_HAVING, TOO_MUCH = 0.01, 0.05
# From a 95 % interval to one that holds for the best of five.
_SEVERAL = 1.32
_FEWEST_IN_PART = 10
NEAR, UNLIKE = "queries near to judged ones", "queries unlike them"


@dataclass(frozen=True, slots=True)
class Compared:
    """One way to search against the cosine."""

    name: str
    settings: dict[str, float]
    right: Measure
    first: Measure
    judged: float
    """Share of what it would show that was judged."""
    passed: Measure | None
    """Of comparisons with what was bad or passed over; None without any."""
    near: Measure | None
    """`right` for queries near to judged ones; None without any."""
    unlike: Measure | None
    """`right` for queries unlike them."""
    is_worse: str
    """Which queries may well get worse, in words; empty when none do."""
    too_few: list[str]
    """Parts of the queries that are too small to tell."""
    seconds: float
    """Time it took to learn, with the choice of its settings."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do, and why."""

    decision: str
    """"ship", "don't ship" or "not enough evidence"."""
    method: str | None
    """What to ship."""
    reason: str


def compared(
    name: str, settings: dict[str, float], base: Figures, found: Figures, near: NDArray[np.bool_], seconds: float
) -> Compared:
    """Hold figures of a way to search against those of the cosine."""

    def tested(what: str, which: NDArray[np.bool_]) -> Measure | None:
        before, after = getattr(base, what)[which], getattr(found, what)[which]
        return compare(what, before, after) if which.any() else None

    everyone = np.ones(len(near), dtype=np.bool_)
    right, first = tested("right", everyone), tested("first", everyone)
    assert right is not None
    assert first is not None
    of_parts = {NEAR: (near, tested("right", near)), UNLIKE: (~near, tested("right", ~near))}
    worse = ["all queries"] if is_below(right) or is_below(first) else []
    for part, (which, of_part) in of_parts.items():
        first_of_part = tested("first", which)
        if which.sum() >= _FEWEST_IN_PART and of_part is not None and first_of_part is not None:
            worse += [part] if is_below(of_part, TOO_MUCH) or is_below(first_of_part) else []
    return Compared(
        name=name,
        settings=settings,
        right=right,
        first=first,
        judged=float(found.judged.mean()),
        passed=tested("passed", np.isfinite(base.passed)),
        near=of_parts[NEAR][1],
        unlike=of_parts[UNLIKE][1],
        is_worse=worse[0] if worse else "",
        too_few=[part for part, (which, _) in of_parts.items() if which.sum() < _FEWEST_IN_PART],
        seconds=seconds,
    )


def is_below(test: Measure, most: float | None = None) -> bool:
    """Tell a difference that is below zero by more than chance; with `most`, one that may be as much below it."""
    assert test.difference is not None
    if test.error is None:
        return False
    if most is not None and test.difference - test.error < -most:
        return True
    return test.difference < 0 and test.difference + test.error < 0


def is_above(test: Measure, factor: float = 1.0) -> bool:
    """Tell a difference that is above zero by more than chance."""
    assert test.difference is not None
    return test.difference > 0 and test.error is not None and test.difference - factor * test.error > 0


def too_little(n_before: int, n_after: int) -> Verdict | None:
    """Say so when there are too few lists that tell good from bad; None when there are enough."""
    if n_before >= FEWEST and n_after >= FEWEST:
        return None
    return Verdict(
        NOT_ENOUGH,
        None,
        f"{n_before:,} older lists and {n_after:,} later queries tell good from bad; it takes {FEWEST} of each",
    )


def decide(results: list[Compared], shippable: tuple[str, ...], kind: str) -> Verdict:
    """Decide between ways to search, the cosine first, of which some can be shipped, by judgements or clicks."""
    base, *others = results
    candidates = sorted(
        (one for one in others if one.name in shippable), key=lambda one: -(one.right.difference or 0.0)
    )
    for one in candidates:
        if _gains(one) and not one.is_worse and _is_judged(one, base):
            untold = f"; of {' and '.join(one.too_few)} there are too few to tell" if one.too_few else ""
            return Verdict(
                SHIP,
                one.name,
                f"{one.name} gets {_more(one)} right than the cosine, and no part of the queries that can be told of "
                f"is likely to get worse{untold}",
            )
    best = candidates[0]
    assert best.right.difference is not None
    if kind == "clicks" and best.passed is not None and is_above(best.passed) and not _gains(best):
        return Verdict(
            NOT_ENOUGH,
            None,
            f"against all that was not clicked the best, {best.name}, gets {_more(best)} right, and against what was "
            f"passed over {best.passed.difference:.1%} more; the truth lies between, for the lists are the search's "
            "own: have some lists judged, or try the adapter on a part of the traffic",
        )
    if _gains(best) and best.is_worse:
        return Verdict(DONT_SHIP, None, f"{best.name} gets {_more(best)} right, but {best.is_worse} may well get worse")
    if _gains(best):
        return Verdict(
            NOT_ENOUGH,
            None,
            f"{best.name} gets {_more(best)} right, but only {best.judged:.0%} of what it would show was judged, "
            f"against {base.judged:.0%} for the cosine: this log cannot tell; try it on a part of the traffic",
        )
    if best.right.error is None or best.right.difference + best.right.error >= WORTH_HAVING:
        return Verdict(
            NOT_ENOUGH,
            None,
            f"the best, {best.name}, gets {_more(best)} right, perhaps by chance; more lists tell",
        )
    return Verdict(DONT_SHIP, None, f"the best, {best.name}, gets {_more(best)} right: there is no gain")


def _gains(one: Compared) -> bool:
    return is_above(one.right, _SEVERAL) and (one.right.difference or 0.0) >= WORTH_HAVING


def _is_judged(one: Compared, base: Compared) -> bool:
    return one.judged >= max(_JUDGED_AT_ALL, _JUDGED_ENOUGH * base.judged)


def _more(one: Compared) -> str:
    assert one.right.difference is not None
    error = "" if one.right.error is None else f" (± {one.right.error:.1%})"
    return f"{abs(one.right.difference):.1%}{error} {'fewer' if one.right.difference < 0 else 'more'} comparisons"
