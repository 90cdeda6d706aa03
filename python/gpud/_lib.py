"""libgpud through cffi (ABI mode): the one place that loads the library."""

from __future__ import annotations

import os
from typing import Any, Final

from gpud._binding import ffi as _ffi
from gpud._constants import GPUD_VERSION_MAJOR, GPUD_VERSION_MINOR

# cffi has no type stubs in Debian: its objects are Any, and only this package sees them.
CData = Any

ffi: Final[Any] = _ffi


def _load() -> Any:
    name = os.environ.get("GPUD_LIBRARY", f"libgpud.so.{GPUD_VERSION_MAJOR}")
    try:
        library = ffi.dlopen(name)
    except OSError as error:
        reason = str(error).split(".  Additionally")[0]  # cffi's second try
        raise ImportError(
            f"gpud needs the library libgpud (package libgpud0): {reason}. "
            "GPUD_LIBRARY names its file where the system's search does not find it"
        ) from None
    version = text(library.gpud_version())
    if tuple(int(part) for part in version.split(".")[:2]) < (GPUD_VERSION_MAJOR, GPUD_VERSION_MINOR):
        raise ImportError(f"{name} is version {version}; this package needs {GPUD_VERSION_MAJOR}.{GPUD_VERSION_MINOR}")
    return library


def text(pointer: CData) -> str:
    """A C string as str. Names and messages are UTF-8, but other programs may have put anything there."""
    return str(ffi.string(pointer).decode("utf-8", "replace"))


def encode(value: "str | None") -> CData:
    """A C string of a str that lives as long as the result; None becomes NULL."""
    if value is None:
        return ffi.NULL
    if "\0" in value:
        raise ValueError("a text with a NUL character")
    return ffi.new("char[]", value.encode())


def sized(kind: str) -> CData:
    """A new struct whose first member, `size`, is set."""
    struct = ffi.new(f"{kind} *")
    struct.size = ffi.sizeof(kind)
    return struct


lib: Final[Any] = _load()
