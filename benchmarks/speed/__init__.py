"""Speed and memory of the learners and of the search adapter."""
