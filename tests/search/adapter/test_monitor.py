"""What predictions that were made before learning say about the use of what was learned."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aromatch.search.adapter.monitor import Monitor


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 30))
def test_the_watch_is_least_squares(seed, n_lists):
    generator = np.random.default_rng(seed)
    monitor, rows, sizes = Monitor(), [], []
    for number in range(n_lists):
        size = int(generator.integers(2, 9))
        base, learned = generator.normal(size=(2, size))
        good = generator.random(size) < 0.5
        if number % 2 and good.any() and not good.all():
            monitor.add_judged(base, learned, good)
            rows.append(
                np.stack([np.zeros(size), base, learned, good])
                - np.array([[0], [base.mean()], [learned.mean()], [good.mean()]])
            )
            sizes.append(size - 1)
        elif not number % 2:
            monitor.add_clicked(base, learned, good)
            rows.append(np.array([[1.0], base[:1], learned[:1], good[:1]]))
            sizes.append(1)
    roots = np.sqrt(0.999 ** np.arange(len(rows))[::-1])  # older ones count less
    data = np.concatenate([root * row for root, row in zip(roots, rows, strict=True)], axis=1).T
    X, y = data[:, :3], data[:, 3]
    n = sum(root**2 * size for root, size in zip(roots, sizes, strict=True))
    line, *_ = np.linalg.lstsq(X, y, rcond=None)
    found = monitor.diagnostics()
    assert found.n_compared == len(rows)
    if n > 3 and np.linalg.matrix_rank(X) == 3:
        variance = max(((y - X @ line) ** 2).sum() / (n - 3), 0.01)
        error = np.sqrt(variance * np.linalg.inv(X.T @ X)[2, 2])
        np.testing.assert_allclose([found.base_coef, found.correction_coef], line[1:], atol=1e-8)
        np.testing.assert_allclose(found.standard_error, error, rtol=1e-6, atol=1e-8)


def test_the_correction_weight_follows_what_speaks_for_it():
    monitor = Monitor()
    generator = np.random.default_rng(0)

    def watched(n, is_good):
        for _ in range(n):
            base, learned = generator.normal(size=(2, 6))
            monitor.add_judged(base, learned, is_good(base, learned))

    assert monitor.correction_weight == 0
    for _ in range(10):
        monitor.add_list()
    assert monitor.correction_weight == 0.5  # the benefit of the doubt
    for _ in range(990):
        monitor.add_list()
    assert monitor.correction_weight > 0.98
    watched(100, lambda base, learned: base > -9)  # all good: nothing to compare
    monitor.add_clicked(
        np.array([0.5, 0.4]), np.array([0.0, 0.1]), np.array([False, True])
    )  # no prediction for the first
    assert monitor.diagnostics().n_compared == 0
    assert monitor.correction_weight > 0.98
    watched(200, lambda base, learned: base > 0)  # what is learned says nothing: neither in favour nor clearly against
    assert monitor.correction_weight < 0.9
    watched(200, lambda base, learned: base + learned > 0)
    assert monitor.correction_weight > 0.98
    watched(2_000, lambda base, learned: learned > 0)
    watched(1_000, lambda base, learned: learned < 0)  # a good year, and then a bad week
    assert monitor.correction_weight == 0
