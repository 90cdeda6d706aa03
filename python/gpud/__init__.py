"""gpud: send compute jobs to the GPU job server of this host, with NumPy arrays.

    import gpud, numpy as np

    g = gpud.connect()
    x = np.linspace(0, 1, 1_000_000, dtype=np.float32)
    y = g.call("axpy", 2.0, x, x)             # new arrays come back; the inputs stay as they were

Where to look:

    connect, Client     a session: call, compile, array, program, submit, devices
    aconnect            the same for asyncio
    Buffer              an array that stays on the device
    Kernel, Module      compiled source: OpenCL C, CUDA C, gpud's portable dialect
    Program             several steps as one job
    Job, Options        jobs that run while the program does something else
    Error               what fails, in families (help(gpud.errors))

Built-in kernels are listed by `gpuctl kernels` and in docs/kernels.md; `g.kernel("gemm").signature` says what one
takes. Numbers and arrays are checked before a job runs: an error names the argument. Blocking calls let other threads
run, and Ctrl-C ends them.

A first session:

>>> x = np.float32([[3, 1], [2, 4]])
>>> g.call("sqrt", x)
array([[1.7320508, 1.       ],
       [1.4142135, 2.       ]], dtype=float32)
>>> g.call("gemm", x, x)
array([[11.,  7.],
       [14., 18.]], dtype=float32)
>>> b = g.array(x)                            # on the device
>>> c = g.call("gemm", b, b)                  # stays there
>>> c
<gpud.Buffer float32 (2, 2)>
>>> c.get().sum()
50.0
"""

from gpud._lib import lib as _lib
from gpud._lib import text as _text
from gpud.aio import AsyncClient, aconnect
from gpud.buffer import Buffer
from gpud.client import Client, Device, Limits, connect
from gpud.errors import (
    ArgAccessError,
    ArgCountError,
    ArgShapeError,
    ArgTypeError,
    BadHandleError,
    BufferLostError,
    BusyError,
    CancelledError,
    ClosedError,
    CompileError,
    CompileLimitError,
    ConnectError,
    ConnectionError,
    DeadlineError,
    DeviceLostError,
    DeviceMemoryError,
    DrainingError,
    Error,
    ExistsError,
    ForkedError,
    InternalError,
    InvalidError,
    IoError,
    JobError,
    KernelFaultError,
    LaunchError,
    LimitError,
    NoDeviceError,
    NomemError,
    NotFoundError,
    PermissionError,
    ProtocolError,
    QuarantinedError,
    RangeError,
    RefusedError,
    RequestError,
    SealedError,
    StaleHandleError,
    StateError,
    TimeLimitError,
    TimeoutError,
    UndefinedError,
    UnsupportedError,
    VersionError,
    WorkerLostError,
)
from gpud.job import Job, Options, Times
from gpud.kernel import Kernel, Module
from gpud.program import Node, Program, ProgramFunction

#: The version of libgpud.
__version__ = _text(_lib.gpud_version())

__all__ = [
    "connect",
    "aconnect",
    "Client",
    "AsyncClient",
    "Buffer",
    "Kernel",
    "Module",
    "Program",
    "ProgramFunction",
    "Node",
    "Job",
    "Options",
    "Times",
    "Device",
    "Limits",
    "Error",
    "RequestError",
    "ConnectionError",
    "RefusedError",
    "JobError",
]
__all__ += [_name for _name in dir() if _name.endswith("Error") and _name not in __all__]
