"""Fixtures: daemons of both back ends, and clients of them.

Simulated devices run built-in kernels at once, so most tests use them; PoCL takes a second to compile a kernel.
"""

import asyncio
import os
import pathlib
import sys
from typing import Any, Dict, Iterator

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "tests"))

import gpud  # noqa: E402
from daemon import Daemon  # noqa: E402


@pytest.fixture(scope="session")
def opencl() -> Iterator[Daemon]:
    """OpenCL on the host's processor, which compiles source."""
    one = Daemon("opencl")
    yield one
    one.stop()


@pytest.fixture(scope="session")
def sim() -> Iterator[Daemon]:
    """Simulated devices, which have built-in kernels only."""
    one = Daemon("sim")
    os.environ["GPUD_URL"] = one.url
    yield one
    one.stop()


@pytest.fixture
def g(sim: Daemon) -> Iterator[gpud.Client]:
    with gpud.connect(sim.url) as client:
        yield client


@pytest.fixture
def cl(opencl: Daemon) -> Iterator[gpud.Client]:
    """A client that compiles source."""
    with gpud.connect(opencl.url) as client:
        yield client


@pytest.fixture(params=["opencl", "sim"])
def each(request: Any) -> Iterator[gpud.Client]:
    """A client of each back end in turn."""
    one: Daemon = request.getfixturevalue(request.param)
    with gpud.connect(one.url) as client:
        yield client


@pytest.fixture(autouse=True)
def names(request: Any, doctest_namespace: Dict[str, Any]) -> Iterator[None]:
    """What the examples in docstrings use."""
    if type(request.node).__name__ != "DoctestItem":
        yield
        return
    compiles = "g.compile(" in request.node.dtest.docstring
    one: Daemon = request.getfixturevalue("opencl" if compiles else "sim")
    with gpud.connect(one.url) as client:
        doctest_namespace.update(gpud=gpud, np=np, asyncio=asyncio, g=client)
        yield
