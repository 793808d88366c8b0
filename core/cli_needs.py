"""Libraries that commands need beyond numpy, and what to say where one is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module

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
        package = PACKAGES.get((error.name or "").partition(".")[0])
        if package is None:  # a module of our own: a bug
            raise
        missing = isinstance(error, ModuleNotFoundError)
        raise MissingDependencyError(
            f"This command needs {package}, which is not installed; install it with: pip install {package}"
            if missing
            else f"This command needs {package}, which cannot be loaded ({error}); install it anew with: "
            f"pip install --force-reinstall {package}"
        ) from error
