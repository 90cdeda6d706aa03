"""asyncio: one thread, many jobs."""

import asyncio
import signal
import threading
from typing import Any, Callable, Coroutine

import numpy as np
import pytest

import gpud
from daemon import Daemon
from gpud import aio
from gpud._lib import ffi
from test_jobs import Interrupted
from test_modules import HALVE


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 60), debug=True)  # debug: the loop refuses calls from other threads


@pytest.fixture(params=["opencl", "sim"])
def url(request: Any) -> str:
    one: Daemon = request.getfixturevalue(request.param)
    return one.url


def test_many_calls_at_once(url: str) -> None:
    async def body() -> None:
        async with gpud.aconnect(url) as g:
            threads = threading.active_count()
            x = np.float32([1, 2])
            # more than a session may have in flight: the rest is sent again
            results = await asyncio.gather(*(g.call("scale", float(i), x) for i in range(400)))
            assert [r.tolist() for r in results] == [[i, 2 * i] for i in range(400)]
            assert threading.active_count() == threads

    run(body)


def test_everything_else(opencl: Daemon) -> None:
    async def body() -> None:
        g = await gpud.aconnect(opencl.url, name="asyncio")
        module = await g.compile(source=HALVE, lang="opencl")
        b = await g.array(np.float32([1, 2]))
        assert (await g.get(await g.call(module["halve"], b, out=g.sync.empty(2), grid=2))).tolist() == [0.5, 1]
        assert (await g.devices())[0].backend == "opencl"
        assert any(row["name"] == "axpy" for row in await g.query("kernels"))
        with g.sync.program() as p:
            p.output(p.call("scale", 2.0, p.input(2, np.float32)))
        assert (await g.call(p, np.float32([1, 2]))).tolist() == [2, 4]
        large = np.ones(200_000, np.float32)
        for result in await asyncio.gather(*(g.call("scale", float(i), large) for i in range(4))):
            assert (result == result[0]).all()
        with pytest.raises(gpud.ArgShapeError, match="argument y"):
            await g.call("axpy", 1.0, large, large[1:])
        await g.close()
        with pytest.raises(gpud.ClosedError):
            await g.call("scale", 2.0, large)

    run(body)


def test_threads_beside_the_loop(sim: Daemon) -> None:
    """A wait in another thread also finds the ends of the loop's jobs, and wakes the loop."""

    async def body() -> None:
        async with gpud.aconnect(sim.url) as g:
            x = np.ones(4, np.float32)

            def busy() -> float:
                return sum(float(g.sync.call("scale", 2.0, x)[0]) for _ in range(100))

            loop = asyncio.get_running_loop()
            beside = [loop.run_in_executor(None, busy) for _ in range(2)]
            for _ in range(20):
                results = await asyncio.gather(*(g.call("scale", float(i), x) for i in range(10)))
                assert [r[0] for r in results] == list(range(10))
            assert await asyncio.gather(*beside) == [200, 200]

    run(body)


def test_the_end_of_an_interrupted_call_wakes_no_other(sim: Daemon, monkeypatch: Any) -> None:
    place = aio._Awaited.__new__(aio._Awaited)  # where the objects of both calls lie, one after the other
    interrupted = Interrupted(gpud._args.lib, "gpud_launch")

    def awaited(loop: asyncio.AbstractEventLoop) -> aio._Awaited:
        place.__init__(loop)  # type: ignore[misc]
        return place

    async def body() -> None:
        async with gpud.aconnect(sim.url) as g:
            x = np.float32([1, 2])
            await g.call("scale", 1.0, x)  # the kernel is known
            monkeypatch.setattr(aio, "_Awaited", awaited)
            sim.signal(signal.SIGSTOP)
            with monkeypatch.context() as patched:
                patched.setattr(gpud._args, "lib", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    await g.call("scale", 2.0, x)
            task = asyncio.create_task(g.call("scale", 3.0, x))
            await asyncio.sleep(0)
            options = interrupted.calls[0][-2]
            aio._done(ffi.NULL, 0, options.user)  # as libgpud does when the interrupted job has ended
            assert not place.future.done()
            sim.signal(signal.SIGCONT)
            assert (await task).tolist() == [3, 6]

    try:
        run(body)
    finally:
        sim.signal(signal.SIGCONT)


def test_cancelled_and_closed(monkeypatch: Any) -> None:
    one = Daemon("sim")
    cancelled = threading.Event()
    monkeypatch.setattr(gpud.Job, "cancel", lambda job: cancelled.set())

    async def body() -> None:
        g = await gpud.aconnect(one.url)
        x = np.ones(100_000, np.float32)
        await g.call("scale", 1.0, x)
        one.signal(signal.SIGSTOP)
        task = asyncio.create_task(g.call("scale", 2.0, x))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task, 0.05)
        assert await asyncio.get_running_loop().run_in_executor(None, cancelled.wait, 30)
        one.signal(signal.SIGCONT)
        assert (await g.call("scale", 3.0, x) == 3).all()
        one.signal(signal.SIGSTOP)
        task = asyncio.create_task(g.call("scale", 2.0, x))
        await asyncio.sleep(0)
        await g.close()
        with pytest.raises(gpud.ClosedError):
            await task

    try:
        run(body)
    finally:
        one.stop()
