"""Reliability of probabilities against means computed bin by bin."""

import numpy as np
import pytest

from aromatch.evaluation import reliability


def test_bins_have_equal_sizes_and_hold_predicted_and_observed_frequencies():
    rng = np.random.default_rng(0)
    given_ones = rng.random(1_003)
    found = reliability(given_ones, n_bins=4)
    assert found.counts.tolist() == [251, 251, 251, 250]
    confidence = np.maximum(given_ones, 1 - given_ones)
    order = np.argsort(confidence)
    for rows, predicted, observed in zip(np.array_split(order, 4), found.predicted, found.observed, strict=True):
        assert predicted == pytest.approx(confidence[rows].mean())
        assert observed == pytest.approx((given_ones[rows] > 0.5).mean())
    assert found.largest_gap == np.abs(found.predicted - found.observed).max()
    assert reliability([0.5] * 10, n_bins=1).largest_gap == 0
    for bad in ([0.5], [0.5, 2.0], [[0.5, 0.5]], [0.5, np.nan], ["a", "b"], [1j, 1j], [None, None]):
        with pytest.raises(ValueError, match="probabilities"):
            reliability(bad, n_bins=2)
