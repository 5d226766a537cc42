"""Classes of the registry, by their capabilities, and models of them with every way to store cells."""

import inspect

from aromatch.learners import LEARNERS, Similarity, TripletLearner

CLASSES = [learner.cls for learner in LEARNERS.values()]
SIMILARITIES = [cls for cls in CLASSES if issubclass(cls, Similarity)]
TRIPLET_LEARNERS = [cls for cls in SIMILARITIES if issubclass(cls, TripletLearner)]
ONLINE = [cls for cls in TRIPLET_LEARNERS if "n_triplets" in cls._get_param_names()]
CLOSED_FORMS = [cls for cls in TRIPLET_LEARNERS if cls not in ONLINE]
WITH_TOUCHED_CELLS = [cls for cls in ONLINE if "cells" in cls._get_param_names()]


def strength_parameter(learner):
    """Return the name of the noise, step size or regularization: a first parameter that is a number, or alpha.

    None if the learner has no such parameter.
    """
    parameters = inspect.signature(learner).parameters
    first = next(iter(parameters), None)
    if first is not None and isinstance(parameters[first].default, float):
        return first
    return "alpha" if "alpha" in parameters else None


def online_models():
    """Return a model of each online learner that starts at W = 0, with dense and with touched cells."""
    dense = [learner(init="zero") for learner in ONLINE]
    return dense + [learner(init="zero", cells="touched") for learner in WITH_TOUCHED_CELLS]
