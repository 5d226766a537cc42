"""Ranking quality of similarities learned from triplets, against alternatives tuned alike."""
