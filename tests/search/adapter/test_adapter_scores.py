"""The adapter against a slow one that is written as its documentation reads."""

import numpy as np
import pytest

from aromatch.search import Adapter
from taught_adapters import CONTAINERS, clusters, convinced, taught


class SlowAdapter:
    """One judgement and one query at a time, in plain loops."""

    def __init__(self, objects, base):
        self.base = base
        self.P = self.based(objects)
        self.judged = []  # [query, {object: net}]
        self.nearness = []

    def based(self, X):
        X = np.atleast_2d(np.asarray(X, dtype=float))
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        return X / np.where(lengths > 0, lengths, 1) if self.base == "cosine" else X

    def judge(self, query, good, bad):
        query = self.based(query)[0]
        found = [net for q, net in self.judged if np.array_equal(q, query)]
        if not found:
            self.judged.append((query, {}))
            self.nearness.append(self.near(query)[1])
            found = [self.judged[-1][1]]
        for ids, value in ((good, 1), (bad, -1)):
            for one in ids:
                found[0][int(one)] = found[0].get(int(one), 0) + value

    def click(self, query, shown, clicked):
        place = list(shown).index(clicked)
        self.judge(query, [clicked], shown[:place])

    def twin(self, query):
        best = np.argsort(-(self.P @ query), kind="stable")[:11]
        same = [int(i) for i in best if np.allclose(self.P[i], query, atol=1e-12)]
        return same[0] if same else None

    def near(self, query):
        """The ten nearest objects, without the query itself unless it was judged; and how near they are."""
        itself, twins = self.twin(query), [self.twin(q) for q, _ in self.judged[: len(self.nearness)]]
        objects = [(query @ p, 0, o) for o, p in enumerate(self.P) if o != itself or o in twins]
        objects = sorted(objects, key=lambda each: -each[0])[:10]
        return objects, np.mean([score for score, _, _ in objects]) / np.linalg.norm(query)

    def view(self, query):
        """Trust and unit direction of one based query."""
        mean = self.P.mean(axis=0)
        asks, precision, twins = [], [], []
        for q, net in self.judged:
            good = [o for o, value in net.items() if value > 0]
            bad = [o for o, value in net.items() if value < 0]
            precision.append(len(good) / (len(good) + len(bad) + 1))
            ask = np.zeros(self.P.shape[1])
            if good:
                ask += self.P[good].mean(axis=0) - mean
                if bad:
                    ask -= 0.3 * (self.P[bad].mean(axis=0) - mean)
            asks.append(ask)
            twins.append(self.twin(q))
        voters = {}  # of an object: judged queries and how strongly
        only_bad = set()
        for j, (_, net) in enumerate(self.judged):
            has_good = any(value > 0 for value in net.values())
            for o, value in net.items():
                if value > 0:
                    voters.setdefault(o, []).append((j, precision[j]))
                elif value < 0 and has_good:
                    only_bad.add(o)
            if twins[j] is not None and has_good:
                voters.setdefault(twins[j], []).append((j, 2 * precision[j]))
        only_bad -= set(voters)

        def known(o):
            total = sum(weight for _, weight in voters.get(o, []))
            return sum(weight * precision[j] for j, weight in voters.get(o, [])) / total if total else 0.0

        objects, nearness = self.near(query)
        weights = 1 / np.arange(1, len(objects) + 1)
        weights /= weights.sum()
        share = sum(w * (known(o) - (o in only_bad)) for w, (_, _, o) in zip(weights, objects, strict=True))
        trust = max(0.0, (share - 0.2) / 0.8)
        has_good = [any(value > 0 for value in net.values()) for _, net in self.judged]
        those = [value for value, counts in zip(self.nearness, has_good, strict=True) if counts]
        far, middle = np.quantile(those, 0.05), np.median(those)
        trust *= np.clip((nearness - (2 * far - middle)) / (middle - far), 0, 1)
        same = [j for j, (q, _) in enumerate(self.judged) if np.array_equal(q, query) and has_good[j]]
        if same:
            trust = max(trust, 0.8)
        length = np.linalg.norm(mean)
        everyone = list(objects)
        for j, (q, _) in enumerate(self.judged):
            if twins[j] is None:
                scale = 1.0 if self.base == "cosine" else length / np.linalg.norm(q)
                everyone.append((scale * (query @ q), 1, j))
        everyone = sorted(everyone, key=lambda each: -each[0])[:10]
        weights = 1 / np.arange(1, len(everyone) + 1)
        direction = np.zeros(self.P.shape[1])
        for w, (_, is_query, number) in zip(weights, everyone, strict=True):
            if is_query:
                direction += w * precision[number] * asks[number]
            elif number in voters:
                total = sum(weight for _, weight in voters[number])
                for j, weight in voters[number]:
                    direction += w * known(number) * weight / total * asks[j]
        if same:  # as much as all others together
            direction += np.sum(weights) * asks[same[0]]
        norm = np.linalg.norm(direction)
        return trust, direction / norm if norm else direction

    def similarity(self, Q, P, blend):
        Q, P = self.based(Q), self.based(P)
        rows = []
        for q in Q:
            trust, direction = self.view(q)
            mean = self.P.mean(axis=0)
            apart = q - (q @ mean) * mean / (mean @ mean)  # what tells objects apart
            rows.append(P @ (q + 0.5 * blend * trust * np.linalg.norm(apart) * direction))
        return np.array(rows)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("base", ["cosine", "dot"])
@pytest.mark.parametrize("seed", [0, 1])
def test_scores_are_those_of_the_slow_adapter(container, base, seed):
    X, y = clusters(seed=seed, spread=0.9)
    X[np.abs(X) < 0.2] = 0
    adapter, slow = Adapter(container(X), metric=base, random_state=0), SlowAdapter(X, base)
    rows = np.random.default_rng(seed).permutation(len(X))[:20]
    for kind, query, *rest in taught(adapter, X, y, [*rows, *rows[:3]], seed):
        getattr(slow, kind)(query, *rest)
    Q = np.concatenate([X[:15], clusters(seed=seed, spread=1.2)[0] + 0.1])
    blend = convinced(adapter).correction_weight_
    expected = slow.similarity(Q, X, blend)
    np.testing.assert_allclose(adapter.similarity(container(Q), container(X)), expected, atol=1e-10)
    np.testing.assert_allclose(adapter.transform(Q) @ slow.based(X).T, expected, atol=1e-10)
    trust = [blend * slow.view(q)[0] for q in slow.based(Q)]
    np.testing.assert_allclose(adapter.trust(Q), trust, atol=1e-12)
    assert 0.2 < np.mean(np.array(trust) > 0) < 1
    found = adapter.search(container(Q), 5)
    np.testing.assert_allclose(found.scores, np.sort(expected, axis=1)[:, :-6:-1], atol=1e-10)
    np.testing.assert_allclose(np.take_along_axis(expected, found.ids, axis=1), found.scores, atol=1e-10)
