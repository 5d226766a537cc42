"""What tests of image features share."""

import pytest

from aromatch.features import patches


@pytest.fixture
def computed(monkeypatch):
    """How many pictures were described, in this process."""
    calls = []

    def counting(*args, **settings):
        calls.append(settings)
        return original(*args, **settings)

    original = patches.describe
    monkeypatch.setattr(patches, "describe", counting)
    return calls
