"""Model files written by hand, with any content and the right digest."""

import hashlib
import json


def seal(data):
    """Put the right digest into a model file, if it has a place for one, as anybody could with an editor."""
    marker = b'\\"sha256\\":\\"'
    if marker not in data:
        return data
    at = data.index(marker) + len(marker)
    data = data[:at] + b"0" * 64 + data[at + 64 :]
    return data[:at] + hashlib.sha256(data).hexdigest().encode() + data[at + 64 :]


def forge(content=None, tensors=None, data=b"", text=None):
    """Write a model file from scratch, with any content, and seal it."""
    if text is None:
        text = json.dumps({"format": 1, "sha256": "0" * 64, **(content or {})}, separators=(",", ":"))
    head = json.dumps({"__metadata__": {"aromatch": text}, **(tensors or {})}, separators=(",", ":")).encode()
    return seal(len(head).to_bytes(8, "little") + head + data)
