"""Calibration of predicted preference probabilities."""
