"""Programs: steps that run in order as one job, checked once and run many times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, Type, Union

import numpy as np
import numpy.typing as npt

from gpud._args import Arguments, Grid, as_array, exact, grid_of, own, scalar
from gpud._dtypes import native, number_of, shape_of, struct_of
from gpud._lib import CData, encode, ffi, lib
from gpud.buffer import IN, INOUT, OUT, Buffer
from gpud.errors import ArgCountError, ArgTypeError, Error, StateError, check
from gpud.job import Job, Options
from gpud.kernel import ARRAY, LOCAL, MISSING, STRUCT, Kernel, Out, Param, one_or_all, without_out

if TYPE_CHECKING:
    from gpud.client import Client

BUFFER_PARAM, SCALAR_PARAM, DATA_PARAM = lib.GPUD_PARAM_BUFFER, lib.GPUD_PARAM_SCALAR, lib.GPUD_PARAM_DATA
CACHE_MAX = 64


class Node:
    """A value inside a program: a parameter, or memory that lives while a job runs. It has a shape and a dtype."""

    def __init__(self, program: Program, arg: CData, kind: int, shape: Tuple[int, ...], dtype: Any, name: str) -> None:
        self.program = program
        self.arg = arg
        self.kind = kind  # 0: a temporary
        self.shape = shape
        self.dtype = dtype
        self.name = name

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def __repr__(self) -> str:
        return f"<gpud.Node {self.name} {self.dtype} {self.shape}>"


class Program:
    """Steps that run as one job. Built in a `with` block, then called like a function, from any thread.

    >>> with g.program("norm") as p:
    ...     x = p.input(4, np.float32)
    ...     p.output(p.call("sqrt", p.call("dot", x, x)))
    >>> p(np.float32([1, 1, 1, 1]))
    array([2.], dtype=float32)

    `Client.program` is also a decorator, which builds a program for each combination of shapes and types:

    >>> @g.program
    ... def norm(p, x):
    ...     return p.call("sqrt", p.call("dot", x, x))
    >>> norm(np.float32([3, 4])), norm(np.float64([6, 8]))
    (array([5.], dtype=float32), array([10.]))
    """

    def __init__(self, client: Client, name: Optional[str] = None) -> None:
        self._client = client
        self._session = client._session
        self.name = name or "program"
        self.params: List[Node] = []
        self._outputs: List[Tuple[int, Tuple[int, ...], Any]] = []
        self._keep: List[Any] = []
        self._sealed = False
        program = ffi.new("gpud_program **")
        with self._session as c:
            check(lib.gpud_program_create(c, encode(name), program))
        self._program: CData = program[0]

    def __repr__(self) -> str:
        return f"<gpud.Program {self.name}({', '.join(node.name for node in self.params)})>"

    # ---- building ------------------------------------------------------------------------------

    def input(self, shape: Any, dtype: Any, name: Optional[str] = None) -> Node:
        """A parameter for an array of the host with this shape and type; steps only read it."""
        return self._param(DATA_PARAM, shape, dtype, name)

    def buffer(self, shape: Any, dtype: Any, name: Optional[str] = None) -> Node:
        """A parameter for a Buffer with this shape and type; steps read and write it."""
        return self._param(BUFFER_PARAM, shape, dtype, name)

    def scalar(self, dtype: Any = np.float64, name: Optional[str] = None) -> Node:
        """A parameter for a number."""
        return self._param(SCALAR_PARAM, None, dtype, name)

    def temp(self, shape: Any, dtype: Any) -> Node:
        """Memory that lives while a job of the program runs."""
        dims, kind = shape_of(shape, self.name), native(dtype)
        arg = lib.gpud_program_temp(self._building(), struct_of(dims, number_of(kind, self.name)))
        return Node(self, arg, 0, dims, kind, "temporary")

    def _param(self, kind: int, shape: Any, dtype: Any, name: Optional[str]) -> Node:
        what = name or f"p{len(self.params)}"
        dims = () if shape is None else shape_of(shape, what)
        element = native(dtype)
        desc = struct_of(dims, number_of(element, what))
        arg = lib.gpud_program_param(self._building(), encode(what), kind, desc)
        node = Node(self, arg, kind, dims, element, what)
        self.params.append(node)
        return node

    def call(
        self,
        kernel: Union[str, Kernel],
        *args: Any,
        out: Any = None,
        grid: Grid = None,
        local: Grid = None,
        shared: int = 0,
        **named: Any,
    ) -> Any:
        """Adds a launch; arguments as for `Client.call`, and nodes. Results are new temporaries, or `out`."""
        k = self._client._find(kernel)
        values = k._bind(args, named, out)
        results: List[Any] = []
        cargs = ffi.new("gpud_arg[]", len(values))
        for i, param in enumerate(k.params):
            cargs[i] = self._argument(k, i, param, values, results)
        check(lib.gpud_program_launch(self._building(), k._handle, cargs, len(values), grid_of(grid, local, shared)))
        self._keep.append(k)
        return one_or_all(results)

    def _argument(self, k: Kernel, i: int, param: Param, values: List[Any], results: List[Any]) -> CData:
        value, what = values[i], f"{k.name}: argument {param.name}"
        if param.kind != ARRAY:
            return self._value(param, value, what)
        in_place = type(value) is Out
        value = without_out(value)
        if value is MISSING:
            shape, dtype = k._missing(i, [without_out(v) for v in values])
            value = values[i] = self.temp(shape, dtype)
        elif isinstance(value, Node) and param.access == INOUT and not in_place and value.kind != BUFFER_PARAM:
            value = values[i] = self._copied(value)
        elif not isinstance(value, (Node, Buffer)):
            if param.access & OUT:
                raise ArgTypeError(f"{what}: a program writes to its own memory and to buffers, not to arrays")
            return self._constant(as_array(value, param.dtype, what), what)
        if param.access & OUT:
            results.append(value)
        self._keep.append(value)
        return value.arg if isinstance(value, Node) else value._argument()

    def _value(self, param: Param, value: Any, what: str) -> CData:
        if isinstance(value, Node):
            return value.arg
        if param.kind == LOCAL:
            return lib.gpud_local(value)
        if param.kind == STRUCT:
            self._keep.append(bytes(value))
            return lib.gpud_bytes(ffi.from_buffer(self._keep[-1]), len(self._keep[-1]))
        return scalar(value, param.dtype, what)

    def _constant(self, array: npt.NDArray[Any], what: str) -> CData:
        self._keep.append(array)
        memory = ffi.from_buffer(array) if array.size else ffi.NULL
        return lib.gpud_host_shaped(memory, (number_of(array.dtype, what), array.ndim, array.shape), IN)

    def _copied(self, node: Node) -> Node:
        """A temporary with the same content, for a kernel that changes it."""
        copy = self.temp(node.shape, node.dtype)
        self.copy(copy, node)
        return copy

    def copy(self, to: Union[Node, Buffer], source: Union[Node, Buffer]) -> None:
        """Adds a copy between buffers and temporaries, or from an input."""
        from_host = isinstance(source, Node) and source.kind == DATA_PARAM
        add = lib.gpud_program_write if from_host else lib.gpud_program_copy
        check(add(self._building(), self._place(to), self._place(source)))

    def fill(self, to: Union[Node, Buffer], value: Any) -> None:
        """Adds a step that sets all elements to a number, or to a scalar parameter."""
        arg = value.arg if isinstance(value, Node) else exact(value, to.dtype, "fill")
        check(lib.gpud_program_fill(self._building(), self._place(to), arg))

    def output(self, value: Union[Node, Buffer, Sequence[Any]]) -> None:
        """Calling the program returns this, as a NumPy array. Several outputs come back as a tuple."""
        if isinstance(value, (tuple, list)):
            for one in value:
                self.output(one)
            return
        if not isinstance(value, (Node, Buffer)):
            raise ArgTypeError(f"{self.name}: an output is a node or a buffer, not a {type(value).__name__}")
        if isinstance(value, Node) and value.kind == DATA_PARAM:
            value = self._copied(value)
        step = check(lib.gpud_program_read(self._building(), self._place(value)))
        self._outputs.append((step, value.shape, value.dtype))

    def _place(self, value: Union[Node, Buffer]) -> CData:
        self._keep.append(value)
        return value.arg if isinstance(value, Node) else value._argument()

    def _building(self) -> CData:
        if self._sealed:
            raise StateError(f"{self.name} is sealed: it cannot change any more")
        return self._program

    def seal(self) -> Program:
        """Has the daemon check the program, which is immutable from then on; the end of a `with` block does it."""
        with self._session:
            check(lib.gpud_program_seal(self._building()))
        self._sealed = True
        return self

    def __enter__(self) -> Program:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        if kind is None:
            self.seal()

    # ---- running -------------------------------------------------------------------------------

    def __call__(self, *args: Any, options: Optional[Options] = None, timeout: Optional[float] = None) -> Any:
        """Runs it with a value for each parameter, in the order in which they were declared, and waits."""
        return self._client.call(self, *args, options=options, timeout=timeout)

    def _prepare(self, args: Sequence[Any]) -> Bound:
        if not self._sealed:
            raise StateError(f"{self.name} is not sealed yet: leave its with block first")
        return Bound(self, args)

    def __del__(self) -> None:
        try:
            self._session.hold()
            try:
                lib.gpud_program_free(self._program)
            finally:
                self._session.leave()
        except (Error, AttributeError, TypeError):
            pass


class Bound(Arguments):
    """A program with a value for each parameter."""

    def __init__(self, program: Program, args: Sequence[Any]) -> None:
        if len(args) != len(program.params):
            raise ArgCountError(f"{program!r}: {len(args)} arguments given")
        super().__init__(program._session, len(args))
        self.program = program
        self._cell: CData = None
        try:
            for i, (node, value) in enumerate(zip(program.params, args)):
                self._bind(i, node, value, f"{program.name}: {node.name}")
        except BaseException:
            self.fail()
            raise

    def _bind(self, i: int, node: Node, value: Any, what: str) -> None:
        if node.kind == SCALAR_PARAM:
            self.args[i] = exact(value, node.dtype, what)
        elif node.kind == BUFFER_PARAM:
            if not isinstance(value, Buffer):
                raise ArgTypeError(f"{what}: a gpud.Buffer is needed, not a {type(value).__name__}")
            self.keep.append(value)
            self.args[i] = own(self.session, value, what)._argument()
        else:
            if isinstance(value, Buffer):
                raise ArgTypeError(f"{what}: an array of the host is needed; p.buffer() declares a buffer")
            array = as_array(value, number_of(node.dtype, what), what)
            self.host(i, what, array, IN, None)

    def start(self, client: CData, grid: CData, options: CData, cell: CData) -> None:
        """Submits; the caller has entered. The job comes into the cell, also if a signal's handler raises."""
        self._cell = cell
        check(lib.gpud_submit(client, self.program._program, self.args, self.count, options, cell))

    def finish(self) -> Any:
        self.session.hold()
        try:
            results = [self._output(step, shape, dtype) for step, shape, dtype in self.program._outputs]
        finally:
            self.session.leave()
        self.drop(True)
        return one_or_all(results)

    def _output(self, step: int, shape: Tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        data, size = ffi.new("void const **"), ffi.new("size_t *")
        check(lib.gpud_job_output(self._cell[0], step, 0, data, size))
        if not size[0]:
            return np.empty(shape, dtype)
        return np.frombuffer(ffi.buffer(data[0], size[0]), dtype).reshape(shape).copy()


class ProgramFunction:
    """What `@g.program` makes of a function: programs by the shapes and types of the arguments, the last 64 of them."""

    def __init__(self, client: Client, build: Callable[..., Any]) -> None:
        self._client = client
        self._build = build
        self._programs: Dict[Any, Program] = {}
        self.__name__ = getattr(build, "__name__", "program")
        self.__doc__ = build.__doc__
        self.__wrapped__ = build

    def __repr__(self) -> str:
        return f"<gpud.ProgramFunction {self.__name__}>"

    def __call__(self, *args: Any, options: Optional[Options] = None, timeout: Optional[float] = None) -> Any:
        values = self._values(args)
        return self.program(*values)(*values, options=options, timeout=timeout)

    def submit(self, *args: Any, options: Optional[Options] = None) -> Job:
        values = self._values(args)
        return self._client.submit(self.program(*values), *values, options=options)

    def _values(self, args: Sequence[Any]) -> List[Any]:
        return [value if _plain(value) else as_array(value, 0, self.__name__) for value in args]

    def program(self, *args: Any) -> Program:
        """The program for arguments like these."""
        key = tuple(_kind_of(value) for value in args)
        program = self._programs.get(key)
        if program is None:
            program = self._trace(args)
            while len(self._programs) >= CACHE_MAX:
                self._programs.pop(next(iter(self._programs)))
            self._programs[key] = program
        return program

    def _trace(self, args: Sequence[Any]) -> Program:
        with Program(self._client, self.__name__) as p:
            nodes = []
            for value in args:
                if isinstance(value, Buffer):
                    nodes.append(p.buffer(value._seen_shape(), value.dtype))
                elif _plain(value):
                    nodes.append(p.scalar(np.asarray(value).dtype))
                else:
                    nodes.append(p.input(value.shape, value.dtype))
            returned = self._build(p, *nodes)
            if returned is not None:
                p.output(returned)
        return p


def _plain(value: Any) -> bool:
    return isinstance(value, (Buffer, int, float, np.generic))


def _kind_of(value: Any) -> Any:
    if isinstance(value, Buffer):
        return ("buffer", value._seen_shape(), value.dtype)
    if _plain(value):
        return np.asarray(value).dtype
    return (value.shape, value.dtype)
