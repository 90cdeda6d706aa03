#!/usr/bin/env python3
"""What a call from Python costs beside the same call from C, and the rate of large arrays beside memcpy's.

    overhead.py --bin build/release/bin --library build/release/lib/libgpud.so.0 [--backend opencl] [--json]

Both sides take turns on one daemon. `own` is the time that the package itself takes for a call: everything but
launching and waiting.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1] / "python"


def median_us(times: List[int]) -> float:
    return statistics.median(times) / 1000


def measure(run: Callable[[], Any], calls: int) -> List[int]:
    times = []
    for _ in range(calls):
        begin = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - begin)
    return times


def build(library: pathlib.Path, folder: str) -> str:
    program = f"{folder}/overhead"
    include = ROOT.parent / "client" / "include"
    command = ["cc", "-O2", f"-I{include}", "-o", program, str(HERE / "overhead.c"), str(library)]
    subprocess.run([*command, f"-Wl,-rpath,{library.parent}"], check=True)
    return program


def from_c(program: str, url: str, n: int, calls: int, shared: bool) -> List[int]:
    command = [program, url, str(n), str(calls), str(int(shared))]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [int(line) for line in out.split()][calls // 10 :]


def calls_of(g: Any, program: str, n: int, calls: int, repeat: int, shared: bool) -> Dict[str, float]:
    """One size: the medians of each repetition, and the median of their differences."""
    import numpy as np

    make = g.shared_empty if shared else np.empty
    x, y = make(n, np.float32), make(n, np.float32)
    x[:] = y[:] = 0
    axpy = g.kernel("axpy")

    def python() -> None:
        axpy(0.0, x, out=y)

    c_side, python_side = [], []
    for _ in range(repeat):
        c_side.append(median_us(from_c(program, g.url, n, calls, shared)))
        python_side.append(median_us(measure(python, calls)[calls // 10 :]))
    gap = statistics.median(p - c for p, c in zip(python_side, c_side))
    return {"c_us": statistics.median(c_side), "python_us": statistics.median(python_side), "added_us": gap}


def own_us(g: Any, calls: int) -> float:
    """A whole call with three small arguments, where launch and wait are calls of cffi that do nothing."""
    import numpy as np

    import gpud._args
    import gpud.job

    real = gpud.job.lib

    class Idle:
        """libgpud, but no job is started."""

        gpud_wait = staticmethod(lambda job, nanos: real.gpud_dtype_size(0))
        gpud_launch = staticmethod(lambda *arguments: real.gpud_dtype_size(0))
        gpud_job_free = staticmethod(lambda job: real.gpud_dtype_size(0))

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    x, y = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    axpy = g.kernel("axpy")
    gpud._args.lib = gpud.job.lib = Idle()  # type: ignore[misc]
    try:
        return median_us(measure(lambda: axpy(0.0, x, y), 10 * calls))
    finally:
        gpud._args.lib = gpud.job.lib = real  # type: ignore[misc]


def copies_of(g: Any, size: int, repeat: int) -> Dict[str, float]:
    """GB/s of a copy to a device and back, and of memcpy."""
    import numpy as np

    n = size // 4
    plain, out = np.ones(n, np.float32), np.ones(n, np.float32)
    shared = g.shared_empty(n)
    shared[:] = 1
    b = g.array(plain)
    rows = {
        "memcpy": lambda: np.copyto(out, plain),
        "set": lambda: b.set(plain),
        "get": lambda: b.get(out),
        "set_shared": lambda: b.set(shared),
        "get_shared": lambda: b.get(shared),
    }
    best: Dict[str, float] = {}
    for _ in range(repeat):
        for name, run in rows.items():
            best[name] = max(best.get(name, 0), size / min(measure(run, 3)))
    return best


def report(results: Dict[str, Any]) -> None:
    for row in results["calls"]:
        where = "shared" if row["shared"] else "plain"
        print(f"axpy {row['elements']:>9} {where:>6}: C {row['c_us']:9.1f} us, Python {row['python_us']:9.1f} us, "
              f"added {row['added_us']:7.1f} us")
    print(f"own time of a call: {results['own_us']:.1f} us")
    for row in results["copies"]:
        rates = ", ".join(f"{name} {rate:.1f}" for name, rate in row["gb_s"].items())
        print(f"copies of {row['bytes'] >> 20} MiB, GB/s: {rates}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of gpud")
    parser.add_argument("--library", type=pathlib.Path, required=True, help="libgpud.so.0")
    parser.add_argument("--backend", default="opencl")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.update(GPUD_BIN=str(options.bin.resolve()), GPUD_LIBRARY=str(options.library.resolve()))
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    import gpud
    from daemon import Daemon

    daemon = Daemon(options.backend)
    try:
        with tempfile.TemporaryDirectory() as folder, gpud.connect(daemon.url) as g:
            program = build(options.library.resolve(), folder)
            results: Dict[str, Any] = {"backend": options.backend, "load": os.getloadavg()[0], "calls": []}
            for n, shared in ((100, False), (1000, False), (100_000, False), (100_000, True), (4_000_000, True)):
                calls = options.calls if n < 1_000_000 else max(options.calls // 50, 10)
                row = calls_of(g, program, n, calls, options.repeat, shared)
                results["calls"].append({"elements": n, "shared": shared, **row})
            results["own_us"] = own_us(g, options.calls)
            results["copies"] = [{"bytes": s, "gb_s": copies_of(g, s, options.repeat)} for s in (1 << 20, 64 << 20)]
    finally:
        daemon.stop()
    if options.json:
        print(json.dumps(results))
    else:
        report(results)


if __name__ == "__main__":
    main()
