"""From Python's values to libgpud's arguments, and back to results."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from gpud import shared
from gpud._constants import GPUD_MAX_DIMS
from gpud._dtypes import DTYPES, F16, native, number_of
from gpud._lib import CData, ffi, lib, sized
from gpud._session import LARGE, Session
from gpud.buffer import IN, INOUT, OUT, Buffer, create
from gpud.errors import ArgShapeError, ArgTypeError, BadHandleError, ClosedError, RangeError, RequestError, check
from gpud.kernel import ARRAY, LOCAL, MISSING, STRUCT, Kernel, Out, Param, one_or_all, without_out

TEMPLATES_MAX = 1000
DLPACK_CPU = 1
#: What stands for an array without a conversion.
ARRAYS = frozenset((np.ndarray, Buffer, Out, type(MISSING)))

Grid = Union[int, Sequence[int], None]


def scalar(value: Any, dtype: int, what: str) -> CData:
    """A number. The daemon converts it to the parameter's type if its value survives."""
    if type(value) is float:  # the usual case
        return lib.gpud_f64(value) if dtype != F16 else lib.gpud_f16(_half(value))
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        value = value.item()
    if isinstance(value, float):
        return lib.gpud_f64(value) if dtype != F16 else lib.gpud_f16(_half(value))
    if not hasattr(value, "__index__") or isinstance(value, np.ndarray):
        raise ArgTypeError(f"{what}: a number is needed, not {_kind(value)}")
    number = int(value.__index__())
    if not -(2**63) <= number < 2**64:
        raise RangeError(f"{what}: {number} has more than 64 bits")
    if dtype == F16:
        return lib.gpud_f16(_half(float(number)))
    return lib.gpud_i64(number) if number < 2**63 else lib.gpud_u64(number)


def exact(value: Any, dtype: np.dtype[Any], what: str) -> CData:
    """A number in just this type, for steps that do not convert. It must survive the conversion."""
    if isinstance(value, np.ndarray) and value.ndim or not isinstance(value, (int, float, np.generic, np.ndarray)):
        raise ArgTypeError(f"{what}: a number is needed, not {_kind(value)}")
    with np.errstate(over="ignore", invalid="ignore"):
        converted = np.asarray(value).astype(dtype)
    if dtype.kind in "iu" and converted != value or dtype.kind == "f" and np.isfinite(value) > np.isfinite(converted):
        raise RangeError(f"{what}: {value} is no {dtype}")
    bits = int(converted.view(np.uint16)) if dtype == np.float16 else converted.item()
    return getattr(lib, f"gpud_{dtype.kind}{8 * dtype.itemsize}")(bits)


def _half(value: float) -> int:
    with np.errstate(over="ignore"):
        return int(np.float16(value).view(np.uint16))


def _kind(value: Any) -> str:
    if isinstance(value, (np.ndarray, Buffer)):
        return f"an array of shape {value.shape}"
    return f"a value of type {type(value).__name__}"


def as_array(value: Any, dtype: int, what: str) -> npt.NDArray[Any]:
    """A NumPy array in C order and the machine's byte order: the array itself if it is one, else a copy."""
    array: npt.NDArray[Any] = value
    if isinstance(value, np.ma.MaskedArray):
        raise ArgTypeError(f"{what}: a masked array: kernels know no masks; pass x.filled(...)")
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack__"):
            if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] != DLPACK_CPU:
                raise ArgTypeError(f"{what}: it lies on a device of this process; pass a copy in host memory: x.cpu()")
            array = np.from_dlpack(value)
        elif isinstance(value, (list, tuple)) and dtype:
            array = np.asarray(value, DTYPES[dtype])
        else:
            array = np.asarray(value)
    if array.dtype.kind in "OUS":
        raise ArgTypeError(f"{what}: an array of numbers is needed, not {_kind(value)}")
    if not array.dtype.isnative:
        array = array.astype(native(array.dtype))
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim > GPUD_MAX_DIMS:
        raise ArgShapeError(f"{what}: {array.ndim} dimensions, at most {GPUD_MAX_DIMS}: reshape it")
    if not array.flags.c_contiguous or not array.flags.aligned:
        array = np.require(array, requirements=["C", "A"])
    return array


def grid_of(grid: Grid, local: Grid, shared_bytes: int) -> CData:
    """A gpud_grid; NULL where nothing is given."""
    if grid is None and local is None and not shared_bytes:
        return ffi.NULL
    result = sized("gpud_grid")
    for name, value in (("global", grid), ("local", local)):
        sizes = () if value is None else (value,) if hasattr(value, "__index__") else tuple(value)
        if len(sizes) > 3:
            raise ArgShapeError(f"a grid has at most three sizes, x first, not {len(sizes)}")
        for i, n in enumerate(sizes):
            getattr(result, name)[i] = n
    result.shared_bytes = shared_bytes
    return result


def own(session: Session, buffer: Buffer, what: str) -> Buffer:
    """The buffer, which has to be of this session."""
    if buffer._handle.session is not session:
        raise BadHandleError(f"{what}: a buffer of another client: pass b.get(), or publish and open it")
    return buffer


_templates: Dict[Any, CData] = {}


def _template(array: npt.NDArray[Any], access: int, what: str) -> CData:
    """A gpud_arg for an array of this shape and type, without its memory."""
    key = (array.dtype, array.shape, access)
    found = _templates.get(key)
    if found is None:
        shape = (number_of(array.dtype, what), array.ndim, array.shape)
        if len(_templates) >= TEMPLATES_MAX:
            _templates.clear()
        found = _templates[key] = lib.gpud_host_shaped(ffi.NULL, shape, access)
    return found


class Arguments:
    """Arguments in the making, with the memory that they need until the job has ended."""

    def __init__(self, session: Session, count: int, stage: bool = True) -> None:
        self.session = session
        self.count = count
        self._stage = stage  # large arrays go through shared memory
        self.args = ffi.new("gpud_arg[]", count)
        self.keep: List[Any] = []
        self._after: List[Callable[[], None]] = []
        self._scratch: List[Tuple[CData, int]] = []
        self._fresh: List[Buffer] = []

    def host(
        self, i: int, what: str, source: npt.NDArray[Any], access: int, result: Optional[npt.NDArray[Any]]
    ) -> None:
        """An array of the host. Results go to `result`, which is `source` or of the same shape."""
        arg = self.args[i]
        self.args[i] = _template(source, access, what)
        separate = result is not None and result is not source
        self.keep.append(source)
        memory = None if separate or source.base is None else shared.address(self.session, source)
        if memory is not None:
            arg.data = memory
        elif source.nbytes >= LARGE and self._stage:
            arg.data = self._staged(source, access, result)
        else:
            if separate and result is not None:
                np.copyto(result, source)
                source = result
            if source.size:
                arg.data = ffi.from_buffer(source)

    def _staged(self, source: npt.NDArray[Any], access: int, result: Optional[npt.NDArray[Any]]) -> CData:
        memory = self.session.scratch(source.nbytes)
        self._scratch.append((memory, source.nbytes))
        stage = np.frombuffer(ffi.buffer(memory, source.nbytes), source.dtype).reshape(source.shape)
        if access & IN:
            np.copyto(stage, source)
        if result is not None:
            target = result
            self._after.append(lambda: np.copyto(target, stage))
        return memory

    def fail(self) -> None:
        """After a refusal or a failed job: a device may still write to memory that it was given."""
        for buffer in self._fresh:
            buffer._handle.fresh = True
        self.drop(False)

    def drop(self, again: bool) -> None:
        """Lets go of all memory; again: no job may still write to it."""
        self._after, self.keep = [], []
        if not self._scratch:
            return
        scratch, self._scratch = self._scratch, []
        try:
            with self.session:
                for memory, size in scratch:
                    self.session.scratch_return(memory, size, again)
        except ClosedError:  # libgpud frees it
            pass


class Prepared(Arguments):
    """The arguments of one launch, and what becomes of its results."""

    def __init__(self, session: Session, kernel: Kernel, values: List[Any], stage: bool = True) -> None:
        super().__init__(session, len(values), stage)
        self.kernel = kernel
        self.results: List[Any] = []
        try:
            for i in kernel._arrays:
                if type(values[i]) not in ARRAYS:
                    param = kernel.params[i]
                    values[i] = as_array(values[i], param.dtype, self._what(param))
            for i, param in enumerate(kernel.params):
                if param.kind == ARRAY:
                    self._array(i, param, values)
                else:
                    self._value(i, param, values[i])
        except BaseException as error:
            if isinstance(error, RequestError):
                error.arg = i
            self.fail()
            raise

    def _what(self, param: Param) -> str:
        return f"{self.kernel.name}: argument {param.name}"

    def _value(self, i: int, param: Param, value: Any) -> None:
        if param.kind == LOCAL:
            if not hasattr(value, "__index__") or isinstance(value, np.ndarray):
                raise ArgTypeError(f"{self._what(param)}: local memory: a number of bytes, not {_kind(value)}")
            self.args[i] = lib.gpud_local(value.__index__())
        elif param.kind == STRUCT:
            self.args[i] = self._struct(param, value)
        else:
            self.args[i] = scalar(value, param.dtype, self._what(param))

    def _struct(self, param: Param, value: Any) -> CData:
        """By value: bytes, a NumPy record, or an array as long as the struct or vector."""
        data = value.tobytes() if isinstance(value, (np.generic, np.ndarray)) else value
        try:
            data = bytes(memoryview(data))
        except TypeError:
            raise ArgTypeError(
                f"{self._what(param)}: a struct: bytes or a NumPy record, not {_kind(value)}"
            ) from None
        self.keep.append(ffi.from_buffer(data))
        return lib.gpud_bytes(self.keep[-1], len(data))

    def _array(self, i: int, param: Param, values: List[Any]) -> None:
        value = values[i]
        given_out = type(value) is Out
        if given_out:
            value = value.value
        if value is MISSING:
            shape, dtype = self.kernel._missing(i, [_Seen.of(v) for v in values])
            value = self._allocate(shape, dtype, values)
            values[i] = value
            given_out = True
        if isinstance(value, Buffer):
            self._buffer(i, param, value)
        elif param.access == IN:
            array = as_array(value, param.dtype, self._what(param))
            self.host(i, self._what(param), array, IN, None)
        elif given_out or param.access == OUT:
            self._in_place(i, param, value)
        else:
            array = as_array(value, param.dtype, self._what(param))
            result = np.empty_like(array)
            self.results.append(result)
            self.host(i, self._what(param), array, INOUT, result)

    def _allocate(self, shape: Tuple[int, ...], dtype: np.dtype[Any], values: List[Any]) -> Any:
        """A result: on the device if one of the arrays is."""
        if any(isinstance(without_out(v), Buffer) for v in values):
            return create(self.session, shape, dtype)
        return np.empty(shape, dtype)

    def _buffer(self, i: int, param: Param, buffer: Buffer) -> None:
        arg = own(self.session, buffer, self._what(param))._argument()
        if param.access & OUT:
            if buffer._handle.fresh and param.dims is None and buffer._first is None:
                arg = lib.gpud_arg_with(arg, OUT)
            if buffer._handle.fresh:
                buffer._handle.fresh = False
                self._fresh.append(buffer)
            self.results.append(buffer)
        self.args[i] = arg
        self.keep.append(buffer)

    def _in_place(self, i: int, param: Param, target: Any) -> None:
        """Writes to the caller's array, through another one where its memory is not plain."""
        if not isinstance(target, np.ndarray):
            raise ArgTypeError(f"{self._what(param)}: a result needs a NumPy array or a Buffer, not {_kind(target)}")
        if not target.flags.writeable:
            raise ValueError(f"{self._what(param)}: the array for the result is read-only")
        array = as_array(target, param.dtype, self._what(param))
        self.results.append(target)
        self.host(i, self._what(param), array, param.access, array)
        if array is not target:
            self._after.append(lambda: np.copyto(target, array.reshape(target.shape)))

    def start(self, client: CData, grid: CData, options: CData, cell: CData) -> None:
        """Submits; the caller has entered. The job comes into the cell, also if a signal's handler raises."""
        check(lib.gpud_launch(client, self.kernel._handle, self.args, self.count, grid, options, cell))

    def finish(self) -> Any:
        """The results of a job that succeeded: None, an array, or a tuple of them. ClosedError: they are gone."""
        if self._scratch:
            self.session.enter()
        try:
            for copy in self._after:
                copy()
        finally:
            if self._scratch:
                self.session.leave()
        results = self.results
        self.drop(True)
        return one_or_all(results)


class _Seen:
    """The shape and type of an argument as kernels see it."""

    __slots__ = ("shape", "dtype")

    def __init__(self, shape: Tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype

    @staticmethod
    def of(value: Any) -> Any:
        value = without_out(value)
        if isinstance(value, Buffer):
            return _Seen(value._seen_shape(), value.dtype)
        return value
