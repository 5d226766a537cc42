"""Several models that learned apart, made into one."""

from collections.abc import Sequence

from sklearn.utils.validation import check_is_fitted

from .moment import MomentAROMA


def merge(models: Sequence[MomentAROMA]) -> MomentAROMA:
    """Give one model that knows what each of these has learned, as if it had seen all their triplets itself.

    Parameters
    ----------
    models : sequence of MomentAROMA
        At least one, all with the same `lam` and features. Each must have learned from other judgements: what two
        of them have seen counts twice. They stay as they are.

    Returns
    -------
    MomentAROMA
        The merged model, the same up to rounding as one that learned everything. With `denoise` it is not: what only
        all judgements together show, none of the models has seen.

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
            raise TypeError(f"model {number} is a {type(model).__name__}, but only MomentAROMA can be merged exactly")
        check_is_fitted(model, msg=f"model {number} has learned nothing yet, expected models that are fitted")
        if (model.lam, model.r, model.denoise) != (first.lam, first.r, first.denoise):
            raise ValueError(f"model {number} is {model}, but model 0 is {first}: their parameters must be the same")
        model._check_params()
        widths = model.n_features_in_, model.n_object_features_in_
        expected = first.n_features_in_, first.n_object_features_in_
        if widths != expected:
            raise ValueError(f"model {number} has {widths} query and object features, but model 0 has {expected}")
        names, known = (list(getattr(one, "feature_names_in_", [])) for one in (model, first))
        if names != known:
            raise ValueError(f"model {number} was learned on other columns than model 0")
        if model.fingerprints_ != first.fingerprints_:
            raise ValueError(f"model {number} is bound to another embedding than model 0")
    return first._merge(models)
