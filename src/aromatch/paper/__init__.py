"""Reproduction of the paper: TOML specifications in, figures and tested claims out."""
