"""Test of the paper's conjecture about diagonal and factored covariances (C14) on synthetic data.

The two kinds of data differ by a rotation only: independent features of very different variances, and the same features
mixed, so that they are strongly correlated (`aromatch.datasets`). For each seed, half of the rows are for training, a
fifth of these for validation of r, and the other half for testing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from .._utils.progress import progress_bar
from ..datasets import make_correlated_features, make_independent_features
from ..evaluation.retrieval import evaluate_retrieval
from ..learners import DiagonalAROMA, FactoredAROMA, TripletLearner
from .claims import ALPHA, Claim
from .methods import sample_triplets
from .statistics import compare, mean_over_splits

KINDS = {"independent": make_independent_features, "correlated": make_correlated_features}
LEARNERS: dict[str, type[TripletLearner]] = {"d-AROMA": DiagonalAROMA, "f-AROMA": FactoredAROMA}
TRIED = (0.01, 0.1, 1.0, 10.0)
N_SEEDS, N_TRIPLETS, N_SAMPLES = 10, 20_000, 2_000


def claim_on_covariances(*, quick: bool = False, seed: int = 0, verbose: bool = False) -> Claim:
    """Test claim C14: d-AROMA is better on independent features, f-AROMA on correlated features.

    Parameters
    ----------
    quick : bool, default False
        Use fewer seeds, rows and triplets.
    seed : int, default 0
        The first of the seeds.
    verbose : bool, default False
        Show a progress bar if standard error is a terminal.

    Returns
    -------
    Claim
        The measured values and the verdict.
    """
    n_seeds, n_triplets, n_samples = (3, 2_000, 400) if quick else (N_SEEDS, N_TRIPLETS, N_SAMPLES)
    found: dict[tuple[str, str], list[float]] = {}
    with progress_bar("C14", n_seeds * len(KINDS), enabled=verbose) as advance, threadpool_limits(1):
        for number in range(seed, seed + n_seeds):
            for kind, make in KINDS.items():
                X, y = make(n_samples, random_state=number)
                for name, learner in LEARNERS.items():
                    precision = _precision(learner, X, y, n_triplets, number)
                    found.setdefault((kind, name), []).append(precision)
                advance(1)
    # Each seed samples new data, so that the test needs no correction for overlap.
    ahead = {kind: compare(found[kind, "d-AROMA"], found[kind, "f-AROMA"], 0.0) for kind in KINDS}
    listed = "; ".join(
        f"{kind}: d {mean_over_splits(found[kind, 'd-AROMA'])}, f {mean_over_splits(found[kind, 'f-AROMA'])}, "
        f"d - f {ahead[kind]}"
        for kind in KINDS
    )
    d_wins = ahead["independent"].difference > 0 and ahead["independent"].p < ALPHA
    f_wins = ahead["correlated"].difference < 0 and ahead["correlated"].p < ALPHA
    why = (
        f"Holds if d is better on independent features ({'it is' if d_wins else 'it is not'}) and f on correlated ones "
        f"({'it is' if f_wins else 'it is not'}), each with p < {ALPHA}."
    )
    says = "d-AROMA is better if the variance of single features dominates, f-AROMA if features are correlated."
    return Claim("C14", says, f"P@10 over {n_seeds} seeds, {n_triplets:,} triplets; {listed}", d_wins and f_wins, why)


def _precision(learner: type[TripletLearner], X: Any, y: Any, n_triplets: int, seed: int) -> float:
    """Return the precision at 10 on the test half, after training on the other half with a validated r."""
    X_learn, X_test, y_learn, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    parts = train_test_split(X_learn, y_learn, test_size=0.2, stratify=y_learn, random_state=seed)
    X_fitted, X_held_out, y_fitted, y_held_out = parts

    def precision(r: float, X_fit: Any, y_fit: Any, X_eval: Any, y_eval: Any) -> float:
        triplets = sample_triplets(y_fit, n_triplets, seed, 0)
        model = learner(r=r).fit_triplets(triplets, X_fit)
        return float(evaluate_retrieval(model, X_eval, y_eval, ks=(10,)).precision[10])

    chosen = TRIED[int(np.argmax([precision(r, X_fitted, y_fitted, X_held_out, y_held_out) for r in TRIED]))]
    return precision(chosen, X_learn, y_learn, X_test, y_test)
