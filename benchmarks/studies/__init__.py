"""Six studies of learning from comparisons."""
