"""Judgements that arrive one by one: each is foreseen first and learned then.

`learn_one` tells what the model thought just before it learned: a margin over zero means that it would have chosen
rightly, and the standard deviation says how unsure of the margin it was. Since every judgement is foreseen before it
is learned, the share that was right needs no held-out part.
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
    stream = am.triplets.from_labels(y, ENDS[-1], random_state=seed)
    told = [model.learn_one(X[query], X[preferred], X[other]) for query, preferred, other in stream]

    table, start = [], 0
    print(f"{'judgements':>15}{'right':>9}{'margin':>9}{'std':>9}{'updates':>9}")
    for end in ENDS:
        part = told[start:end]
        row = {
            "right": float(np.mean([one.margin > 0 for one in part])),
            "margin": float(np.mean([one.margin for one in part])),
            "std": float(np.mean([one.std for one in part])),
            "updates": float(np.mean([one.updated for one in part])),
        }
        table.append(row)
        print(f"{f'{start + 1:,} to {end:,}':>15}" + "".join(f"{value:9.3f}" for value in row.values()))
        start = end
    print(f"\n{model.n_triplets_seen_:,} judgements, {model.n_updates_:,} updates, {model.n_mistakes_:,} mistakes")
    return table


if __name__ == "__main__":
    main()
