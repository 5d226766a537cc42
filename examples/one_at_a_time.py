"""Online learning from a stream of triplets, with prequential evaluation.

`learn_one` returns the margin and its standard deviation before the update: a positive margin is a correct prediction.
Every triplet is predicted before the model learns it, so the accuracy needs no validation rows.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

import aromatch as am

ENDS = (100, 500, 1_000, 2_000, 4_000)


def main(seed: int = 0) -> list[dict[str, float]]:
    X, y = load_digits(return_X_y=True)
    X = normalize(X)
    model = am.FactoredAROMA(r=0.1)
    triplets = am.triplets.from_labels(y, ENDS[-1], random_state=seed)
    results = [model.learn_one(X[query], X[preferred], X[other]) for query, preferred, other in triplets]

    table, start = [], 0
    print(f"{'triplets':>15}{'accuracy':>9}{'margin':>9}{'std':>9}{'updates':>9}")
    for end in ENDS:
        chunk = results[start:end]
        row = {
            "accuracy": float(np.mean([result.margin > 0 for result in chunk])),
            "margin": float(np.mean([result.margin for result in chunk])),
            "std": float(np.mean([result.std for result in chunk])),
            "updates": float(np.mean([result.updated for result in chunk])),
        }
        table.append(row)
        print(f"{f'{start + 1:,} to {end:,}':>15}" + "".join(f"{value:9.3f}" for value in row.values()))
        start = end
    print(f"\n{model.n_triplets_seen_:,} triplets, {model.n_updates_:,} updates, {model.n_mistakes_:,} mistakes")
    return table


if __name__ == "__main__":
    main()
