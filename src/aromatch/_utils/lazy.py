"""Names of a package that are imported on first use, which keeps the import of the package fast."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package : str
        The `__name__` of the package.
    modules : mapping of str to str
        The dotted module that defines each name; a module with the name itself is returned as a module.

    Examples
    --------
    >>> get, names = lazy_names("aromatch", {"triplets": "aromatch.triplets", "load": "aromatch.io.loading"})
    >>> get("load").__module__, "triplets" in names()
    ('aromatch.io.loading', True)
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(modules[name])
        return module if modules[name] == f"{package}.{name}" else getattr(module, name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names
