"""Multiclass classification: the objects are the classes, and W is a linear classifier.

Classes are unit vectors, so ``q'Wp`` is the score of class p for the features q, and column p of W its weight vector.
A triplet states that the class of an image is better than another class; the prediction is the class with the highest
score. The baseline is logistic regression on the same rows, with C selected by cross-validation on the training rows;
AROMA has its default parameters.
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
    for model in (am.DiagonalAROMA(), am.FactoredAROMA()):
        model.fit_triplets(triplets, X, objects)
        predicted = classes[model.similarity(X_test, objects).argmax(axis=1)]
        accuracy[type(model).__name__] = float(np.mean(predicted == y_test))
    baseline = GridSearchCV(LogisticRegression(max_iter=3000), {"C": [0.1, 1, 10, 100, 1000]}, cv=5).fit(X, y)
    accuracy["LogisticRegression"] = float(baseline.score(X_test, y_test))

    print(f"{len(classes)} classes, {len(y):,} training and {len(y_test):,} test images, {N_TRIPLETS:,} triplets\n")
    print(f"{'':20}accuracy")
    for name, value in accuracy.items():
        print(f"{name:20}{value:8.3f}")
    return accuracy


if __name__ == "__main__":
    main()
