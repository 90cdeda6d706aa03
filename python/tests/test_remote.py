"""Over tcp no memory is shared: large arrays travel in messages, or in parts."""

import asyncio
import socket
from typing import Iterator

import numpy as np
import pytest

import gpud
from daemon import Daemon


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    daemon = Daemon("sim", "--listen", f"tcp://127.0.0.1:{port}")
    yield f"tcp://127.0.0.1:{port}"
    daemon.stop()


@pytest.mark.parametrize("n", [10, 100_000, 6_000_000])  # the last does not fit a message
def test_arrays_of_every_size(url: str, n: int) -> None:
    with gpud.connect(url) as g:
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(g.call("scale", 2.0, x), 2 * x)
        out = np.zeros_like(x)
        assert g.call("scale", 3.0, x, out=out) is out
        np.testing.assert_array_equal(out, 3 * x)
        np.testing.assert_array_equal(g.array(x).get(), x)
        with g.program() as p:
            p.output(p.call("scale", 2.0, p.input(10, np.float32)))
        assert p(x[:10])[1] == 2


def test_shared_arrays_are_usual_ones(url: str) -> None:
    with gpud.connect(url) as g:
        x = g.shared_empty(100_000)
        x[:] = 1
        assert (g.call("scale", 2.0, x, out=x) is x) and (x == 2).all()
        with pytest.raises(gpud.LimitError, match="use a buffer"):
            g.submit("scale", 2.0, np.zeros(6_000_000, np.float32))


def test_asyncio(url: str) -> None:
    async def body() -> None:
        async with gpud.aconnect(url) as g:
            x = np.ones(6_000_000, np.float32)
            results = await asyncio.gather(g.call("scale", 2.0, x), g.call("scale", 3.0, x[:10]))
            assert [float(r[-1]) for r in results] == [2, 3]

    asyncio.run(body())
