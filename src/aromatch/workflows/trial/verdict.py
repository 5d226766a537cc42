"""Decide whether to ship a method, with a reason.

A method is shipped if, compared with the cosine on queries of later lists,

- it orders at least one comparison in a hundred more correctly, and the p-value of the difference, of a t-test paired
  over queries and multiplied by the number of methods (Bonferroni), is below 0.05;
- neither queries near judged ones nor queries far from them are likely to get worse: no 95 % interval of ``first`` is
  below zero, and none of ``correct`` reaches five comparisons in a hundred below it. Parts with fewer than ten queries
  are not tested, and the reason says so;
- enough of its results were judged: three tenths, and seven tenths of the share of the cosine. Otherwise the log
  has too little feedback about them.

Of several such methods the one with the largest gain is shipped. If there is none, the decision is "not enough
evidence" if a gain is still possible or too few results were judged, and "don't ship" if the interval excludes a gain
or a part of the queries gets worse. Clicks give a lower and an upper estimate of the gain; if only the upper one is a
gain, there is not enough evidence either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..evaluate import Measure, compare
from .measures import QueryMeasures

SHIP, DONT_SHIP, NOT_ENOUGH = "ship", "don't ship", "not enough evidence"
# Minimum number of informative older lists, and of queries of informative later lists.
MIN_LISTS = 30
# Minimum share of results that were judged, absolute and relative to the cosine.
_MIN_JUDGED, _MIN_JUDGED_RATIO = 0.3, 0.7
# Minimum gain of correct comparisons, and the loss that the interval of a part of the queries must exclude.
MIN_GAIN, MAX_LOSS = 0.01, 0.05
_MAX_P = 0.05
_MIN_IN_PART = 10
NEAR, FAR = "queries near judged ones", "queries far from judged ones"


@dataclass(frozen=True, slots=True)
class MethodReport:
    """A method compared with the cosine."""

    name: str
    settings: dict[str, float]
    correct: Measure
    first: Measure
    judged: float
    """Share of its results that were judged."""
    skipped: Measure | None
    """Correct comparisons with bad or skipped objects; None without any."""
    near: Measure | None
    """`correct` for queries near judged ones; None without any."""
    far: Measure | None
    """`correct` for the other queries; None without any."""
    worse_part: str
    """The part of the queries that is likely to get worse; empty if none is."""
    untested_parts: list[str]
    """Parts with too few queries."""
    seconds: float
    """Time of training and validation."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision and its reason."""

    decision: str
    """"ship", "don't ship" or "not enough evidence"."""
    method: str | None
    """The method to ship."""
    reason: str


def compare_method(
    name: str,
    settings: dict[str, float],
    baseline: QueryMeasures,
    found: QueryMeasures,
    near: NDArray[np.bool_],
    seconds: float,
) -> MethodReport:
    """Compare the measures of a method with those of the cosine."""

    def tested(what: str, which: NDArray[np.bool_]) -> Measure | None:
        if not which.any():
            return None
        return compare(what, getattr(baseline, what)[which], getattr(found, what)[which])

    everyone = np.ones(len(near), dtype=np.bool_)
    correct, first = tested("correct", everyone), tested("first", everyone)
    assert correct is not None
    assert first is not None
    of_parts = {NEAR: (near, tested("correct", near)), FAR: (~near, tested("correct", ~near))}
    worse = ["all queries"] if is_below(correct) or is_below(first) else []
    for part, (which, of_part) in of_parts.items():
        first_of_part = tested("first", which)
        if which.sum() >= _MIN_IN_PART and of_part is not None and first_of_part is not None:
            worse += [part] if is_below(of_part, MAX_LOSS) or is_below(first_of_part) else []
    return MethodReport(
        name=name,
        settings=settings,
        correct=correct,
        first=first,
        judged=float(found.judged.mean()),
        skipped=tested("skipped", np.isfinite(baseline.skipped)),
        near=of_parts[NEAR][1],
        far=of_parts[FAR][1],
        worse_part=worse[0] if worse else "",
        untested_parts=[part for part, (which, _) in of_parts.items() if which.sum() < _MIN_IN_PART],
        seconds=seconds,
    )


def is_below(test: Measure, max_loss: float | None = None) -> bool:
    """Return whether a difference is significantly below zero, or with `max_loss` its interval reaches that loss."""
    assert test.difference is not None
    if test.error is None:
        return False
    if max_loss is not None and test.difference - test.error < -max_loss:
        return True
    return test.difference < 0 and test.difference + test.error < 0


def is_above(test: Measure, n_methods: int = 1) -> bool:
    """Return whether a difference is significantly above zero, for the best of several methods."""
    assert test.difference is not None
    return test.difference > 0 and corrected_p(test, n_methods) < _MAX_P


def corrected_p(test: Measure, n_methods: int) -> float:
    """Return the p-value of the best of several methods (Bonferroni); 1 if there was no test."""
    return 1.0 if test.p is None else min(1.0, n_methods * test.p)


def too_little(n_older: int, n_later: int) -> Verdict | None:
    """Return the verdict for too few informative lists; None if there are enough."""
    if n_older >= MIN_LISTS and n_later >= MIN_LISTS:
        return None
    return Verdict(
        NOT_ENOUGH,
        None,
        f"{n_older:,} older lists and {n_later:,} later queries are informative, expected at least {MIN_LISTS} of each",
    )


def decide(results: list[MethodReport], shippable: tuple[str, ...], kind: str) -> Verdict:
    """Decide which method to ship, if any; the first result is the cosine, `kind` is "judgements" or "clicks"."""
    baseline, *others = results
    candidates = sorted(
        (one for one in others if one.name in shippable), key=lambda one: -(one.correct.difference or 0.0)
    )
    n_methods = len(candidates)
    for one in candidates:
        if _gains(one, n_methods) and not one.worse_part and _is_judged(one, baseline):
            untested = f"; too few {' and '.join(one.untested_parts)} to test" if one.untested_parts else ""
            return Verdict(
                SHIP,
                one.name,
                f"{one.name} orders {_more(one)} correctly than the cosine, and no tested part of the queries is "
                f"likely to get worse{untested}",
            )
    best = candidates[0]
    assert best.correct.difference is not None
    gains = _gains(best, n_methods)
    if kind == "clicks" and best.skipped is not None and is_above(best.skipped) and not gains:
        return Verdict(
            NOT_ENOUGH,
            None,
            f"{best.name} orders {_more(best)} with unclicked objects correctly, and {best.skipped.difference:.1%} "
            "more with skipped objects: clicks on the lists of one search bound its gain from both sides only; have "
            "some lists judged, or run an A/B test of the adapter",
        )
    if gains and best.worse_part:
        reason = f"{best.name} orders {_more(best)} correctly, but {best.worse_part} are likely to get worse"
        return Verdict(DONT_SHIP, None, reason)
    if gains:
        return Verdict(
            NOT_ENOUGH,
            None,
            f"{best.name} orders {_more(best)} correctly, but only {best.judged:.0%} of its results were judged, "
            f"compared with {baseline.judged:.0%} for the cosine: run an A/B test",
        )
    if best.correct.error is None or best.correct.difference + best.correct.error >= MIN_GAIN:
        return Verdict(
            NOT_ENOUGH,
            None,
            f"the best method, {best.name}, orders {_more(best)} correctly, {_shortfall(best, n_methods)}: collect "
            "more lists",
        )
    return Verdict(DONT_SHIP, None, f"the best method, {best.name}, orders {_more(best)} correctly: there is no gain")


def _gains(one: MethodReport, n_methods: int) -> bool:
    return is_above(one.correct, n_methods) and (one.correct.difference or 0.0) >= MIN_GAIN


def _shortfall(one: MethodReport, n_methods: int) -> str:
    """Return why a difference is not a gain."""
    if is_above(one.correct, n_methods):
        return f"less than the {MIN_GAIN:.0%} required"
    corrected = f" after correction for {n_methods} methods" if n_methods > 1 else ""
    return f"not significant{corrected} (p = {corrected_p(one.correct, n_methods):.2f})"


def _is_judged(one: MethodReport, baseline: MethodReport) -> bool:
    return one.judged >= max(_MIN_JUDGED, _MIN_JUDGED_RATIO * baseline.judged)


def _more(one: MethodReport) -> str:
    assert one.correct.difference is not None
    error = "" if one.correct.error is None else f" (± {one.correct.error:.1%})"
    return f"{abs(one.correct.difference):.1%}{error} {'fewer' if one.correct.difference < 0 else 'more'} comparisons"
