"""Version numbers of states that change."""

from collections.abc import Callable
from itertools import count

new_version: Callable[[], int] = count(1).__next__
"""Return a number that no other state of this process has."""
