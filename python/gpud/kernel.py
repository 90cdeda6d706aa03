"""Kernels and modules: what a kernel's parameters are, and how results follow from arguments."""

from __future__ import annotations

import copy
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Dict, Final, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from gpud._dtypes import DTYPES, native, number_of, shape_of, struct_of
from gpud._lib import CData, encode, ffi, lib, sized, text
from gpud._session import Handle, Session
from gpud.buffer import IN, INOUT, OUT, Buffer, wrap
from gpud.errors import ArgCountError, ArgShapeError, ArgTypeError, check
from gpud.job import Options

if TYPE_CHECKING:
    from gpud.client import Client

OPTIONS = frozenset(field.name for field in fields(Options))
ARRAY, STRUCT, LOCAL = lib.GPUD_ARG_ARRAY, lib.GPUD_ARG_STRUCT, lib.GPUD_ARG_LOCAL

#: Languages by name and by the suffix of a file.
LANGS: Final[Dict[str, int]] = {
    "dialect": lib.GPUD_LANG_DIALECT,
    "opencl": lib.GPUD_LANG_OPENCL,
    "cuda": lib.GPUD_LANG_CUDA,
    "ptx": lib.GPUD_LANG_PTX,
    "cubin": lib.GPUD_LANG_CUBIN,
    "spirv": lib.GPUD_LANG_SPIRV,
}
SUFFIXES: Final[Dict[str, str]] = {
    ".gk": "dialect",
    ".cl": "opencl",
    ".cu": "cuda",
    ".ptx": "ptx",
    ".cubin": "cubin",
    ".fatbin": "cubin",
    ".spv": "spirv",
}


class _Missing:
    """In place of an argument that is not given: a result to allocate."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Dim(NamedTuple):
    """A dimension of a signature: `name * factor + offset`, or a number (no name)."""

    name: Optional[str]
    factor: int
    offset: int

    def value(self, sizes: Dict[str, int]) -> Optional[int]:
        if self.name is None:
            return self.offset
        n = sizes.get(self.name)
        return None if n is None else n * self.factor + self.offset


class Param(NamedTuple):
    """A parameter of a kernel."""

    name: str
    kind: int  # ARRAY, STRUCT, LOCAL, else a scalar
    access: int  # of an array: IN, OUT, INOUT
    dtype: int  # gpud's number; 0: any, or of the kernel's family
    nbytes: int  # of a struct
    dims: Optional[Tuple[Dim, ...]]  # where a signature has them


_ARG = re.compile(r"\s*(?:(?:in|out|inout)\s+)?\w+\s+(\w+)\s*(?:\[(.*)\])?\s*$")
_DIM = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)\s*(?:\*\s*(\d+))?\s*(?:\+\s*(\d+))?)\s*$")


def _dim(source: str) -> Optional[Dim]:
    match = _DIM.match(source)
    if match is None:
        return None
    number, name, factor, offset = match.groups()
    return Dim(None, 0, int(number)) if number else Dim(name, int(factor or 1), int(offset or 0))


def signature_dims(signature: str) -> Dict[str, Tuple[Dim, ...]]:
    """The dimensions of each array in a signature line.

    >>> signature_dims("rgb_to_gray(in u8 src[h,w,3], out f32 dst[h,w])  over h, w")["src"][2]
    Dim(name=None, factor=0, offset=3)
    """
    found: Dict[str, Tuple[Dim, ...]] = {}
    inside = re.search(r"\((.*?)\)", signature)
    for part in re.split(r",(?![^\[]*\])", inside.group(1)) if inside else []:
        match = _ARG.match(part)
        if match is not None and match.group(2) is not None:
            dims = [_dim(source) for source in match.group(2).split(",")]
            if all(dim is not None for dim in dims):
                found[match.group(1)] = tuple(dim for dim in dims if dim is not None)
    return found


class Kernel:
    """A kernel that can be called, of `Client.kernel` or of a module.

    >>> axpy = g.kernel("axpy")
    >>> axpy.signature
    'axpy<T: f32 f64>(T a, in T x[n], inout T y[n])  over n  alias same'
    >>> axpy(2.0, np.float32([1, 2]), np.float32([10, 10]))
    array([12., 14.], dtype=float32)
    """

    def __init__(self, session: Session, handle: CData) -> None:
        self._client: Optional[Client] = None
        self._handle = handle
        self._owner: Optional[Module] = None  # a kernel is valid as long as its module
        desc, arg = sized("gpud_kernel_desc"), sized("gpud_kernel_arg_desc")
        with session as c:
            check(lib.gpud_kernel_info(c, handle, desc))
            self.name: str = text(desc.name)
            #: The signature line; "" if the source has none.
            self.signature: str = text(desc.signature)
            #: The sizes follow from the arguments: no `grid` is needed, or allowed.
            self.auto_grid = bool(desc.auto_grid)
            dims = signature_dims(self.signature)
            params = []
            for i in range(desc.arg_count):
                check(lib.gpud_kernel_arg(c, handle, i, arg))
                name = text(arg.name)
                access = int(arg.access) or INOUT
                params.append(Param(name, int(arg.kind), access, int(arg.dtype), int(arg.bytes), dims.get(name)))
        self.params: Tuple[Param, ...] = tuple(params)
        self._names = {param.name: i for i, param in enumerate(params)}
        self._out = tuple(i for i, p in enumerate(params) if p.kind == ARRAY and p.access == OUT)
        self._plans: Dict[Any, Tuple[Tuple[int, ...], Tuple[int, ...]]] = {}
        self._arrays = tuple(i for i, p in enumerate(params) if p.kind == ARRAY)
        self._written = tuple(i for i, p in enumerate(params) if p.kind == ARRAY and p.access & OUT)

    def __repr__(self) -> str:
        return f"<gpud.Kernel {self.signature or self._call_form()}>"

    def _call_form(self) -> str:
        return f"{self.name}({', '.join(param.name for param in self.params)})"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Runs the kernel and waits: see `Client.call`, which takes the same arguments after the kernel."""
        assert self._client is not None  # the package's users have kernels of `_of`
        return self._client.call(self, *args, **keywords)

    def _of(self, client: Client, owner: Optional[Module] = None) -> Kernel:
        """The same for the package's user: it can be called."""
        kernel = copy.copy(self)
        kernel._client, kernel._owner = client, owner
        return kernel

    def _bind(self, args: Sequence[Any], named: Dict[str, Any], out: Any) -> List[Any]:
        """A value for each parameter, MISSING for results that are to be allocated."""
        outs = () if out is None else tuple(out) if isinstance(out, (tuple, list)) else (out,)
        key = (len(args), tuple(named), len(outs))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(*key)
        values: List[Any] = [MISSING] * len(self.params)
        positions, targets = plan
        for i, value in zip(positions, args):
            values[i] = value
        for name, value in named.items():
            values[self._names[name]] = value
        for i, value in zip(targets, outs):
            values[i] = Out(value)
        return values

    def _plan(self, given: int, named: Tuple[str, ...], outs: int) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
        """Which parameters the arguments by position are for, and which `out` is for."""
        left = list(range(len(self.params)))
        for name in named:
            if name not in self._names:
                hint = ", which options=gpud.Options(...) takes" if name in OPTIONS else ""
                raise ArgCountError(f"{self.name} has no parameter {name!r}{hint}: {self._call_form()}")
            left.remove(self._names[name])
        targets = self._targets(left, outs) if outs else ()
        left = [i for i in left if i not in targets]
        inputs = [i for i in left if i not in self._out]
        if given not in (len(left), len(inputs)):
            raise self._count_error(given + len(self.params) - len(left))
        return tuple(left if given == len(left) else inputs), targets

    def _targets(self, left: List[int], outs: int) -> Tuple[int, ...]:
        """`out` stands for the parameters that are only written, else for the last ones that are written."""
        targets = [i for i in self._out if i in left] or [i for i in self._written if i in left][-outs:]
        if outs != len(targets):
            raise ArgCountError(f"{self.name}: out has {outs} arrays for {len(targets)} results")
        return tuple(targets)

    def _count_error(self, given: int) -> ArgCountError:
        form = self.signature.split("  ")[0] or self._call_form()
        return ArgCountError(f"{form}: {given} arguments given")

    def _missing(self, at: int, values: Sequence[Any]) -> Tuple[Tuple[int, ...], np.dtype[Any]]:
        """The shape and type of a result, from the arrays among the arguments (anything with shape and dtype)."""
        param = self.params[at]
        arrays = [(p, v) for p, v in zip(self.params, values) if p.kind == ARRAY and v is not MISSING]
        return self._missing_shape(param, arrays), self._missing_dtype(param, arrays)

    def _missing_shape(self, param: Param, arrays: List[Tuple[Param, Any]]) -> Tuple[int, ...]:
        if param.dims is None:
            raise ArgShapeError(f"{self.name}: give argument {param.name}, or out=: its size is not known")
        sizes: Dict[str, int] = {}
        for p, value in arrays:
            if p.dims == param.dims:
                return tuple(value.shape)
            _measure(p, value.shape, sizes)
        dims = [dim.value(sizes) for dim in param.dims]
        if any(n is None for n in dims):
            unknown = ", ".join(str(d.name) for d, n in zip(param.dims, dims) if n is None)
            raise ArgShapeError(
                f"{self.name}: argument {param.name}: {unknown} does not follow from the other arguments: give out="
            )
        return tuple(n for n in dims if n is not None)

    def _missing_dtype(self, param: Param, arrays: List[Tuple[Param, Any]]) -> np.dtype[Any]:
        if param.dtype:
            return DTYPES[param.dtype]
        for p, value in arrays:
            if p.dtype == 0:
                return native(value.dtype)
        raise ArgTypeError(f"{self.name}: argument {param.name}: its type does not follow: give out=")


class Out(NamedTuple):
    """An argument that was given by `out=`: it is written in place."""

    value: Any


def without_out(value: Any) -> Any:
    """The argument itself, also if it was given by `out=`."""
    return value.value if type(value) is Out else value


def one_or_all(results: List[Any]) -> Any:
    """What a call returns: None, its result, or a tuple of its results."""
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _measure(param: Param, shape: Tuple[int, ...], sizes: Dict[str, int]) -> None:
    """Sets the named sizes that an array of this shape fixes."""
    if param.dims is None:
        return
    if len(param.dims) == 1:
        shape = (int(np.prod(shape, dtype=np.int64)),)
    if len(param.dims) != len(shape):
        return
    for dim, n in zip(param.dims, shape):
        if dim.name is not None and dim.name != "groups" and n >= dim.offset:
            sizes.setdefault(dim.name, (n - dim.offset) // dim.factor)


class Module:
    """Compiled source: `module["name"]` is a kernel, iterating gives their names.

    >>> source = '''
    ... //@kernel twice(in f32 x[n], out f32 y[n])  over n
    ... { y[i] = 2.0f * x[i]; }
    ... '''
    >>> with g.compile(source=source, lang="dialect") as module:
    ...     module["twice"](np.float32([1, 2, 3]))
    array([2., 4., 6.], dtype=float32)

    It is unloaded at the end of a `with` block, by `unload`, or when nothing refers to it or its kernels any more.
    """

    def __init__(self, client: Client, handle: CData, log: str) -> None:
        self._client = client
        self._session: Session = client._session
        self._handle = Handle(self._session, handle, lib.gpud_module_unload)
        #: What the compiler said: warnings.
        self.log = log

    def __getitem__(self, name: str) -> Kernel:
        kernel = ffi.new("gpud_kernel *")
        with self._session as c:
            check(lib.gpud_module_kernel(c, self._handle.value, encode(name), kernel))
        return Kernel(self._session, kernel[0])._of(self._client, self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __repr__(self) -> str:
        return f"<gpud.Module {', '.join(self.names)}>"

    @property
    def names(self) -> List[str]:
        """The names of the module's kernels."""
        found: List[str] = []
        kernel, desc = ffi.new("gpud_kernel *"), sized("gpud_kernel_desc")
        with self._session as c:
            while lib.gpud_module_kernel_at(c, self._handle.value, len(found), kernel) == 0:
                check(lib.gpud_kernel_info(c, kernel[0], desc))
                found.append(text(desc.name))
        return found

    def variable(self, name: str, shape: Any, dtype: Any, *, read_only: bool = False) -> Buffer:
        """A `__constant__` or `__device__` variable of CUDA code as a buffer; `read_only`: kernels only read it."""
        dims = shape_of(shape, name)
        desc = struct_of(dims, number_of(np.dtype(dtype), name))
        buffer = ffi.new("gpud_buffer *")
        access = IN if read_only else INOUT
        with self._session as c:
            check(lib.gpud_module_variable(c, self._handle.value, encode(name), desc, access, 0, buffer))
        return wrap(self._session, buffer[0])

    def unload(self) -> None:
        """Unloads the module after its jobs have ended."""
        self._handle.free()

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *error: object) -> None:
        self.unload()
