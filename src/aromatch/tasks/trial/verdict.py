"""Ship or don't ship, and why.

A way to search is shipped when, against the cosine, on queries of later lists:

- it puts more of what was judged in the right order, and a 95 % interval of the difference, paired over queries, is
  above zero;
- neither queries near to judged ones nor queries unlike them get worse by more than chance, in ``right`` or in
  ``first``;
- most of what it would show was judged: at least seven tenths of what it is for the cosine. Beyond that the log of a
  search cannot tell what another search would do.

Of several the one with the largest gain is taken. When nothing is, and a gain worth having may still be in the log, it
is not enough evidence; when the interval leaves no room for that, or something got worse, it is no. Clicks on lists
that the search made itself leave a wide gap between what they surely say and what they may say; when the best gains by
the one reckoning and not by the other, that is not enough evidence either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..evaluating import Measure, compare
from .measures import Figures

SHIP, DONT_SHIP, NOT_ENOUGH = "ship", "don't ship", "not enough evidence"
# Lists before and queries after, which tell good from bad, below which nobody should decide anything.
FEWEST = 30
# Of the share of what was judged, against that of the cosine.
_JUDGED_ENOUGH = 0.7
# A gain of right comparisons that would be worth having.
WORTH_HAVING = 0.01
# From a 95 % interval to one of about 99 %.
_SEVERAL = 1.3
# A tie of `first` may turn by chance in a handful of queries: with fewer, nobody can speak of a part of them.
_FEWEST_IN_PART = 10


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
    """Which queries got worse by more than chance, in words; empty when none did."""
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
    everyone = np.ones(len(near), dtype=bool)
    parts = {"all queries": everyone, "queries near judged ones": near, "queries unlike them": ~near}
    tests = {
        (part, what): compare(what, getattr(base, what)[which], getattr(found, what)[which])
        for part, which in parts.items()
        for what in ("right", "first")
        if which.any()
    }
    worse = list(
        dict.fromkeys(
            part for (part, _), test in tests.items() if parts[part].sum() >= _FEWEST_IN_PART and is_surely_below(test)
        )
    )
    has_passed = np.isfinite(base.passed)
    return Compared(
        name,
        settings,
        tests["all queries", "right"],
        tests["all queries", "first"],
        float(found.judged.mean()),
        compare("passed", base.passed[has_passed], found.passed[has_passed]) if has_passed.any() else None,
        tests.get(("queries near judged ones", "right")),
        tests.get(("queries unlike them", "right")),
        worse[0] if worse else "",
        seconds,
    )


def is_surely_below(test: Measure) -> bool:
    """Tell a difference that is below zero by more than chance, also when several are looked at."""
    assert test.difference is not None
    return test.difference < 0 and test.error is not None and test.difference + _SEVERAL * test.error < 0


def is_above(test: Measure) -> bool:
    """Tell a difference that is above zero by more than chance."""
    assert test.difference is not None
    return test.difference > 0 and test.error is not None and test.difference - test.error > 0


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
    candidates = [one for one in others if one.name in shippable]
    ready = [one for one in candidates if _obstacle(one, base) is None]
    if ready:
        best = max(ready, key=lambda one: one.right.difference or 0.0)
        return Verdict(
            SHIP,
            best.name,
            f"{best.name} gets {_gain(best)} more comparisons of later queries right than the cosine, "
            "and no part of the queries gets worse",
        )
    best = max(candidates, key=lambda one: one.right.difference or 0.0)
    obstacle = _obstacle(best, base)
    if kind == "clicks" and best.passed is not None and is_above(best.passed):
        return Verdict(
            NOT_ENOUGH,
            None,
            f"against all that was not clicked the best, {best.name}, gets {_gain(best)} more comparisons right, and "
            f"against what was passed over {best.passed.difference:+.1%}; the truth lies between, for the lists are "
            "the search's own: have some lists judged, or try the adapter on a part of the traffic",
        )
    if is_above(best.right):
        return Verdict(DONT_SHIP, None, f"{best.name} gets {_gain(best)} more comparisons right, but {obstacle}")
    assert best.right.difference is not None
    if best.right.error is None or best.right.difference + best.right.error >= WORTH_HAVING:
        return Verdict(
            NOT_ENOUGH,
            None,
            f"the best, {best.name}, gets {_gain(best)} more comparisons right, perhaps by chance; more lists tell",
        )
    return Verdict(
        DONT_SHIP, None, f"the best, {best.name}, gets {_gain(best)} more comparisons right: there is no gain"
    )


def _obstacle(one: Compared, base: Compared) -> str | None:
    """Say what speaks against shipping; None when nothing does."""
    if not is_above(one.right):
        return "its gain may be chance"
    if one.is_worse:
        return f"it gets worse for {one.is_worse}"
    if one.judged < _JUDGED_ENOUGH * base.judged:
        return (
            f"only {one.judged:.0%} of what it would show was judged, against {base.judged:.0%} for the cosine: "
            "this log cannot tell; try it on a part of the traffic"
        )
    return None


def _gain(one: Compared) -> str:
    assert one.right.difference is not None
    error = 0.0 if one.right.error is None else one.right.error
    return f"{one.right.difference:.1%} (± {error:.1%})"
