"""Simulated logs of judgements or clicks on the results of a cosine search; relevance is group membership."""

import json

import numpy as np

from grouped_rows import groups


def write_log(folder, n_lists=240, kind="judgements", wrong=0.0, seed=0, spread=0.6):
    """Write objects.npz, queries.npz and log.jsonl; return the arguments of a trial."""
    n = 600
    X, y, X_test, y_test = groups(n_rows=n, n_groups=12, width=24, spread=spread, decay=6)
    generator = np.random.default_rng(seed)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, X_test)]
    np.savez(folder / "objects.npz", X=X, ids=[f"o{row}" for row in range(n)])
    np.savez(folder / "queries.npz", X=X_test, ids=[f"q{row}" for row in range(n)])
    lines = []
    for time, query in enumerate(generator.permutation(n)[:n_lists].tolist()):
        top = np.argsort(-(unit[0] @ unit[1][query]), kind="stable")[:10]
        is_good = (y[top] == y_test[query]) ^ (generator.random(10) < wrong)
        names = [f"o{row}" for row in top]
        if kind == "judgements":
            feedback = {
                "good": [one for one, good in zip(names, is_good, strict=True) if good],
                "bad": [one for one, good in zip(names, is_good, strict=True) if not good],
            }
        else:
            feedback = {"shown": names, "clicked": names[int(is_good.argmax())] if is_good.any() else None}
        lines.append(json.dumps({"query": f"q{query}", **feedback, "time": time}))
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {
        "data": str(folder / "objects.npz"),
        "log": str(folder / "log.jsonl"),
        "kind": kind,
        "queries": str(folder / "queries.npz"),
        "output": str(folder / "out"),
        "verbose": False,
    }
