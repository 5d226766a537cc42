"""Results of the package equal those frozen before the redesign, bit for bit on the platform that froze them."""

import json
from pathlib import Path

import numpy as np
import pytest

from frozen.cases import CASES, platform, run

FOLDER = Path(__file__).parent
# Cases whose bits changed intentionally: tolerance and reason.
CHANGED = {}
# Parts of frozen results whose method was removed on purpose.
REMOVED = {"probability_above", "suggested", "lost_share"}
# Cases, or results of a case whose names begin so, that have no equivalent any more, and the reason.
REMOVED_CASES = {
    "project/symmetric": "indefinite embeddings were removed",
    "project/normalize": "normalization is part of TripletEmbedding, whose cases cover it",
    "project/rank-auto": "n_components is not chosen by triplets any more",
    "project-touched/symmetric": "indefinite embeddings were removed",
    "state-project": "indefinite embeddings were removed, and the file of an embedding has other arrays",
    "refine": "refinement is part of TripletEmbedding; best-projection covers it",
    "spectral": "the map before refinement is not public; tests/learners/embedding compares it with ridge regression",
    **{f"low-rank/{name}-{k}.lost": "the report of low_rank was removed"
       for name in ("diagonal", "diagonal-touched", "moment") for k in (3, 5)},
    "cli-labels-auto": "--learner auto validates TripletEmbedding too, and against the baseline of eval",
    "cli-refined": "TripletEmbedding replaced the learner refined",
    **{f"{name}/train.n_updates": "closed forms report no share of updates"
       for name in ("cli-triplets-moment", "cli-qrels")},
    "cli-ask": "ask selects comparisons by suggest_comparisons",
}  # fmt: skip


IS_SAME_PLATFORM = json.loads((FOLDER / "platform.json").read_text(encoding="utf-8")) == platform()


@pytest.fixture(scope="module")
def frozen():
    """Return the frozen arrays of every case by their names."""
    found = {}
    with np.load(FOLDER / "frozen.npz", allow_pickle=False) as file:
        for key in file.files:
            name, _, part = key.partition("/")
            if not any(f"{name}/{part}".startswith(one if "/" in one else f"{one}/") for one in REMOVED_CASES):
                found.setdefault(name, {})[part] = file[key]
    return found


def difference(found, expected, tolerance):
    """Return how an array differs from the frozen one, None if it does not."""
    if found.dtype.kind != expected.dtype.kind or found.shape != expected.shape:
        return f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"
    if tolerance and found.dtype.kind == "f":
        same = np.allclose(found, expected, rtol=tolerance, atol=tolerance / 100, equal_nan=True)
    elif tolerance and not IS_SAME_PLATFORM:
        return None  # ranks and counts can depend on the last bits of scores
    else:
        same = found.dtype == expected.dtype and np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")
    if not same:
        return f"{np.nanmax(np.abs(found - expected)):.1e} at most" if found.dtype.kind == "f" else "unequal"
    return None


# Elsewhere only these kinds of cases are compared, to a tolerance: signs of eigenvectors and ranks depend on last bits.
PORTABLE = (
    "learn", "weighted", "singly", "grown", "labels", "arow", "moment", "pairs", "triplets", "evaluation", "theory",
    "gaussian", "text", "datasets",
)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_results_are_the_frozen_ones(name, frozen):
    assert name in frozen, f"{name} is not in frozen.npz"
    if not IS_SAME_PLATFORM and name.split("-")[0] not in PORTABLE:
        pytest.skip("frozen with other BLAS kernels or library versions, see platform.json")
    found = run(name)
    expected = {key: array for key, array in frozen[name].items() if key.split(".")[-1] not in REMOVED}
    tolerance = CHANGED.get(name, (0.0,))[0] if IS_SAME_PLATFORM else 1e-3
    assert sorted(found) == sorted(expected)
    differences = {key: one for key in expected if (one := difference(found[key], expected[key], tolerance))}
    assert not differences


def test_every_frozen_case_is_run(frozen):
    assert set(frozen) == set(CASES)
