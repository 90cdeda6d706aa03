"""The declarations are those of the headers, and lie in memory as a C compiler lays them."""

import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any, Dict, List

import pytest

from gpud import _constants
from gpud._lib import ffi, lib

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT.parent / "client" / "include"


def test_declarations_are_derived_from_the_headers() -> None:
    pytest.importorskip("cffi")
    done = subprocess.run([sys.executable, str(ROOT / "cdef.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def structs() -> Dict[str, List[str]]:
    """Every struct of the binding that has members, with their names."""
    found = {}
    for name in ffi.list_types()[0]:
        kind = ffi.typeof(name)
        if kind.kind == "struct" and kind.fields:
            found[name] = [field for field, _ in kind.fields]
    return found


def measure(source: str, tmp_path: pathlib.Path) -> "Dict[str, int]":
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "measure.c").write_text(source)
    program = str(tmp_path / "measure")
    subprocess.run([compiler, f"-I{INCLUDE}", "-o", program, str(tmp_path / "measure.c")], check=True)
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: int(value) for name, value in (line.split() for line in lines)}


def test_structs_and_numbers_are_those_of_the_compiler(tmp_path: pathlib.Path) -> None:
    own: Dict[str, int] = {}
    code = []
    for name, fields in structs().items():
        own[name] = ffi.sizeof(name)
        code.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in fields:
            own[f"{name}.{field}"] = ffi.offsetof(name, field)
            code.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
    for name, value in numbers().items():
        own[name] = value
        code.append(f'printf("{name} %llu\\n", (unsigned long long)({name}));')
    assert len(own) > 200
    includes = "\n".join(f"#include <gpud/{path.name}>" for path in sorted((INCLUDE / "gpud").glob("*.h")))
    source = f"#include <stdio.h>\n{includes}\nint main(void) {{ {' '.join(code)} return 0; }}"
    assert measure(source, tmp_path) == own


def numbers() -> Dict[str, int]:
    found: Dict[str, int] = {}
    text = "".join(path.read_text() for path in (INCLUDE / "gpud").glob("*.h"))
    for name in re.findall(r"\b(GPUD_[A-Z0-9_]+)\b", text):
        value: Any = getattr(_constants, name, None)
        if value is None:
            value = enumerator(name)
        if value is not None:
            found[name] = value % 2**64
    return found


def enumerator(name: str) -> Any:
    try:
        value = getattr(lib, name)
    except AttributeError:  # a macro that is no number
        return None
    return int(value) if isinstance(value, int) else None


def test_every_function_is_in_the_library() -> None:
    names = set(re.findall(r"\b(gpud_\w+)\(", "".join(p.read_text() for p in (INCLUDE / "gpud").glob("*.h"))))
    called = set(dir(lib))
    declared = {name for name in called if name.startswith("gpud_")}
    assert len(declared) > 80
    for name in declared:
        assert getattr(lib, name) is not None
    assert declared <= names
