"""NumPy's element types and gpud's."""

from __future__ import annotations

from typing import Any, Dict, Final, Tuple

import numpy as np

from gpud._constants import GPUD_MAX_DIMS
from gpud._lib import ffi, lib
from gpud.errors import ArgShapeError, ArgTypeError

_NAMES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
#: gpud's number of a type -> NumPy's type
DTYPES: Final[Dict[int, np.dtype[Any]]] = {number: np.dtype(name) for number, name in enumerate(_NAMES, start=1)}
F16: Final[int] = lib.GPUD_F16
_NUMBERS: Final[Dict[Any, int]] = {dtype: number for number, dtype in DTYPES.items()}

_HINTS = {
    "b": "pass x.view(np.uint8)",
    "c": "pass x.view(np.float32).reshape(*x.shape, 2): the last dimension is (real, imaginary)",
}


def number_of(dtype: np.dtype[Any], what: str) -> int:
    """gpud's number of a type in the machine's byte order. `what` names the array in the error."""
    number = _NUMBERS.get(dtype)
    if number is None:
        hint = _HINTS.get(dtype.kind, "gpud has integers of 8 to 64 bits and floats of 16, 32 and 64 bits")
        raise ArgTypeError(f"{what}: no kernel takes elements of type {dtype}: {hint}")
    return number


def native(dtype: Any) -> np.dtype[Any]:
    """The same type in the machine's byte order."""
    return np.dtype(dtype).newbyteorder("=")


def shape_of(shape: Any, what: str) -> Tuple[int, ...]:
    """A shape as the user gives it (7, (7,), [480, 640]) with the number of dimensions that gpud has."""
    try:
        dims = tuple(int(n) for n in shape) if not isinstance(shape, (int, np.integer)) else (int(shape),)
    except TypeError:
        raise ArgShapeError(f"{what}: {shape!r} is no shape") from None
    if any(n < 0 for n in dims):
        raise ArgShapeError(f"{what}: {dims} has a negative dimension")
    dims = dims or (1,)
    if len(dims) > GPUD_MAX_DIMS:
        raise ArgShapeError(f"{what}: {len(dims)} dimensions, at most {GPUD_MAX_DIMS}: reshape it")
    return dims


def struct_of(dims: Tuple[int, ...], number: int) -> Any:
    """A gpud_shape."""
    return ffi.new("gpud_shape *", (number, len(dims), dims))[0]
