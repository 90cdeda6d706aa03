"""fork, multiprocessing, Ctrl-C, and the end of the interpreter."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
from typing import Any, Dict

import numpy as np
import pytest

import gpud
from daemon import Daemon

ROOT = pathlib.Path(__file__).resolve().parent.parent


def python(daemon: Daemon, source: str, **options: Any) -> "subprocess.Popen[str]":
    environment: Dict[str, str] = {**os.environ, "GPUD_URL": daemon.url, "PYTHONPATH": str(ROOT)}
    head = "import gpud, numpy as np, os, signal, sys, threading, time\nx = np.ones(4, np.float32)\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(source)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def output(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and not err, (process.returncode, out, err)
    return out


def test_fork(sim: Daemon) -> None:
    process = python(
        sim,
        """
        g = gpud.connect()
        b = g.array(x)
        job = g.submit("scale", 2.0, x)
        shared = g.shared_empty(4)
        shared[:] = 1
        child = os.fork()
        if child == 0:
            caught = []
            for use in (lambda: g.call("scale", 2.0, x), b.get, g.ping, lambda: g.array(x)):
                try:
                    use()
                except gpud.ForkedError as error:
                    caught.append(error)
            assert len(caught) == 4, caught
            shared[0] = 5
            with gpud.connect() as own:                    # a client of its own
                assert own.call("scale", 3.0, x)[0] == 3
            sys.exit(0)                                    # ends the inherited objects, and not the session
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print(job.result()[0], b.get()[0], g.call("scale", 2.0, x)[0], shared[0])
        """,
    )
    assert output(process) == "2.0 1.0 2.0 5.0\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(sim: Daemon, method: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "work.py").write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys
            import gpud, numpy as np

            def work(i):
                with gpud.connect() as g:
                    return g.call("scale", float(i), np.float32([1, 2])).tolist()

            def fail(i):
                with gpud.connect() as g:
                    g.call("axpy", 1.0, np.ones(2), np.ones(3))

            if __name__ == "__main__":
                with gpud.connect() as g, multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
                    print(pool.map(work, range(3)), g.call("scale", 2.0, np.float32([4]))[0])
                    try:
                        pool.map(fail, [1])
                    except gpud.ArgShapeError as error:    # errors travel between processes
                        print(error.arg)
            """
        )
    )
    environment = {**os.environ, "GPUD_URL": sim.url, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "work.py", method], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.stdout == "[[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]] 8.0\n2\n", done.stderr


def test_exit_with_jobs_in_flight(sim: Daemon) -> None:
    """The interpreter ends while jobs run, threads wait, and objects of every kind are alive."""
    process = python(
        sim,
        """
        g = gpud.connect()
        large = np.ones(100_000, np.float32)
        jobs = [g.submit("scale", float(i), large) for i in range(20)]
        shared = g.shared_empty(1000)
        b, m = g.array(x), g.empty(3)
        with g.program() as p:
            p.output(p.call("scale", 2.0, p.input(4, np.float32)))
        def wait():
            while True:
                g.call("scale", 2.0, x)
        threading.Thread(target=wait, daemon=True).start()
        print(gpud.__version__)
        """,
    )
    assert output(process) == gpud.__version__ + "\n"
    with gpud.connect(sim.url) as g:  # the daemon has not noticed anything
        assert g.call("scale", 2.0, np.ones(1)).tolist() == [2]


def test_ctrl_c_ends_a_call_that_hangs() -> None:
    one = Daemon("sim")
    try:
        process = python(
            one,
            """
            g = gpud.connect()
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" has it ignored
            g.call("scale", 2.0, x)
            print("ready", flush=True)
            sys.stdin.readline()
            try:
                print("waits", flush=True)
                g.call("scale", 2.0, x)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            """,
            stdin=subprocess.PIPE,
        )
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        one.signal(signal.SIGSTOP)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        output(process)  # and the program ends although the daemon does not answer
    finally:
        one.stop()


def test_the_library_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import gpud"],
        env={**os.environ, "GPUD_LIBRARY": "/nothing/libgpud.so.0", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "ImportError: gpud needs the library libgpud (package libgpud0)" in done.stderr
    assert "Additionally" not in done.stderr
