"""A capture whose cloth moves by a known law."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from gaussianimate.core.evaluate.protocol import fold_splits
from gaussianimate.core.evaluate.subject import training, training_rig
from gaussianimate.core.rigging.build import RigOptions


@pytest.fixture(scope="session")
def swinging():
    """The module swinging.py beside this file (test folders are no packages)."""
    spec = spec_from_file_location("swinging", Path(__file__).with_name("swinging.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def options():
    return RigOptions(max_bones=4, skeleton="given")


@pytest.fixture(scope="session")
def capture(swinging):
    return swinging.capture()


@pytest.fixture(scope="session")
def split(capture):
    return fold_splits(capture, 1)[0]


@pytest.fixture(scope="session")
def rig(capture, split, options):
    return training_rig(capture, split, options).rig


@pytest.fixture(scope="session")
def learned(capture, split, rig):
    return training(capture, split, rig)
