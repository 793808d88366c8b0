"""A puppet whose bone motion is known for every pose."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def puppet():
    """The module puppet.py beside this file (test folders are no packages)."""
    spec = spec_from_file_location("puppet", Path(__file__).with_name("puppet.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def one_limb_each(puppet):
    """Database of three clips: the left arm moves, the right arm moves, head and spine move."""
    return puppet.database([puppet.clip(limb) for limb in puppet.LIMBS])


@pytest.fixture(scope="session")
def swaying():
    """The module swaying.py beside this file."""
    spec = spec_from_file_location("swaying", Path(__file__).with_name("swaying.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
