"""Objects that threads share: one rule for every estimator, `Index` and `Adapter`.

Any number of threads read an object at the same time. A call that changes it takes effect as a whole or, if it fails or
is interrupted, not at all; readers see the object before or after it. Calls that change an object follow one another.

Every public method states its part by a decorator:

- `reads`: the object does not change during the call.
- `changes`: the call changes the object in place, in microseconds, and excludes all others. It undoes what it did if it
  fails.
- `drafts`: the call changes a copy, which then replaces the object. Others read the object as it was, also during hours
  of training. What a copy shares with the object, such as an array, must be replaced and not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ..exceptions import ConcurrentUseError
from ..kernels.lock import Locked

Method = TypeVar("Method", bound=Callable[..., Any])


class Shared(Locked):
    """Base class of objects that threads share."""

    __slots__ = ()

    _concurrent_use = ConcurrentUseError

    def __getstate__(self) -> dict[str, Any]:
        with self._lock.reading:
            return dict(self.__dict__)


def reads(method: Method) -> Method:
    """Make a method see the object before or after any change, never in between."""

    @wraps(method)
    def reading(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock.reading:
            return method(self, *args, **kwargs)

    return reading  # type: ignore[return-value]


def changes(method: Method) -> Method:
    """Make a method that changes the object in place exclude all others."""

    @wraps(method)
    def changing(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock.changing:
            return method(self, *args, **kwargs)

    return changing  # type: ignore[return-value]


def drafts(method: Method) -> Method:
    """Run a method on a copy of the object, and let the copy take its place when the method has returned.

    Attributes are replaced in one step. The method returns its `self` for the object.
    """

    @wraps(method)
    def drafting(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock.writing:
            draft = self.__class__.__new__(self.__class__)
            draft.__dict__.update(self.__dict__)
            result = method(draft, *args, **kwargs)
            with self._lock.changing:
                self.__dict__ = draft.__dict__
        return self if result is draft else result

    return drafting  # type: ignore[return-value]
