"""Classes of the registry, by what they can do."""

from aromatch.learners import LEARNERS, Similarity, TripletLearner

CLASSES = [learner.cls for learner in LEARNERS.values()]
SIMILARITIES = [cls for cls in CLASSES if issubclass(cls, Similarity)]
TRIPLET_LEARNERS = [cls for cls in SIMILARITIES if issubclass(cls, TripletLearner)]
ONLINE = [cls for cls in TRIPLET_LEARNERS if "n_triplets" in cls._get_param_names()]
