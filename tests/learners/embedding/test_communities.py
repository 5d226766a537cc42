"""Communities, against modularity by brute force and the Louvain method of networkx."""

import networkx
import numpy as np
import pytest
from scipy import sparse

from aromatch.learners.embedding.communities import communities


def planted(n_groups=6, size=30, within=0.3, between=0.01, seed=0):
    """Return a random graph whose links are mostly within groups, and the groups."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_groups), size)
    linked = rng.random((len(y), len(y))) < np.where(np.equal.outer(y, y), within, between)
    A = np.triu(linked, 1) * rng.uniform(0.5, 2, size=linked.shape)
    return A + A.T, y


def modularity(A, labels, resolution):
    strengths = A.sum(axis=1)
    gains = A - resolution * np.outer(strengths, strengths) / A.sum()
    return gains[np.equal.outer(labels, labels)].sum() / A.sum()


def found_in(A, resolution=1.0, seed=0):
    return communities(sparse.csr_array(A), resolution, np.random.default_rng(seed))


def is_same_partition(a, b):
    return np.array_equal(np.equal.outer(a, a), np.equal.outer(b, b))


@pytest.mark.parametrize("seed", range(3))
def test_planted_groups_are_found(seed):
    A, y = planted(seed=seed)
    assert is_same_partition(found_in(A, seed=seed), y)


@pytest.mark.parametrize("resolution", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_modularity_is_that_of_networkx_or_higher_up_to_two_percent(seed, resolution):
    A, _ = planted(within=0.1, between=0.05, seed=seed)
    parts = networkx.community.louvain_communities(networkx.from_numpy_array(A), resolution=resolution, seed=seed)
    labels = np.empty(len(A), dtype=int)
    for number, part in enumerate(parts):
        labels[list(part)] = number
    assert modularity(A, found_in(A, resolution, seed), resolution) > modularity(A, labels, resolution) - 0.02


@pytest.mark.parametrize("resolution", [1.0, 4.0])
def test_no_merge_of_two_communities_increases_modularity(resolution):
    A, _ = planted(within=0.2, between=0.05)
    labels = found_in(A, resolution)
    best = modularity(A, labels, resolution)
    for one in range(labels.max()):
        for other in range(one + 1, labels.max() + 1):
            assert modularity(A, np.where(labels == other, one, labels), resolution) <= best + 1e-12


def test_components_without_links_to_each_other_are_never_one_community():
    A, y = planted(n_groups=3, between=0.0)
    labels = found_in(A, 0.01)
    assert is_same_partition(labels, y)


def test_nodes_without_links_stay_alone_and_a_graph_without_links_has_no_communities():
    assert sorted(found_in(np.zeros((4, 4))).tolist()) == [0, 1, 2, 3]
    assert found_in(np.zeros((0, 0))).tolist() == []
    A = np.zeros((5, 5))
    A[0, 1] = A[1, 0] = 1.0
    labels = found_in(A)
    assert labels[0] == labels[1]
    assert len(set(labels.tolist())) == 4


def test_the_same_seed_gives_the_same_communities():
    A, _ = planted(within=0.1, between=0.05)
    np.testing.assert_array_equal(found_in(A, seed=3), found_in(A, seed=3))
