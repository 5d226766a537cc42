"""Merging of models that were trained separately."""

from collections.abc import Sequence

from sklearn.utils.validation import check_is_fitted

from .moment import MomentAROMA


def merge(models: Sequence[MomentAROMA]) -> MomentAROMA:
    """Return one model with the sums of all, as if it had been trained on all their triplets.

    Parameters
    ----------
    models : sequence of MomentAROMA
        At least one, all with the same parameters and features. Triplets that several models were trained on count
        several times. The models are not changed.

    Returns
    -------
    MomentAROMA
        The merged model, equal up to rounding to one trained on all triplets. With `denoise` it differs: the graph of
        all triplets together is not the sum of the models' graphs.

    Examples
    --------
    >>> import numpy as np
    >>> import aromatch as am
    >>> X = np.random.default_rng(0).normal(size=(6, 3))
    >>> here = am.MomentAROMA().fit_triplets([[0, 1, 2], [3, 4, 5]], X)
    >>> there = am.MomentAROMA().fit_triplets([[2, 0, 4]], X)
    >>> both = am.MomentAROMA().fit_triplets([[0, 1, 2], [3, 4, 5], [2, 0, 4]], X)
    >>> bool(np.allclose(am.merge([here, there]).W_, both.W_))
    True
    """
    if not isinstance(models, Sequence):
        raise TypeError(f"models must be a sequence of models, got {type(models).__name__}")
    if not models:
        raise ValueError("models is empty, expected at least one model to merge")
    first = models[0]
    for number, model in enumerate(models):
        if not isinstance(model, MomentAROMA):
            raise TypeError(f"model {number} is a {type(model).__name__}, expected a MomentAROMA")
        check_is_fitted(model, msg=f"model {number} is not fitted")
        if _settings(model) != _settings(first):
            raise ValueError(f"model {number} is {model}, but model 0 is {first}; their parameters must be equal")
        model._check_params()
        widths = model.n_features_in_, model.n_object_features_in_
        expected = first.n_features_in_, first.n_object_features_in_
        if widths != expected:
            raise ValueError(f"model {number} has {widths} query and object features, but model 0 has {expected}")
        names, expected_names = (list(getattr(one, "feature_names_in_", [])) for one in (model, first))
        if names != expected_names:
            raise ValueError(f"model {number} was trained on other columns than model 0")
        if model.fingerprints_ != first.fingerprints_:
            raise ValueError(f"model {number} has another fingerprint than model 0")
    return first._merge(models)


def _settings(model: MomentAROMA) -> tuple[object, ...]:
    return model.alpha, model.alpha_schedule, model.denoise
