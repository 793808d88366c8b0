"""Bodies with known surface and middle, for the tests of the skeleton's geometry."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shapes():
    """The module shapes.py beside this file (test folders are no packages)."""
    spec = spec_from_file_location("shapes", Path(__file__).with_name("shapes.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def coarse(monkeypatch):
    """Surfaces of a quarter of the usual vertices, where what a test proves does not hang on detail."""
    monkeypatch.setattr("gaussianimate.core.rigging.curves.surface.VERTEX_BUDGET", 2000)


@pytest.fixture(scope="session")
def chains():
    """The module chains.py beside this file."""
    spec = spec_from_file_location("chains", Path(__file__).with_name("chains.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
