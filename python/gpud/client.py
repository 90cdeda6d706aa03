"""The client: a session with the daemon."""

from __future__ import annotations

import os
import pathlib
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union, overload

import numpy as np
import numpy.typing as npt

from gpud import buffer as buffers
from gpud import shared
from gpud._args import Grid, Prepared, as_array, grid_of
from gpud._constants import GPUD_FOREVER, GPUD_MAX_LOG
from gpud._dtypes import native, shape_of
from gpud._lib import CData, encode, ffi, lib, sized, text
from gpud._session import Session
from gpud.buffer import Buffer
from gpud.errors import CompileError, InvalidError, LimitError, NotFoundError, check, last_error
from gpud.job import Job, Options, submit, submit_options
from gpud.kernel import LANGS, SUFFIXES, Kernel, Module
from gpud.program import Bound, Program, ProgramFunction

Work = Union[str, Kernel, Program]
Value = Union[str, int, bool]


@dataclass(frozen=True)
class Device:
    """A device of the daemon."""

    id: int
    name: str
    backend: str
    state: str
    memory_bytes: int
    memory_used: int
    cpu: bool
    #: Computes slowly, with invented times.
    simulated: bool


@dataclass(frozen=True)
class Event:
    """What `connect(on_event=…)` hears of: kind is "disconnected", "reconnected", "restarted", "buffer_lost",
    "draining", "resumed" or "restore_failed"; text says more."""

    kind: str
    text: str


_EVENTS = {
    lib.GPUD_EVENT_DISCONNECTED: "disconnected",
    lib.GPUD_EVENT_RECONNECTED: "reconnected",
    lib.GPUD_EVENT_RESTARTED: "restarted",
    lib.GPUD_EVENT_BUFFER_LOST: "buffer_lost",
    lib.GPUD_EVENT_DRAINING: "draining",
    lib.GPUD_EVENT_RESUMED: "resumed",
    lib.GPUD_EVENT_RESTORE_FAILED: "restore_failed",
}


@dataclass(frozen=True)
class Limits:
    """What the daemon allows this session."""

    tenant: str
    session: int
    build: str
    protocol: str
    may_load: bool
    connected: bool
    max_in_flight: int
    max_inline: int
    max_arena: int
    max_buffers: int
    max_modules: int
    max_programs: int


class Request(NamedTuple):
    """What a call asks for."""

    kernel: Work
    args: Tuple[Any, ...]
    out: Any
    grid: Grid
    local: Grid
    shared: int
    named: Dict[str, Any]

    def in_parts(self, options: Optional[Options]) -> bool:
        """May it be sent in parts if no message and no shared memory takes its arrays (tcp, limits)?"""
        return options is None and not isinstance(self.kernel, Program)


class Client:
    """A session with the daemon, of `gpud.connect`. It may be used from any thread.

    `call` runs a kernel with NumPy arrays. `array` and `empty` make arrays that stay on the device. `compile` takes
    source, `program` makes one job of several steps, and `submit` does not wait.
    """

    def __init__(
        self, url: Optional[str], options: Dict[str, Any], on_event: Optional[Callable[[Event], Any]] = None
    ) -> None:
        #: The address that it was opened with.
        self.url = url
        self._session = Session(url, options)
        self._kernels: Dict[str, Kernel] = {}
        self._block, _ = submit_options(None, True)
        if on_event is not None:
            self._hear(on_event)
        self._finalizer = weakref.finalize(self, self._session.close)

    def _hear(self, hear: Callable[[Event], Any]) -> None:
        def heard(client: CData, event: CData, user: CData) -> None:
            hear(Event(_EVENTS.get(event.kind, "unknown"), text(event.text) if event.text else ""))

        self._session.callback = ffi.callback("gpud_event_cb", heard)
        with self._session as client:
            check(lib.gpud_set_event_cb(client, self._session.callback, ffi.NULL))

    # ---- kernels -------------------------------------------------------------------------------

    def call(
        self,
        kernel: Work,
        *args: Any,
        out: Any = None,
        grid: Grid = None,
        local: Grid = None,
        shared: int = 0,
        options: Optional[Options] = None,
        timeout: Optional[float] = None,
        **named: Any,
    ) -> Any:
        """Runs a kernel and waits for its results.

        kernel: the name of a built-in kernel, a Kernel, or a Program. Arguments go by position or by name. Results
        need not be given: their shapes follow from the kernel's signature.

        >>> x, y = np.float32([1, 2, 3]), np.float32([10, 10, 10])
        >>> g.call("axpy", 2.0, x, y)
        array([12., 14., 16.], dtype=float32)
        >>> y                                       # arrays of the host stay as they were
        array([10., 10., 10.], dtype=float32)
        >>> g.call("histogram", np.uint8([0, 1, 1]), out=np.zeros(4, np.uint32))
        array([1, 2, 0, 0], dtype=uint32)

        Results are new arrays: NumPy's, or Buffers if a Buffer is among the arguments. Several results come as a
        tuple. `out` has arrays or Buffers for them (several as a tuple), which are returned. A Buffer that the kernel
        changes is changed in place.

        grid, local: work items and the size of a group, x first, for kernels whose signature does not give them;
        shared: bytes of dynamic local memory. timeout: seconds, then TimeoutError; the job goes on. Ctrl-C cancels
        the job, within a tenth of a second once it was submitted.
        """
        if self._session.timeout is not None and timeout is None:
            timeout = self._session.timeout
        request = Request(kernel, args, out, grid, local, shared, named)
        try:
            job = self._submit(request, options)
        except LimitError:
            if not request.in_parts(options):
                raise
            return self._call_in_parts(request)
        try:
            return job.result(timeout)
        except (KeyboardInterrupt, SystemExit):
            job._cancel_later()
            raise

    def submit(
        self,
        kernel: Work,
        *args: Any,
        out: Any = None,
        grid: Grid = None,
        local: Grid = None,
        shared: int = 0,
        options: Optional[Options] = None,
        **named: Any,
    ) -> Job:
        """Submits a kernel or a program and does not wait for the job's end; arguments as for `call`.

        While the session has as many jobs in flight as it may, this waits for room, and Ctrl-C takes effect afterwards.
        Arrays that large jobs read are copied before it returns. Arrays given as `out` are written when the job is
        waited for.
        """
        return self._submit(Request(kernel, args, out, grid, local, shared, named), options)

    def _submit(self, request: Request, options: Optional[Options]) -> Job:
        if options is None:
            return submit(self._session, lambda: self._prepare(request), self._block)
        o, label = submit_options(options, True)
        job = submit(self._session, lambda: self._prepare(request), o)
        del label  # the struct had a pointer to it
        return job

    def _call_in_parts(self, request: Request) -> Any:
        """libgpud sends the arrays in parts."""
        assert not isinstance(request.kernel, Program)
        k = self._find(request.kernel)
        work = Prepared(self._session, k, k._bind(request.args, request.named, request.out), False)
        try:
            grid = grid_of(request.grid, request.local, request.shared)
            with self._session as client:
                check(lib.gpud_call(client, k._handle, work.args, work.count, grid))
        except BaseException:
            work.fail()
            raise
        return work.finish()

    def _prepare(self, request: Request) -> Tuple[Union[Prepared, Bound], CData]:
        """Arguments that are ready to be submitted, and their grid. The caller has entered the session."""
        kernel, args, out, grid, local, shared_bytes, named = request
        if isinstance(kernel, Program):
            if named or out is not None or grid is not None or local is not None or shared_bytes:
                raise InvalidError(f"{kernel!r}: a program takes one value for each parameter, and nothing else")
            return kernel._prepare(args), ffi.NULL
        if not isinstance(kernel, (str, Kernel)):
            raise TypeError(f"a kernel, its name or a program is needed, not a {type(kernel).__name__}")
        k = self._find(kernel)
        cgrid = grid_of(grid, local, shared_bytes)
        return Prepared(self._session, k, k._bind(args, named, out)), cgrid

    def kernel(self, name: str) -> Kernel:
        """A built-in kernel: "axpy", or "axpy@3" for one version. NotFoundError."""
        return self._find(name)._of(self)

    def _find(self, name: Union[str, Kernel]) -> Kernel:
        """The same, kept for the next time; it does not refer to the client. A Kernel stands for itself."""
        if isinstance(name, Kernel):
            return name
        found = self._kernels.get(name)
        if found is None:
            handle = ffi.new("gpud_kernel *")
            with self._session as client:
                check(lib.gpud_kernel_find(client, encode(name), handle))
            found = self._kernels[name] = Kernel(self._session, handle[0])
        return found

    def compile(
        self,
        *,
        path: Union[str, os.PathLike[str], None] = None,
        source: Union[str, bytes, None] = None,
        lang: Optional[str] = None,
        options: Optional[str] = None,
        headers: Optional[Mapping[str, Union[str, bytes]]] = None,
        signature: Optional[str] = None,
        name: Optional[str] = None,
    ) -> Module:
        """Compiles a file or a text; `module["name"]` is a kernel.

        lang: "opencl", "cuda", "dialect", "ptx" or "cubin"; a file's suffix stands for it (.cl .cu .gk .ptx .cubin).
        options: for the compiler, "-DN=4". headers: the texts that the source includes, by name. signature: signature
        lines (docs/kernels.md) for code without them, by which results need not be given.

        CompileError has the compiler's output as `log`.

        >>> source = '''
        ... __kernel void halve(__global const float *x, __global float *y)
        ... {
        ...     y[get_global_id(0)] = x[get_global_id(0)] / 2;
        ... }'''
        >>> module = g.compile(source=source, lang="opencl")
        >>> x = np.float32([2, 4, 6])
        >>> module["halve"](x, out=np.empty_like(x), grid=x.size)
        array([1., 2., 3.], dtype=float32)
        """
        if (path is None) == (source is None):
            raise InvalidError("compile: give path= or source=")
        if path is not None:
            file = pathlib.Path(path)
            lang = lang or SUFFIXES.get(file.suffix)
            source = file.read_bytes()
        if lang not in LANGS:
            raise InvalidError(f"compile: lang={lang!r}: give one of {', '.join(LANGS)}")
        data = source.encode() if isinstance(source, str) else bytes(source or b"")
        return self._load(data, LANGS[lang], name, options, headers or {}, signature, path)

    def _load(
        self,
        data: bytes,
        lang: int,
        name: Optional[str],
        options: Optional[str],
        headers: Mapping[str, Union[str, bytes]],
        signature: Optional[str],
        path: Union[str, os.PathLike[str], None],
    ) -> Module:
        o, log = sized("gpud_module_options"), ffi.new("char[]", GPUD_MAX_LOG + 1)
        texts = [value.encode() if isinstance(value, str) else bytes(value) for value in headers.values()]
        keep = [encode(key) for key in headers] + [ffi.from_buffer(value) for value in texts]
        table = ffi.new("gpud_header[]", len(texts))
        for i, value in enumerate(texts):
            table[i].name, table[i].text, table[i].bytes = keep[i], keep[len(texts) + i], len(value)
        file = None if path is None else os.fspath(path)
        strings = [encode(value) for value in (name, options, signature, file)]
        o.name, o.options, o.signature, o.file = strings
        o.log, o.log_bytes = log, len(log)
        o.headers, o.header_count = table, len(texts)
        module = ffi.new("gpud_module *")
        with self._session as client:
            code = lib.gpud_module_load(client, lang, ffi.from_buffer(data), len(data), o, module)
            error = last_error(code) if code < 0 else None
        if isinstance(error, CompileError):
            error.log = text(log)
        if error is not None:
            raise error
        return Module(self, module[0], text(log))

    @overload
    def program(self, what: Callable[..., Any]) -> ProgramFunction: ...

    @overload
    def program(self, what: Optional[str] = None) -> Program: ...

    def program(self, what: Union[Callable[..., Any], str, None] = None) -> Union[Program, ProgramFunction]:
        """Starts a program: `with g.program("name") as p:`; or, as a decorator, makes one of a function (Program)."""
        if callable(what):
            return ProgramFunction(self, what)
        return Program(self, what)

    # ---- arrays --------------------------------------------------------------------------------

    def array(self, array: Any, dtype: Any = None, *, label: Optional[str] = None) -> Buffer:
        """A Buffer with a copy of an array: of NumPy, a list, or an object with __dlpack__ or the buffer protocol."""
        source = as_array(array if dtype is None else np.asarray(array, dtype), 0, "array")
        result = buffers.create(self._session, source.shape, source.dtype, 0, label)
        result.set(source)
        return result

    def empty(
        self,
        shape: Any,
        dtype: Any = np.float32,
        *,
        label: Optional[str] = None,
        device: Optional[int] = None,
        export: bool = False,
        managed: bool = False,
        stay: bool = False,
    ) -> Buffer:
        """A Buffer whose content is undefined until it is written; float32 unless `dtype` is given.

        device: its id; None: the daemon chooses. export: for `Buffer.export`. managed: memory that the driver moves
        (CUDA). stay: it never moves to the host.
        """
        flags = lib.GPUD_BUFFER_EXPORT if export else 0
        flags |= lib.GPUD_BUFFER_MANAGED if managed else 0
        flags |= lib.GPUD_BUFFER_STAY if stay else 0
        return buffers.create(self._session, shape, dtype, flags, label, device)

    def empty_like(self, array: Any) -> Buffer:
        """An empty Buffer with the shape and type of an array or a Buffer."""
        return self.empty(array.shape, array.dtype)

    def zeros(self, shape: Any, dtype: Any = np.float32, *, label: Optional[str] = None) -> Buffer:
        """A Buffer of zeros."""
        return buffers.create(self._session, shape, dtype, lib.GPUD_BUFFER_ZERO, label)

    def open(self, name: str) -> Buffer:
        """A Buffer that another session of the tenant published. NotFoundError, PermissionError."""
        return buffers.open_named(self._session, name)

    def open_granted(self, tenant: str, name: str) -> Buffer:
        """A sealed copy of its own of a Buffer that another tenant granted (`Buffer.grant`).

        NotFoundError, also without the right to it.
        """
        return buffers.open_granted(self._session, tenant, name)

    def shared_empty(self, shape: Any, dtype: Any = np.float32) -> npt.NDArray[Any]:
        """A NumPy array in memory that is shared with the daemon: only the device copies it.

        Worth it for large arrays that are used again and again, as inputs and as `out`. Allocating one is slow. The
        array outlives the client. Over tcp it is a usual array.

        >>> x = g.shared_empty((480, 640), np.float32)
        >>> x[...] = 1
        >>> float(g.call("reduce_sum", x)[0])
        307200.0
        """
        return shared.allocate(self._session, shape_of(shape, "shared_empty"), native(dtype))

    # ---- what is there -------------------------------------------------------------------------

    def devices(self) -> List[Device]:
        """The devices of the daemon."""
        found: List[Device] = []
        desc = sized("gpud_device_desc")
        with self._session as client:
            while True:
                code = lib.gpud_device_info(client, len(found), desc)
                if code < 0:
                    error = last_error(code)
                    if isinstance(error, NotFoundError):
                        return found
                    raise error
                found.append(
                    Device(
                        int(desc.id),
                        text(desc.name),
                        text(desc.backend),
                        text(desc.state),
                        int(desc.memory_bytes),
                        int(desc.memory_used),
                        bool(desc.cpu),
                        bool(desc.simulated),
                    )
                )

    @property
    def limits(self) -> Limits:
        """What the daemon allows this session."""
        d = sized("gpud_limits_desc")
        with self._session as client:
            check(lib.gpud_limits(client, d))
        return Limits(
            text(d.tenant),
            int(d.session),
            text(d.build),
            f"{d.major}.{d.minor}",
            bool(d.may_load),
            bool(d.connected),
            int(d.max_in_flight),
            int(d.max_inline),
            int(d.max_arena),
            int(d.max_buffers),
            int(d.max_modules),
            int(d.max_programs),
        )

    def query(self, what: str, filter: Optional[str] = None) -> List[Dict[str, Value]]:
        """A table of the daemon, a dict for each row: "status", "devices", "kernels", "jobs" … (see gpuctl(1)).

        >>> [row["name"] for row in g.query("kernels", "axpy")]
        ['axpy']
        """
        table = ffi.new("gpud_table **")
        with self._session as client:
            check(lib.gpud_query(client, encode(what), encode(filter), table))
        try:
            return _rows(table[0])
        finally:
            lib.gpud_table_free(table[0])

    def ping(self) -> float:
        """Seconds of a round trip to the daemon."""
        nanos = ffi.new("uint64_t *")
        with self._session as client:
            check(lib.gpud_ping(client, nanos))
        return float(nanos[0] / 1e9)

    def control(self, what: str, value: Optional[str] = None) -> None:
        """For operators: "drain", "resume", "reload", "log-level", "session-kill", "pool-trim" … PermissionError."""
        with self._session as client:
            check(lib.gpud_control(client, encode(what), encode(value)))

    def flush(self, timeout: Optional[float] = None) -> None:
        """Waits for the end of all jobs submitted so far, good or bad."""
        with self._session as client:
            check(lib.gpud_flush(client, GPUD_FOREVER if timeout is None else int(timeout * 1e9)))

    # ---- the end -------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        return self._session.closed

    def close(self) -> None:
        """Ends the session: its buffers and programs are freed, its jobs cancelled.

        Threads that wait for the client get ClosedError. Later calls raise ClosedError, too. It is also done at the
        end of a `with` block, of the interpreter, and when nothing refers to the client any more.
        """
        self._finalizer()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gpud.Client {'closed' if self.closed else 'open'}>"


def _rows(table: Any) -> List[Dict[str, Value]]:
    columns = []
    for c in range(lib.gpud_table_columns(table)):
        columns.append((text(lib.gpud_table_column_name(table, c)), int(lib.gpud_table_column_kind(table, c))))
    rows: List[Dict[str, Value]] = []
    for r in range(lib.gpud_table_rows(table)):
        row: Dict[str, Value] = {}
        for c, (name, kind) in enumerate(columns):
            row[name] = _cell(table, r, c, kind)
        rows.append(row)
    return rows


def _cell(table: Any, row: int, column: int, kind: int) -> Value:
    if kind == lib.GPUD_COLUMN_TEXT:
        return text(lib.gpud_table_text(table, row, column))
    value = int(lib.gpud_table_value(table, row, column))
    if kind == lib.GPUD_COLUMN_BOOL:
        return bool(value)
    return value - 2**64 if kind == lib.GPUD_COLUMN_INT and value >= 2**63 else value


def connect(
    url: Optional[str] = None,
    *,
    name: Optional[str] = None,
    token: Union[str, bytes, None] = None,
    connect_timeout: Optional[float] = None,
    timeout: Optional[float] = None,
    reconnect: Optional[float] = None,
    ca_file: Optional[str] = None,
    cert_file: Optional[str] = None,
    key_file: Optional[str] = None,
    server_name: Optional[str] = None,
    on_event: Optional[Callable[[Event], Any]] = None,
) -> Client:
    """Connects to the daemon and opens a session.

    url: "ipc:///path", "tcp://host:port" or "tls+tcp://host:port"; None: $GPUD_URL, else the daemon of this host.
    name: shown in `gpuctl sessions`. connect_timeout: seconds to wait for the daemon (5). timeout: seconds for each
    blocking call (for ever), except `flush` and waits for a Job, which take their own. reconnect: seconds that calls
    and jobs outlive a lost connection (30). token, ca_file, cert_file, key_file, server_name: for tls+tcp, as in
    docs/operating.md.

    ConnectError, PermissionError, VersionError, BusyError.
    """
    options = {key: value for key, value in locals().items() if key not in ("url", "on_event")}
    return Client(url, options, on_event)
