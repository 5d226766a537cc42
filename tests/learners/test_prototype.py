"""A learner in pure Python needs the four hooks that `TripletLearner` documents, and no kernel."""

import numpy as np
import pytest
from scipy import sparse

import aromatch as am
from aromatch._utils import checks
from aromatch.learners import TripletLearner
from aromatch.learners.inputs import dense_triplets
from aromatch.learners.online.cells import DenseCells


class HingePerceptron(TripletLearner):
    """OASIS without a limit on the step: every margin below 1 becomes 1 for unit weights."""

    _strength = "sample_weight * step"

    def __init__(self, step=1.0, *, verbose=False):
        self.step = step
        self.verbose = verbose

    def _check_params(self):
        return 1 / checks.check_number(self.step, "step", above=0)

    def _first_state(self, m, n, init):
        return DenseCells(W=np.zeros((m, n)), counts=np.zeros(3, dtype=np.int64))

    def _shapes(self, m, n):
        return {"W": (m, n), "counts": (3,)}

    def _learn(self, block):
        W, counts = self._state["W"], self._state["counts"]
        for i, (q, p) in enumerate(zip(*dense_triplets(block), strict=True)):
            margin, scale = q @ W @ p, (q @ q) * (p @ p)
            weight = 1.0 if block.weights is None else block.weights[i]
            updated = margin < 1 and scale > 0 and weight > 0
            if updated:
                W += self.step * weight * (1 - margin) / scale * np.outer(q, p)
            counts += 1, updated, margin <= 0
            if block.record is not None:
                block.record[i] = margin, 0.0, updated
        return len(block.triplets)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_learner_in_pure_python_learns_as_oasis_with_a_large_C(container):
    rng = np.random.default_rng(0)
    Q, P, triplets = rng.normal(size=(20, 5)), rng.normal(size=(30, 4)), rng.integers(20, size=(200, 3))
    model = HingePerceptron().fit_triplets(triplets, container(Q), container(P))
    expected = am.OASIS(C=1e6, init="zero").fit_triplets(triplets, Q, P)
    np.testing.assert_allclose(model.W_, expected.W_, rtol=1e-9)
    names = ("n_triplets_seen_", "n_updates_", "n_mistakes_")
    assert [getattr(model, name) for name in names] == [getattr(expected, name) for name in names]
    one_by_one = HingePerceptron()
    for i, j, k in triplets:
        update = one_by_one.learn_one(Q[i], P[j], P[k])
    np.testing.assert_array_equal(one_by_one.W_, model.W_)
    assert update.std is None
    assert not hasattr(model, "decay")
    np.testing.assert_array_equal(model.grow(6, 5).W_[:5, :4], one_by_one.W_)
    assert model.project(symmetric=False).transform(np.eye(6)).shape[0] == 6


def test_the_error_of_a_scale_names_the_parameter_of_the_learner():
    with pytest.raises(ValueError, match=r"sample_weight \* step"):
        HingePerceptron(step=1e300).fit_triplets([[0, 1, 2]], np.eye(3))
