"""A wheel, made with Debian's tools and without the network, has all that a program needs."""

import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from daemon import Daemon

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_wheel(sim: Daemon, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("setuptools", minversion="61")
    pytest.importorskip("wheel")
    tree = shutil.copytree(ROOT, tmp_path / "tree", ignore=shutil.ignore_patterns("__pycache__", "build", "dist"))
    build = "import setuptools.build_meta as b; print(b.build_wheel('dist'))"
    done = subprocess.run([sys.executable, "-c", build], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tree / "dist").glob("gpud-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("gpud/")}
        archive.extractall(tmp_path / "installed")
    ours = {f"gpud/{path.name}" for path in (ROOT / "gpud").iterdir() if path.suffix == ".py"} | {"gpud/py.typed"}
    assert names == ours
    use = (
        "import gpud, numpy as np, sys; assert gpud.__file__.startswith(sys.argv[1])\n"
        "print(gpud.connect(sys.argv[2]).call('scale', 2.0, np.ones(2)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", use, str(tmp_path), sim.url], cwd=tmp_path / "installed", capture_output=True, text=True
    )
    assert done.stdout == "[2. 2.]\n", done.stderr
