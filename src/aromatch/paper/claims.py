"""Tests of the paper's claims.

The thresholds for terms such as "well above" or "robust" were fixed here before any result was known, and each claim
states its rule. Differences between methods are tested on the same splits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .table import Results

ALPHA = 0.05
WELL_ABOVE = 0.02
CLOSE = 0.02
CATCHES_UP = 0.005
ROBUST = 0.05
DECADES = 3

AROMAS = ("d-AROMA", "f-AROMA")
_STARTS = {"zero": "from zero", "identity": "from the identity"}


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper and its test."""

    number: str
    """Number in the checklist, such as `"C8"`."""
    says: str
    """Claim of the paper."""
    found: str
    """Measured values."""
    holds: bool | None
    """Whether the claim holds; None if it cannot be tested."""
    why: str
    """Rule of the verdict."""

    @property
    def verdict(self) -> str:
        """`"holds"`, `"fails"` or `"not testable"`."""
        return {True: "holds", False: "fails", None: "not testable"}[self.holds]


def claims_of(results: Results) -> list[Claim]:
    """Test all claims of the paper about a figure."""
    tests: dict[str, list[Callable[[Results], Claim]]] = {
        "fig3": [_c1, _c2, _c3, _c4, _c5, _c6, _c7],
        "fig4": [_c8, _c9, _c10, _c11, _c12, _c13],
    }
    return [test(results) for test in tests[results.spec.figure]]


# -- images -----------------------------------------------------------------------------------------------------


def _c1(results: Results) -> Claim:
    f, d = _left(results, "f-AROMA"), _left(results, "d-AROMA")
    difference = results.compare("P@10", f, d)
    found = f"P@10: f {results.mean('P@10', **f)}, d {results.mean('P@10', **d)}; f - d {difference}"
    holds = 0 <= difference.difference < CLOSE
    why = f"Holds if f is better by less than {CLOSE}."
    return Claim("C1", "f-AROMA is slightly ahead of d-AROMA, and close to it.", found, holds, why)


def _c2(results: Results) -> Claim:
    others = [line for line in results.spec.panels["left"]["lines"] if line["method"] not in AROMAS]
    found, significant, ahead = [], True, True
    for other in others:
        theirs = _arguments(other)
        both = [results.compare("P@1", _left(results, name), theirs) for name in AROMAS]
        ahead &= all(one.difference > 0 for one in both)
        significant &= all(one.p < ALPHA for one in both)
        found.append(f"{other['label']} {results.mean('P@1', **theirs)} (d {both[0]}, f {both[1]})")
    levels = ", ".join(f"{name} {results.mean('P@1', **_left(results, name))}" for name in AROMAS)
    why = f"Holds if d and f are better than every other method at P@1, each with p < {ALPHA}."
    return Claim(
        "C2",
        "Both are significantly better than all other methods at the head of the ranking.",
        f"P@1: {levels}; against {'; '.join(found)}",
        ahead and significant,
        why,
    )


def _c3(results: Results) -> Claim:
    oasis = results.mean("P@1", **_left(results, "OASIS"))
    best = max((results.mean("P@1", **_left(results, name)) for name in AROMAS), key=lambda mean: mean.mean)
    gain = best.mean / oasis.mean - 1
    found = f"P@1: best AROMA {best}, OASIS {oasis}: {gain:+.0%}; {_with_chosen(results, 'P@1')}"
    why = "Holds if the gain over OASIS is at least 50 %, as in the paper (0.33 against 0.22)."
    return Claim("C3", "At the top ranked image precision rises by 50 %, from 0.22 to 0.33.", found, gain >= 0.5, why)


def _c4(results: Results) -> Claim:
    found, holds = [], True
    early, late = results.spec.checkpoints[-2:]
    for name in AROMAS:
        settings = _middle(results, name)
        before, after = (results.mean("P@10", **settings, at=at) for at in (early, late))
        holds &= abs(after.mean - before.mean) < CATCHES_UP
        found.append(f"{name} {before} at {early:,} and {after} at {late:,}")
    why = f"Holds if P@10 changes by less than {CATCHES_UP} between the last two checkpoints."
    return Claim("C4", "Converged after 200K to 500K iterations.", "; ".join(found), holds, why)


def _c5(results: Results) -> Claim:
    checkpoints, d, f = _both_curves(results)
    early = [n for n in checkpoints if n <= checkpoints[-1] // 50]
    ahead = [n for n, ours, theirs in zip(checkpoints, d, f, strict=True) if ours > theirs and n in early]
    found = _list_of_curves(checkpoints, d, f)
    why = f"Holds if d is better at most checkpoints up to {early[-1]:,}; it is at {len(ahead)} of {len(early)}."
    return Claim("C5", "In the beginning d-AROMA is slightly better.", found, 2 * len(ahead) > len(early), why)


def _c6(results: Results) -> Claim:
    checkpoints, d, f = _both_curves(results)
    need_d, need_f = (triplets_needed(checkpoints, curve, 0.98 * curve[-1]) for curve in (d, f))
    found = f"98 % of the final P@10 is reached by d after {_count(need_d)} and by f after {_count(need_f)} triplets"
    why = "Holds if f needs fewer triplets than d for 98 % of its final precision."
    return Claim("C6", "Later f-AROMA converges faster.", found, need_f < need_d, why)


def _c7(results: Results) -> Claim:
    found, holds = [], True
    for name in AROMAS:
        tried, levels = _levels_by_r(results, name)
        change, low, high = _flattest(tried, levels)
        holds &= change < ROBUST
        listed = ", ".join(f"{r:g}: {level:.3f}" for r, level in zip(tried, levels, strict=True))
        found.append(f"{name} ({listed}) changes by {change:.1%} from r = {low:g} to {high:g}")
    why = f"Holds if P@10 of both changes by less than {ROBUST:.0%} over some {DECADES} decades of r."
    return Claim(
        "C7", "Less than 5 % change in precision across three orders of magnitude of r.", "; ".join(found), holds, why
    )


# -- texts ------------------------------------------------------------------------------------------------------


def _c8(results: Results) -> Claim:
    found, holds = [], True
    for other in ("OASIS", "ITML"):
        theirs = _left(results, other)
        for name in AROMAS:
            difference = results.compare("P@10", _left(results, name), theirs)
            holds &= difference.difference >= WELL_ABOVE and difference.p < ALPHA
            found.append(f"{name} - {other} {difference}")
    levels = ", ".join(f"{name} {results.mean('P@10', **_left(results, name))}" for name in (*AROMAS, "OASIS", "ITML"))
    why = f"Holds if all four differences are at least {WELL_ABOVE} with p < {ALPHA}."
    return Claim(
        "C8",
        "Both AROMA methods outperform ITML and OASIS by large.",
        f"P@10: {levels}; {'; '.join(found)}; {_with_chosen(results, 'P@10')}",
        holds,
        why,
    )


def _c9(results: Results) -> Claim:
    tried = _tried(results, "OASIS", "C")
    means = [results.mean("P@10", "OASIS", init="identity", C=C) for C in tried]
    levels = [mean.mean for mean in means]
    change = 1 - min(levels) / max(levels)
    within = [C for C, level in zip(tried, levels, strict=True) if level > (1 - ROBUST) * max(levels)]
    found = "P@10 by C: " + ", ".join(f"{C:g}: {mean}" for C, mean in zip(tried, means, strict=True))
    why = (
        f"Holds if P@10 changes by less than {ROBUST:.0%} over all C tried; it changes by {change:.1%}, and stays "
        f"within {ROBUST:.0%} of the best from C = {min(within):g} to {max(within):g}."
    )
    return Claim("C9", "OASIS is robust to the choice of C.", found, change < ROBUST, why)


def _c10(results: Results) -> Claim:
    found = []
    counts = {}
    for init, start in _STARTS.items():
        checkpoints, d, f = _both_curves(results, init)
        counts[init] = sum(ours > theirs for ours, theirs in zip(f, d, strict=True))
        found.append(f"{start}: {_list_of_curves(checkpoints, d, f)}")
    n = len(checkpoints)
    why = (
        f"Holds if f is better at most checkpoints, from zero as in the paper: at {counts['zero']} of {n} "
        f"(from the identity at {counts['identity']})."
    )
    return Claim(
        "C10", "f-AROMA is ahead of d-AROMA for most of training.", "; ".join(found), 2 * counts["zero"] > n, why
    )


def _c11(results: Results) -> Claim:
    last = results.spec.checkpoints[-1]
    d, f = ({**_middle(results, name), "at": last} for name in AROMAS)
    difference = results.compare("P@10", d, f)
    found = f"P@10 at {last:,}: d {results.mean('P@10', **d)}, f {results.mean('P@10', **f)}; d - f {difference}"
    why = f"Holds if d is at most {CATCHES_UP} worse than f after all triplets."
    return Claim(
        "C11", "d-AROMA reaches the same level after 500K iterations.", found, difference.difference >= -CATCHES_UP, why
    )


def _c12(results: Results) -> Claim:
    found, medians = [], []
    for measure in ("P@10", "mAP"):
        for name in AROMAS:
            factors = factors_of_triplets(results, measure, name, "zero", "identity")
            at, (last, reached) = list(factors.items())[-1]
            medians.append(float(np.median([factor for factor, _ in factors.values()])))
            found.append(f"{measure}, {name}: {medians[-1]:.1f} ({'' if reached else '> '}{last:.1f} at {at:,})")
    why = (
        "Holds if OASIS (C = 0.1, from the identity) needs at least ten times the triplets of AROMA (r = 0.01, from "
        "zero) at the median of the checkpoints, for both measures and both methods. Other initializations: see the "
        "table above."
    )
    says = "OASIS takes ten times more steps to get to the same precision, and to the same mAP."
    return Claim("C12", says, "; ".join(found), all(factor >= 10 for factor in medians), why)


def _c13(results: Results) -> Claim:
    at = results.spec.panels["right"]["at"]
    oasis = results.mean("P@10", "OASIS", init="identity", C=0.1, at=at)
    found, wide = [f"OASIS {oasis}"], []
    for name in AROMAS:
        tried, levels = _levels_by_r(results, name)
        above = [r for r, level in zip(tried, levels, strict=True) if level > oasis.mean]
        wide.append(above)
        found.append(f"{name} " + ", ".join(f"r = {r:g}: {level:.3f}" for r, level in zip(tried, levels, strict=True)))
    holds = all(above and max(above) >= 10**DECADES * min(above) for above in wide)
    why = f"Holds if both are better than OASIS, at {at:,} triplets, over at least {DECADES} decades of r."
    return Claim("C13", "The gain is preserved across a large range of r.", "; ".join(found), holds, why)


# -- shared -----------------------------------------------------------------------------------------------------


def triplets_needed(checkpoints: list[int], curve: Any, level: float) -> float:
    """Return the number of triplets at which a curve first reaches a level, by log-linear interpolation.

    >>> round(triplets_needed([100, 1000, 10_000], [0.2, 0.4, 0.6], 0.5))
    3162
    >>> triplets_needed([100, 1000], [0.2, 0.4], 0.5)
    inf
    """
    for index, value in enumerate(curve):
        if value >= level:
            if index == 0 or value == curve[index - 1]:
                return float(checkpoints[index])
            share = (level - curve[index - 1]) / (value - curve[index - 1])
            low, high = np.log(checkpoints[index - 1]), np.log(checkpoints[index])
            return float(np.exp(low + share * (high - low)))
    return float("inf")


def factors_of_triplets(
    results: Results, measure: str, method: str, init: str, oasis_init: str
) -> dict[int, tuple[float, bool]]:
    """Return the ratio of triplets that OASIS needs for the quality of a method, and whether OASIS reaches it.

    If OASIS does not reach it, the ratio is a lower bound. Checkpoints without a tenfold number of triplets are left
    out.
    """
    at, levels = _mean_curve(results, measure, {**_middle(results, method), "init": init})
    oasis_at, oasis_levels = _mean_curve(results, measure, {**_middle(results, "OASIS"), "init": oasis_init})
    factors = {}
    for n, level in zip(at, levels, strict=True):
        if 10 * n <= oasis_at[-1]:
            needed = triplets_needed(oasis_at, oasis_levels, level)
            reached = bool(np.isfinite(needed))
            factors[n] = (needed if reached else oasis_at[-1]) / n, reached
    return factors


def _mean_curve(results: Results, measure: str, arguments: dict[str, Any]) -> tuple[list[int], list[float]]:
    arguments = dict(arguments)
    method = arguments.pop("method")
    curve = results.curve(measure, method, **arguments)
    return results.checkpoints(method, **arguments), curve.mean(axis=0).tolist()


def _arguments(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "label"}


def _line_of(results: Results, panel: str, method: str) -> dict[str, Any]:
    """Return the first line of a method in a panel, which has the settings of the paper."""
    return next(_arguments(line) for line in results.spec.panels[panel]["lines"] if line["method"] == method)


def _left(results: Results, method: str) -> dict[str, Any]:
    return _line_of(results, "left", method)


def _middle(results: Results, method: str) -> dict[str, Any]:
    return _line_of(results, "middle", method)


def _both_curves(results: Results, init: str = "zero") -> tuple[list[int], list[float], list[float]]:
    curves = [_mean_curve(results, "P@10", {**_middle(results, name), "init": init}) for name in AROMAS]
    return curves[0][0], curves[0][1], curves[1][1]


def _tried(results: Results, method: str, parameter: str) -> list[float]:
    cells = [run["cell"] for run in results.raw["cells"] if run["cell"]["part"] == "test"]
    return sorted({float(cell["settings"][parameter]) for cell in cells if cell["method"] == method})


def _levels_by_r(results: Results, method: str) -> tuple[list[float], list[float]]:
    at = results.spec.panels["right"]["at"]
    tried = _tried(results, method, "r")
    return tried, [results.mean("P@10", method, init="zero", r=r, at=at).mean for r in tried]


def _flattest(tried: list[float], levels: list[float]) -> tuple[float, float, float]:
    """Return the smallest relative change over the decades, and the limits of that range of r."""
    found = []
    for start, low in enumerate(tried):
        for end in range(start, len(tried)):
            if tried[end] >= 0.999 * 10**DECADES * low:
                window = levels[start : end + 1]
                found.append((1 - min(window) / max(window), low, tried[end]))
                break
    return min(found) if found else (float("inf"), tried[0], tried[-1])


def _with_chosen(results: Results, measure: str) -> str:
    """Return the means with r and C chosen on the validation part."""
    methods = [("d-AROMA", "zero", "r"), ("d-AROMA", "identity", "r"), ("f-AROMA", "zero", "r")]
    methods += [("f-AROMA", "identity", "r"), ("OASIS", "identity", "C")]
    means = [
        f"{method} {_STARTS[init]} {results.mean(measure, method, init=init, **{name: 'chosen'})}"
        for method, init, name in methods
    ]
    return "with r and C chosen on a validation part: " + ", ".join(means)


def _list_of_curves(checkpoints: list[int], d: list[float], f: list[float]) -> str:
    listed = ", ".join(f"{n:,}: {a:.3f} / {b:.3f}" for n, a, b in zip(checkpoints, d, f, strict=True))
    return f"P@10 of d / f at {listed}"


def _count(n: float) -> str:
    return f"{n:,.0f}" if np.isfinite(n) else "never"
