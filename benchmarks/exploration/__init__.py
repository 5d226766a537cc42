"""Exploration in a stream of searches with clicks."""
