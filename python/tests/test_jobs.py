"""Submitted jobs, threads, and how calls end."""

import contextlib
import gc
import signal
import socket
import threading
import weakref
from typing import Any, Callable, List

import numpy as np
import pytest

import gpud
from daemon import Daemon
from gpud._lib import ffi
from gpud.client import Request
from gpud.job import submit, submit_options


def test_submit_many(each: gpud.Client) -> None:
    jobs = [each.submit("scale", i, np.float32([1, 2])) for i in range(600)]  # more than may be in flight
    for i, job in enumerate(jobs):
        assert job.result().tolist() == [i, 2 * i]
    assert job.done and job.wait(0) and job.error is None and job.id > 0
    assert job.times.device == 0 and job.times.executed >= 0
    assert repr(job) == "<gpud.Job ended>"


def test_large_arrays_and_forgotten_jobs(g: gpud.Client) -> None:
    x = np.ones(100_000, np.float32)
    out = np.zeros_like(x)
    for i in range(30):
        g.submit("scale", i, x)
    gc.collect()
    job = g.submit("scale", 7, x, out=out)
    x[:] = 0  # was copied
    assert job.result() is out and (out == 7).all()


def test_memory_of_forgotten_jobs_is_used_again(g: gpud.Client, monkeypatch: Any) -> None:
    taken = set()
    scratch = g._session.scratch

    def noted(size: int) -> Any:
        memory = scratch(size)
        taken.add(memory)
        return memory

    monkeypatch.setattr(g._session, "scratch", noted)
    x = np.ones(100_000, np.float32)
    for i in range(30):
        g.submit("scale", i, x)
    g.flush()
    gc.collect()
    g.call("scale", 1, x[:4])
    assert taken == {memory for memories in g._session._kept.values() for memory in memories}


def test_kill(g: gpud.Client) -> None:
    x = np.float32([1, 2])
    job = g.submit("scale", 2.0, x)
    job.wait()
    job.kill()  # it has ended: nothing happens
    assert job.error is None
    b = g.array(x)
    jobs = [g.submit("scale", 2.0, b, out=b) for _ in range(20)]
    with contextlib.suppress(gpud.StateError):  # it runs already, in a worker that tenants share
        jobs[-1].kill()
    for one in jobs:
        one.wait()
    assert all(one.error is None for one in jobs[:-1])
    assert jobs[-1].error is None or isinstance(jobs[-1].error, gpud.CancelledError)


def test_an_interrupted_call_cancels_its_job(g: gpud.Client, monkeypatch: Any) -> None:
    cancelled = threading.Event()

    def interrupted(job: gpud.Job, timeout: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gpud.Job, "result", interrupted)
    monkeypatch.setattr(gpud.Job, "cancel", lambda job: cancelled.set())
    with pytest.raises(KeyboardInterrupt):
        g.call("scale", 1, np.ones(3))
    assert cancelled.wait(30)


class Interrupted:
    """libgpud, with a signal that takes effect when the named function returns."""

    def __init__(self, real: Any, name: str) -> None:
        self._real, self._name = real, name
        self.calls: List[Any] = []

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._real, name)
        if name != self._name:
            return function

        def run(*args: Any) -> None:
            function(*args)
            self.calls.append(args)
            raise KeyboardInterrupt

        return run


@pytest.mark.parametrize("kind", ["launch", "submit"])
def test_an_interrupted_submission_keeps_its_memory(stopped: Daemon, monkeypatch: Any, kind: str) -> None:
    with gpud.connect(stopped.url) as g:
        with g.program() as program:
            program.output(program.call("scale", 2.0, program.input(3, np.float64)))
        g.call("scale", 2.0, np.ones(3))  # the kernel is known

        def interrupted() -> Any:
            x = np.ones(3)
            with monkeypatch.context() as patched:
                module = gpud._args if kind == "launch" else gpud.program
                patched.setattr(module, "lib", Interrupted(module.lib, "gpud_" + kind))
                try:
                    if kind == "launch":
                        g.submit("scale", 2.0, np.ones(3), out=x)
                    else:
                        g.submit(program, x)
                except KeyboardInterrupt:
                    return weakref.ref(x)
            raise AssertionError("no interrupt")

        stopped.signal(signal.SIGSTOP)
        x = interrupted()
        gc.collect()
        assert x() is not None  # libgpud may still write to it
        stopped.signal(signal.SIGCONT)
        while x() is not None:  # and it goes once the job has ended
            g.flush()
            g.call("scale", 2.0, np.ones(3))
            gc.collect()


def test_an_interrupted_submission_cancels_its_job(g: gpud.Client, monkeypatch: Any) -> None:
    cancelled = threading.Event()
    g.call("scale", 1, np.ones(3))
    monkeypatch.setattr(gpud.Job, "cancel", lambda job: cancelled.set())
    monkeypatch.setattr(gpud._args, "lib", Interrupted(gpud._args.lib, "gpud_launch"))
    with pytest.raises(KeyboardInterrupt):
        g.call("scale", 1, np.ones(3))
    assert cancelled.wait(30)


def _ends(g: gpud.Client, run: Callable[[], None]) -> bool:
    """Does `run` end, in a thread of its own?"""
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    if not thread.is_alive():
        return True
    g._session._ended = True  # the test fails; later uses of the client need not hang, too
    return False


def test_objects_go_while_their_client_is_closed(sim: Daemon) -> None:
    """gpud_close runs callbacks, in which the garbage collector may find jobs and programs of the client."""
    g = gpud.connect(sim.url)
    with g.program() as program:
        program.output(program.call("scale", 2.0, program.input(3, np.float64)))
    things: List[Any] = [g.submit("scale", 2.0, np.ones(3)), program]
    del program
    ran: List[int] = []

    @ffi.callback("void(gpud_job *, int, void *)")  # type: ignore[misc]
    def done(job: Any, code: int, user: Any) -> None:
        things.clear()
        ran.append(threading.get_ident())

    options, label = submit_options(None, True)
    options.done = done
    request = Request("scale", (2.0, np.ones(3)), None, None, None, 0, {})
    job = submit(g._session, lambda: g._prepare(request), options)
    assert _ends(g, g.close)
    assert len(ran) == 1 and ran[0] != threading.get_ident()
    assert job.done and label is None


def test_an_interrupted_close_has_closed(sim: Daemon, monkeypatch: Any) -> None:
    g = gpud.connect(sim.url)
    job = g.submit("scale", 2.0, np.ones(3))
    with monkeypatch.context() as patched:
        patched.setattr(gpud._session, "lib", Interrupted(gpud._session.lib, "gpud_close"))
        with pytest.raises(KeyboardInterrupt):
            g.close()
    seen: List[bool] = []
    assert _ends(g, lambda: seen.append(job.done))
    assert seen == [True]


def test_errors_belong_to_the_job(g: gpud.Client) -> None:
    job = g.submit("axpy", 1.0, np.ones(3), np.ones(4))
    assert job.wait()
    assert isinstance(job.error, gpud.ArgShapeError)
    for _ in range(2):
        with pytest.raises(gpud.ArgShapeError):
            job.result()


def test_options(g: gpud.Client) -> None:
    options = gpud.Options(label="python-label", priority=2, job_class="batch", device=0, trace_id=7, time_limit=10)
    job = g.submit("scale", 2, np.ones(3), options=options)
    job.result()
    assert "python-label" in {row["label"] for row in g.query("jobs")}
    assert g.call("scale", 2, np.ones(3), options=gpud.Options(deadline=60)).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="job_class"):
        g.submit("scale", 2, np.ones(3), options=gpud.Options(job_class="urgent"))
    with pytest.raises(gpud.Error):
        g.call("scale", 2, np.ones(3), options=gpud.Options(device=9))


@pytest.fixture
def stopped() -> Any:
    """A daemon of the test's own, which the test stops and continues by signals."""
    one = Daemon("sim")
    yield one
    one.stop()


def test_a_hung_daemon(stopped: Daemon) -> None:
    g = gpud.connect(stopped.url, timeout=20)
    x = np.ones(3, np.float32)
    g.call("scale", 2.0, x)
    hasty = gpud.connect(stopped.url, timeout=0.1)
    buffer = hasty.array(x)
    stopped.signal(signal.SIGSTOP)
    for use in (buffer.get, hasty.ping, lambda: hasty.call("scale", 2.0, x), lambda: hasty.array(x)):
        with pytest.raises(gpud.TimeoutError):
            use()
    with pytest.raises(gpud.TimeoutError, match="it goes on") as caught:
        g.call("scale", 2.0, x, timeout=0.05)
    assert isinstance(caught.value, TimeoutError) and caught.value.retriable
    job = g.submit("scale", 2.0, x)
    assert not job.wait(0) and not job.done and job.error is None
    with pytest.raises(gpud.TimeoutError):
        job.result(0.01)

    failed: List[BaseException] = []

    def wait() -> None:
        try:
            job.result()
        except gpud.Error as error:
            failed.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    g.close()  # the thread that waits gets an error, and nothing crashes
    thread.join()
    assert isinstance(failed[0], gpud.ClosedError)


def test_eight_threads(each: gpud.Client) -> None:
    wrong: List[Any] = []

    def work(number: int) -> None:
        try:
            for i in range(25):
                n = 10 if i % 5 else 20_000
                x = np.full(n, number, np.float32)
                if not (each.call("axpy", float(i), x, x) == number * i + number).all():
                    wrong.append((number, i))
                with each.array(x) as b:
                    if each.call("scale", 2.0, b).get()[-1] != 2 * number:
                        wrong.append((number, i, "buffer"))
                job = each.submit("add", x, x)
                with pytest.raises(gpud.ArgShapeError, match="argument"):
                    each.call("add", x, x[1:])
                if job.result()[0] != 2 * number:
                    wrong.append((number, i, "job"))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_close_beside_eight_threads(sim: Daemon) -> None:
    """Each use of the client by a thread succeeds or ends with ClosedError."""
    for _ in range(10):
        g = gpud.connect(sim.url, name="close-beside-threads")
        begun, wrong = threading.Barrier(9), []
        with g.program() as p:
            p.output(p.call("scale", 2.0, p.input(4, np.float32)))
        b = g.array(np.ones(20_000, np.float32))

        def work(number: int) -> None:
            x = np.ones(20_000 if number % 2 else 4, np.float32)
            uses = (lambda: g.call("scale", 2.0, x), lambda: g.submit("scale", 2.0, x), b.get, lambda: p(x[:4]))
            begun.wait()
            try:
                while True:
                    uses[number // 2]()
            except gpud.ClosedError:
                pass
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        begun.wait()
        g.close()
        for thread in threads:
            thread.join()
        assert not wrong
        with gpud.connect(sim.url) as other:  # the last user has closed it
            assert "close-beside-threads" not in {row["name"] for row in other.query("sessions")}


def test_other_threads_run_meanwhile(tmp_path: Any) -> None:
    """The server is a thread of this process: if a call held the interpreter, it could not answer."""
    order: List[str] = []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s"))
    server.listen()

    def serve() -> None:
        connection, _ = server.accept()
        order.append("accepted")
        connection.close()
        server.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises(gpud.Error):
        gpud.connect(f"ipc://{tmp_path}/s", connect_timeout=0.3)
    order.append("failed")
    thread.join()
    assert order == ["accepted", "failed"]


def test_events(stopped: Daemon) -> None:
    heard: List[gpud.Event] = []
    with gpud.connect(stopped.url, on_event=heard.append) as g, gpud.connect(stopped.url) as operator:
        job = g.submit("scale", 2.0, np.ones(3))
        job.result()
        operator.control("drain")
        with pytest.raises(gpud.DrainingError):
            g.call("scale", 2.0, np.ones(3))
        operator.control("resume")
        while "resumed" not in {event.kind for event in heard}:
            g.ping()
            g.flush()
        assert [event.kind for event in heard] == ["draining", "resumed"]
        with pytest.raises(gpud.NotFoundError):
            operator.control("nothing")
