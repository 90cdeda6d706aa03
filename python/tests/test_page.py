"""docs/python.md runs from top to bottom, prints what it says, and draws its pictures."""

import contextlib
import io
import os
import pathlib
import re
import struct
import zlib
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np
import numpy.typing as npt
import pytest

import gpud
from daemon import Daemon

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def blocks() -> "List[Tuple[int, str, str]]":
    """(line, code, what it prints) for each block of Python."""
    text = (DOCS / "python.md").read_text()
    found = re.finditer(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, m.start()) + 1, m.group(1), m.group(2) or "") for m in found]


def pixels(path: pathlib.Path) -> "npt.NDArray[Any]":
    """The bytes of a PNG that the page's own `save` wrote."""
    data, at, parts = path.read_bytes(), 8, {}
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        parts[kind] = data[at + 8 : at + 8 + size]
        at += 12 + size
    width, height, _, colour = struct.unpack_from(">IIBB", parts[b"IHDR"])
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape((height, width, 3) if colour == 2 else (height, width))


@pytest.fixture
def folder(opencl: Daemon, tmp_path: pathlib.Path, monkeypatch: Any) -> Iterator[pathlib.Path]:
    monkeypatch.setenv("GPUD_URL", opencl.url)
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def test_page(folder: pathlib.Path) -> None:
    names: Dict[str, Any] = {"__name__": "page"}
    assert len(blocks()) > 8
    for line, code, said in blocks():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * line + code, str(DOCS / "python.md"), "exec"), names)
        assert out.getvalue() == said, f"docs/python.md:{line}"
    names["g"].close()
    assert isinstance(names["g"], gpud.Client)
    drawn = {path.name for path in folder.glob("*.png")}
    if os.environ.get("GPUD_PAGE_RECORD"):
        for name in drawn:
            (DOCS / "python" / name).write_bytes((folder / name).read_bytes())
    shown = re.findall(r"\]\(python/(.*?)\)", (DOCS / "python.md").read_text())
    assert set(shown) == drawn == {path.name for path in (DOCS / "python").glob("*.png")}
    for name in drawn:
        ours, theirs = pixels(folder / name), pixels(DOCS / "python" / name)
        assert ours.shape == theirs.shape
        # devices differ in the last digit, which may tip a hatched pixel from black to white
        assert np.mean(ours != theirs) < 0.02, name
