#!/usr/bin/env python3
"""Derives gpud/_binding.py and gpud/_constants.py from libgpud's installed headers.

    cdef.py          fails if they are not what the headers say
    cdef.py --fix    writes them

_binding.py is cffi's own form of the declarations (out of line, ABI mode): it loads without parsing C. Nothing is
repeated by hand, so a new struct member or function needs `--fix` and nothing else. tests/test_cdef.py compares the
result with what a C compiler makes of the same headers.
"""
import contextlib
import io
import pathlib
import re
import sys
import tempfile

import cffi

HERE = pathlib.Path(__file__).resolve().parent
HEADERS = HERE.parent / "client" / "include" / "gpud"
PACKAGE = HERE / "gpud"
NUMBER = re.compile(r"#define\s+(GPUD_\w+)\s+(\d+|UINT64_MAX)\b")


def headers() -> "list[pathlib.Path]":
    """gpud.h first: other headers build on it."""
    return sorted(HEADERS.glob("*.h"), key=lambda path: (path.name != "gpud.h", path.name))


def declarations(text: str) -> "tuple[str, dict[str, int]]":
    """The C declarations of a header, and its macros that are numbers."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"\\\n", " ", text)
    macros = {name: 2**64 - 1 if value == "UINT64_MAX" else int(value) for name, value in NUMBER.findall(text)}
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bGPUD_API\b", "", text)
    for name, value in macros.items():
        text = re.sub(rf"\[{name}\]", f"[{value}]", text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "\n".join(line for line in lines if line), macros


def binding(code: str) -> str:
    """The module that cffi makes of declarations."""
    ffi = cffi.FFI()
    ffi.cdef(code)
    ffi.set_source("gpud._binding", None)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "_binding.py"
        with contextlib.redirect_stdout(io.StringIO()):
            ffi.emit_python_code(str(path))
        return path.read_text()


def generate() -> "dict[pathlib.Path, str]":
    """The text of each file."""
    parts, macros = [], {}
    for path in headers():
        code, numbers = declarations(path.read_text())
        parts.append(code)
        macros.update(numbers)
    lines = ['"""Numbers of libgpud\'s headers, derived by cdef.py. Do not edit."""', "", "from typing import Final", ""]
    version = ".".join(str(macros[f"GPUD_VERSION_{part}"]) for part in ("MAJOR", "MINOR", "PATCH"))
    lines += [f"{name}: Final = {value}" for name, value in macros.items()] + [f"VERSION: Final = \"{version}\""]
    return {
        PACKAGE / "_binding.py": binding("\n".join(parts)),
        PACKAGE / "_constants.py": "\n".join(lines) + "\n",
    }


def main() -> int:
    stale = {path: text for path, text in generate().items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        if "--fix" in sys.argv[1:]:
            path.write_text(text)
        else:
            print(f"{path}: not what the headers say; run {__file__} --fix", file=sys.stderr)
    return 1 if stale and "--fix" not in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
