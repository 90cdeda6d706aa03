"""NumPy arrays in memory that is shared with the daemon, so that only the device copies them.

The memory is a memfd with two mappings: libgpud's, which jobs name, and one of its own for NumPy. So an array stays
usable after its client was closed; it is plain memory then.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Any, Optional, Tuple

import numpy as np

from gpud._lib import CData, ffi, lib
from gpud._session import Session
from gpud.errors import Error, UnsupportedError, check


class Mapping(mmap.mmap):
    """NumPy's mapping, and libgpud's address of the same memory."""

    session: Session
    memory: CData
    start: int

    def __del__(self) -> None:
        try:
            with self.session as client:
                lib.gpud_host_free(client, self.memory)
        except (Error, AttributeError):  # closed, or not imported
            pass


def allocate(session: Session, shape: Tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array of undefined content; in plain memory where none can be shared (tcp)."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    fd = os.memfd_create("gpud-python", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        memory = _import(session, fd)
        if memory is None:
            return np.empty(shape, dtype)
        mapping = Mapping(fd, size)
    finally:
        os.close(fd)
    mapping.session, mapping.memory = session, memory
    mapping.start = int(ffi.cast("uintptr_t", ffi.from_buffer(mapping)))
    return np.ndarray(shape, dtype, buffer=mapping)


def _import(session: Session, fd: int) -> Optional[CData]:
    memory = ffi.new("void **")
    try:
        with session as client:
            check(lib.gpud_host_import(client, fd, memory, ffi.NULL))
        return memory[0]
    except UnsupportedError:
        return None


def address(session: Session, array: np.ndarray[Any, Any]) -> Optional[CData]:
    """libgpud's address of an array, or of a view of one, that lies in this session's shared memory."""
    base: Any = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, Mapping) or base.session is not session:
        return None
    offset = int(ffi.cast("uintptr_t", ffi.from_buffer(array))) - base.start
    return ffi.cast("char *", base.memory) + offset
