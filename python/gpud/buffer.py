"""Arrays on a device."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt

from gpud import shared
from gpud._constants import GPUD_REST
from gpud._dtypes import DTYPES, native, number_of, shape_of, struct_of
from gpud._lib import CData, encode, ffi, lib, sized, text
from gpud._session import Handle, Session, nanoseconds
from gpud.errors import ArgShapeError, ArgTypeError, check

IN, OUT, INOUT = lib.GPUD_IN, lib.GPUD_OUT, lib.GPUD_INOUT
_STATES = {
    lib.GPUD_BUFFER_DEFINED: "defined",
    lib.GPUD_BUFFER_UNDEFINED: "undefined",
    lib.GPUD_BUFFER_SEALED: "sealed",
    lib.GPUD_BUFFER_LOST: "lost",
}
Index = Union[int, slice, "ellipsis", Tuple[Any, ...]]  # noqa: F821


class _Memory(Handle):
    """The daemon's buffer, freed when the last Buffer that is a part of it goes."""

    def __init__(self, session: Session, buffer: CData) -> None:
        super().__init__(session, buffer, lib.gpud_buffer_free)
        #: Nothing was written to it: a kernel's output may be declared as written from scratch.
        self.fresh = False


class Buffer:
    """An array on a device: made by `Client.array`, `empty`, `zeros`; passed to kernels without a copy.

    It has NumPy's `shape`, `dtype`, `size` and `nbytes`. Indexing along the first dimension gives a part of the same
    memory; `get` copies it to a new NumPy array, and assigning copies into it.

    >>> b = g.array(np.arange(6, dtype=np.float32).reshape(3, 2))
    >>> b
    <gpud.Buffer float32 (3, 2)>
    >>> b[1].get()
    array([2., 3.], dtype=float32)
    >>> b[1:] = 7
    >>> np.asarray(b)
    array([[0., 1.],
           [7., 7.],
           [7., 7.]], dtype=float32)

    A buffer is freed when nothing refers to it any more, at the end of a `with` block, or by `free`.
    """

    def __init__(
        self, handle: _Memory, shape: Tuple[int, ...], dtype: np.dtype[Any], first: Optional[int] = None
    ) -> None:
        self._handle = handle
        self._first = first  # of a part: its first element
        self.shape = shape
        self.dtype = dtype

    # ---- what NumPy's arrays have --------------------------------------------------------------

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        n = 1
        for dim in self.shape:
            n *= dim
        return n

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single element has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        part = "" if self._first is None else f", from element {self._first}"
        return f"<gpud.Buffer {self.dtype} {self.shape}{part}>"

    def __iter__(self) -> Iterator[Buffer]:
        for i in range(len(self)):
            yield self[i]

    def __getitem__(self, index: Index) -> Buffer:
        """A part of the same memory. Parts are contiguous: integers, then at most one slice with step 1."""
        first, shape = self._part(index)
        if shape == self.shape and first == (self._first or 0):
            return self
        return Buffer(self._handle, shape, self.dtype, first)

    def __setitem__(self, index: Index, value: Any) -> None:
        """b[...] = x: a number fills, an array or another buffer is copied."""
        part = self[index]
        if isinstance(value, Buffer):
            part._copy_from(value)
        elif np.ndim(value) == 0:
            part.fill(value)
        else:
            part.set(value)

    def _part(self, index: Index) -> Tuple[int, Tuple[int, ...]]:
        keys = list(index) if isinstance(index, tuple) else [index]
        if keys and keys[-1] is Ellipsis:
            keys.pop()
        first, shape, sliced = self._first or 0, list(self.shape), False
        for key in keys:
            if sliced or not shape:
                raise IndexError(f"{index!r} is no contiguous part of {self!r}: take .get() first")
            rest = int(np.prod(shape[1:], dtype=np.int64))
            if isinstance(key, slice):
                start, stop, step = key.indices(shape[0])
                if step != 1:
                    raise IndexError(f"step {step}: parts of a buffer are contiguous; take .get() first")
                first += start * rest
                shape[0] = max(stop - start, 0)
                sliced = True
            else:
                at = int(key.__index__())
                if not -shape[0] <= at < shape[0]:
                    raise IndexError(f"index {at} of {shape[0]}")
                first += at % shape[0] * rest
                shape.pop(0)
        return first, tuple(shape)

    # ---- copies --------------------------------------------------------------------------------

    def get(self, out: Optional[npt.NDArray[Any]] = None) -> npt.NDArray[Any]:
        """A copy as a NumPy array, after all earlier jobs; `out`: into this array of the same shape and type."""
        array = np.empty(self.shape, self.dtype) if out is None else out
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ArgShapeError(f"out is {array.dtype} {array.shape}, the buffer {self.dtype} {self.shape}")
        if not array.flags.writeable:
            raise ValueError("out is read-only")
        target = array if array.flags.c_contiguous else np.empty(self.shape, self.dtype)
        with self._handle.session as client:
            check(lib.gpud_read(client, self._handle.value, *self._range(), self._address(target), ffi.NULL))
        if target is not array:
            array[...] = target
        return array

    def set(self, array: Any) -> None:
        """Copies an array of the same number of elements into the buffer. Its type must be the buffer's."""
        source = np.ascontiguousarray(array)
        if source.dtype != self.dtype:
            source = self._same_type(source, array)
        if source.size != self.size:
            raise ArgShapeError(f"{source.size} elements of shape {source.shape} for a buffer of shape {self.shape}")
        with self._handle.session as client:
            check(lib.gpud_write(client, self._handle.value, *self._range(), self._address(source), ffi.NULL))
        self._handle.fresh = False

    def _same_type(self, source: npt.NDArray[Any], given: Any) -> npt.NDArray[Any]:
        """Lists are converted, arrays only between byte orders."""
        if isinstance(given, np.ndarray) and native(source.dtype) != self.dtype:
            raise ArgTypeError(f"{source.dtype} for a buffer of {self.dtype}: use x.astype(np.{self.dtype})")
        return source.astype(self.dtype)

    def fill(self, value: Any) -> None:
        """Sets all elements to a number."""
        from gpud._args import exact

        arg = exact(value, self.dtype, "fill")
        with self._handle.session as client:
            check(lib.gpud_fill(client, self._argument(), arg))
        self._handle.fresh = False

    def _copy_from(self, other: Buffer) -> None:
        if other._handle.session is not self._handle.session:
            self.set(other.get())
            return
        if other.size != self.size or other.dtype != self.dtype:
            raise ArgShapeError(f"{other!r} does not fit {self!r}")
        with self._handle.session as client:
            check(lib.gpud_copy(client, self._argument(), other._argument()))
        self._handle.fresh = False

    # ---- for other libraries -------------------------------------------------------------------

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        """A read-only copy: writing to it would not reach the device. `get` gives a copy to write to."""
        copy = self.get()
        copy.flags.writeable = False
        interface: Dict[str, Any] = dict(copy.__array_interface__)
        if copy.size:
            interface["data"] = copy.data.cast("B") if copy.ndim else copy.reshape(1).data.cast("B")
        return interface

    def __dlpack__(self, *, stream: None = None, **_: Any) -> Any:
        """A copy in host memory, for `torch.from_dlpack` and others."""
        return self.get().__dlpack__()

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)  # kDLCPU

    def tobytes(self) -> bytes:
        return self.get().tobytes()

    # ---- the daemon's side ---------------------------------------------------------------------

    @property
    def state(self) -> str:
        """ "defined", "undefined" (not written yet, or a writer failed), "sealed" or "lost"."""
        return _STATES.get(self._describe().state, "unknown")

    @property
    def device(self) -> int:
        """The id of the device that it is on."""
        return int(self._describe().device)

    @property
    def label(self) -> str:
        return text(self._describe().label)

    def seal(self) -> Buffer:
        """Makes the whole buffer immutable: the daemon restores it if its worker ends. Returns the buffer."""
        with self._handle.session as client:
            check(lib.gpud_buffer_seal(client, self._handle.value))
        return self

    def publish(self, name: str, *, writable: bool = False, linger: float = 0) -> None:
        """Gives it a name by which other sessions of the tenant open it (`Client.open`).

        It outlives its last user by `linger` seconds.
        """
        rights = INOUT if writable else IN
        with self._handle.session as client:
            nanos = nanoseconds(linger) if linger else 0
            check(lib.gpud_buffer_publish(client, self._handle.value, encode(name), rights, nanos))

    def grant(self, name: str, *tenants: str, linger: float = 0) -> None:
        """As `publish`, for reading, of a sealed buffer: these tenants may open copies, too (`Client.open_granted`).

        Copies that were opened stay when the buffer goes. Granting anew replaces the tenants; none ends the grant.
        StateError if it is not sealed.

        >>> weights = g.array(np.float32([1, 2, 3])).seal()
        >>> weights.grant("weights-7", "vision", "speech")
        """
        nanos = nanoseconds(linger) if linger else 0
        with self._handle.session as client:
            check(lib.gpud_buffer_grant(client, self._handle.value, encode(name), encode(" ".join(tenants)), nanos))

    def export(self) -> Tuple[int, int, str]:
        """(descriptor, bytes, device) by which CUDA in this or another process maps a buffer of `empty(export=True)`.

        The descriptor belongs to the caller.
        """
        desc = sized("gpud_export_desc")
        with self._handle.session as client:
            check(lib.gpud_buffer_export(client, self._handle.value, desc))
        os.set_inheritable(desc.fd, False)
        return int(desc.fd), int(desc.bytes), text(desc.device)

    def free(self) -> None:
        """Frees the whole buffer now; jobs that were submitted before still use it."""
        self._handle.free()

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, *error: object) -> None:
        self.free()

    # ---- for this package ----------------------------------------------------------------------

    def _number(self) -> int:
        return number_of(self.dtype, "buffer")

    def _range(self) -> Tuple[int, int, int]:
        return self._number(), self._first or 0, self.size

    def _argument(self) -> CData:
        if self._first is None:
            return lib.gpud_slice(self._handle.value, 0, GPUD_REST)
        return lib.gpud_slice(self._handle.value, self._first, self.size)

    def _seen_shape(self) -> Tuple[int, ...]:
        """The shape that kernels see: a part has one dimension."""
        return self.shape if self._first is None else (self.size,)

    def _address(self, array: npt.NDArray[Any]) -> CData:
        """Where libgpud finds an array: in shared memory, it has a mapping of its own."""
        memory = None if array.base is None else shared.address(self._handle.session, array)
        return memory or (ffi.from_buffer(array) if array.size else ffi.NULL)

    def _describe(self) -> CData:
        desc = sized("gpud_buffer_desc")
        with self._handle.session as client:
            check(lib.gpud_buffer_info(client, self._handle.value, desc))
        return desc


def create(
    session: Session, shape: Any, dtype: Any, flags: int = 0, label: Optional[str] = None, device: Optional[int] = None
) -> Buffer:
    """A buffer of undefined content, or of zeros."""
    dims = shape_of(shape, "buffer")
    kind = native(dtype)
    desc = struct_of(dims, number_of(kind, "buffer"))
    result = ffi.new("gpud_buffer *")
    with session as client:
        if device is None:
            check(lib.gpud_buffer_create(client, desc, flags, encode(label), result))
        else:
            check(lib.gpud_buffer_create_on(client, device, desc, flags, encode(label), result))
    handle = _Memory(session, result[0])
    handle.fresh = not flags & lib.GPUD_BUFFER_ZERO
    return Buffer(handle, dims, kind)


def open_named(session: Session, name: str) -> Buffer:
    """A buffer that another session published."""
    result = ffi.new("gpud_buffer *")
    with session as client:
        check(lib.gpud_buffer_open(client, encode(name), result))
    return wrap(session, result[0])


def open_granted(session: Session, tenant: str, name: str) -> Buffer:
    """A copy of a buffer that another tenant granted."""
    result = ffi.new("gpud_buffer *")
    with session as client:
        check(lib.gpud_buffer_open_granted(client, encode(tenant), encode(name), result))
    return wrap(session, result[0])


def wrap(session: Session, buffer: CData) -> Buffer:
    """A buffer whose shape and type libgpud knows."""
    result = Buffer(_Memory(session, buffer), (1,), DTYPES[2])
    shape = result._describe().shape
    result.shape = tuple(int(shape.dim[i]) for i in range(shape.ndim))
    result.dtype = DTYPES[int(shape.dtype)]
    return result
