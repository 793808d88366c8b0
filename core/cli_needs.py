"""Libraries that commands need beyond numpy, and what to say where one is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

from .atomic_npz import in_short
from .errors import MissingDependencyError

# By the name they are imported by: what pip calls them.
PACKAGES = {
    "scipy": "scipy",
    "torch": "torch",
    "trimesh": "trimesh",
    "gaussforge": "gaussforge",
    "PIL": "pillow",
}


@contextmanager
def needed(libraries: Iterable[str] = ()) -> Iterator[None]:
    """Run a command that needs libraries, which are looked for first: before the long work, not after it.

    Raises
    ------
    MissingDependencyError : one of them, or another of `PACKAGES` that the command comes across, is missing
        or cannot be loaded
    """
    try:
        for library in libraries:
            import_module(library)
        yield
    except ImportError as error:
        library = _library(error)
        if library is None:  # a module of our own: a bug
            raise
        raise MissingDependencyError(_sentence(library, error)) from error


def _library(error: ImportError) -> str | None:
    """Return which of `PACKAGES` is missing, or could not import something; None: none of them."""
    names, place = [error.name or ""], error.__traceback__
    while place is not None:  # compiled modules do not say their names
        names.append(place.tb_frame.f_globals.get("__name__", ""))
        place = place.tb_next
    return next((root for name in names if (root := name.partition(".")[0]) in PACKAGES), None)


def _sentence(library: str, error: ImportError) -> str:
    package = PACKAGES[library]
    if find_spec(library) is None:
        return f"This command needs {package}, which is not installed; install it with: pip install {package}"
    return (
        f"This command needs {package}, which cannot be loaded ({in_short(error)}); install it anew with: "
        f"pip install --force-reinstall {package}"
    )
