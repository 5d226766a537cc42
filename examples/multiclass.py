"""Several classes at once: the objects are the classes, and W is a linear classifier learned as one matrix.

With the classes as unit vectors, ``q'Wp`` is the score of class p for the features q, column p of W is its weight
vector, and a triplet says "for this image, its own class is better than that one". The answer is the class with the
highest score. Logistic regression, which sees the same rows and learns a matrix of the same size, stands beside it;
its C is chosen by cross-validation on the training part, AROMA keeps its default settings.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import normalize

import aromatch as am

N_TRIPLETS = 30_000


def main(seed: int = 0) -> dict[str, float]:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(normalize(X), y, test_size=0.35, random_state=seed, stratify=y)
    classes = np.unique(y)
    objects = np.eye(len(classes))
    triplets = am.triplets.from_labels(y, N_TRIPLETS, random_state=seed, y_objects=classes)

    accuracy = {}
    for learner in (am.DiagonalAROMA(), am.FactoredAROMA()):
        learner.fit_triplets(triplets, X, objects)
        answers = classes[learner.similarity(X_test, objects).argmax(axis=1)]
        accuracy[type(learner).__name__] = float(np.mean(answers == y_test))
    rival = GridSearchCV(LogisticRegression(max_iter=3000), {"C": [0.1, 1, 10, 100, 1000]}, cv=5).fit(X, y)
    accuracy["LogisticRegression"] = float(rival.score(X_test, y_test))

    print(
        f"{len(classes)} classes, {len(y):,} images to learn from, {len(y_test):,} held out, {N_TRIPLETS:,} triplets\n"
    )
    print(f"{'':20}accuracy")
    for name, share in accuracy.items():
        print(f"{name:20}{share:8.3f}")
    return accuracy


if __name__ == "__main__":
    main()
