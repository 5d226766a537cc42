"""Trials on logs simulated from BANKING77, where people judge by intents, and on Cranfield's own judgements."""

import json
import re

import numpy as np
import pytest

from aromatch.workflows.trial import run_trial
from real_data import FOLDER, needs_banking77, needs_cranfield

pytestmark = pytest.mark.slow
N_LISTS = 1_500


def banking77_log(folder, wrong):
    """Write half of the questions as objects, others as queries, and lists by the cosine that people judged."""
    with np.load(FOLDER / "banking77" / "minilm_f16.npz", allow_pickle=False) as arrays:
        is_training = arrays["split"] == "train"
        X, y = arrays["emb"][is_training].astype(np.float64), arrays["category"][is_training]
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    queries, objects = order[:N_LISTS], order[len(order) // 2 :]
    np.savez(folder / "objects.npz", X=X[objects].astype(np.float32), ids=[f"o{row}" for row in objects])
    np.savez(folder / "queries.npz", X=X[queries].astype(np.float32), ids=[f"q{row}" for row in queries])
    with (folder / "log.jsonl").open("w", encoding="utf-8") as file:
        for time, query in enumerate(queries):
            top = objects[np.argsort(-(X[objects] @ X[query]), kind="stable")[:10]]
            is_good = (y[top] == y[query]) ^ (rng.random(10) < wrong)
            good, bad = ([f"o{row}" for row in top[which]] for which in (is_good, ~is_good))
            file.write(json.dumps({"query": f"q{query}", "good": good, "bad": bad, "time": time}) + "\n")
    return {"data": f"{folder}/objects.npz", "queries": f"{folder}/queries.npz"}


def cranfield_log(folder):
    """Write abstracts, and the ten nearest of each query as judged by the collection's own people."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    place = FOLDER / "cranfield"

    def texts(name):
        parts = re.split(r"^\.I ", (place / name).read_text(encoding="utf-8", errors="replace"), flags=re.MULTILINE)[1:]
        return {part.split()[0]: part.partition("\n.W\n")[2].strip() for part in parts}

    objects, queries = texts("cran.all.1400"), list(texts("cran.qry").values())
    judged = [line.split() for line in (place / "cranqrel").read_text().splitlines()]
    relevant = {(int(query), one) for query, one, grade in judged if int(grade) > 0}
    weigher = TfidfVectorizer(stop_words="english")
    P = weigher.fit_transform(objects.values())
    scores = (weigher.transform(queries) @ P.T).toarray()
    ids = list(objects)
    with (folder / "objects.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": one, "text": text}) + "\n" for one, text in objects.items())
    with (folder / "log.jsonl").open("w", encoding="utf-8") as file:
        for row in np.random.default_rng(0).permutation(len(queries)):
            top = [ids[at] for at in np.argsort(-scores[row], kind="stable")[:10]]
            good = [one for one in top if (row + 1, one) in relevant]
            bad = [one for one in top if one not in good]
            file.write(json.dumps({"query": " ".join(queries[row].split()), "good": good, "bad": bad}) + "\n")
    return {"data": f"{folder}/objects.jsonl"}


def decided(folder, arguments):
    log = {"log": f"{folder}/log.jsonl", "kind": "judgements", "output": f"{folder}/out", "verbose": False}
    return run_trial(**arguments, **log).verdict


@needs_banking77
def test_right_judgements_of_banking77_ship_the_adapter(tmp_path):
    verdict = decided(tmp_path, banking77_log(tmp_path, wrong=0.0))
    assert (verdict.decision, verdict.method) == ("ship", "adapter")


@needs_banking77
def test_judgements_of_banking77_at_random_ship_nothing(tmp_path):
    assert decided(tmp_path, banking77_log(tmp_path, wrong=0.5)).decision == "don't ship"


@needs_cranfield
def test_the_queries_of_cranfield_are_not_enough(tmp_path):
    assert decided(tmp_path, cranfield_log(tmp_path)).decision == "not enough evidence"
