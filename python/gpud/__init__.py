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

Built-in kernels, of which `g.kernel("gemm").signature` says what one takes, and docs/kernels.md what it computes:

    fill axpy scale add mul neg abs relu square sqrt exp log sin cos recip clamp
    dot reduce_sum reduce_min reduce_max scan_inclusive scan_exclusive histogram sort
    transpose gemm gemm_add gemm_batched fft ifft fft_2d ifft_2d fft_batched ifft_batched
    gaussian sobel rgb_to_gray from_u8 to_u8 nbody random_uniform random_normal

Numbers and arrays are checked before a job runs, and an error names the argument. Arrays are not converted to other
types: most kernels want x.astype(np.float32). Blocking calls let other threads run, and Ctrl-C ends a wait for a job.

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
from gpud.client import Client, Device, Event, Limits, connect
from gpud.errors import ArgAccessError as ArgAccessError
from gpud.errors import ArgCountError as ArgCountError
from gpud.errors import ArgShapeError as ArgShapeError
from gpud.errors import ArgTypeError as ArgTypeError
from gpud.errors import BadHandleError as BadHandleError
from gpud.errors import BufferLostError as BufferLostError
from gpud.errors import BusyError as BusyError
from gpud.errors import CancelledError as CancelledError
from gpud.errors import ClosedError as ClosedError
from gpud.errors import CompileError as CompileError
from gpud.errors import CompileLimitError as CompileLimitError
from gpud.errors import ConnectError as ConnectError
from gpud.errors import ConnectionError as ConnectionError
from gpud.errors import DeadlineError as DeadlineError
from gpud.errors import DeviceLostError as DeviceLostError
from gpud.errors import DeviceMemoryError as DeviceMemoryError
from gpud.errors import DrainingError as DrainingError
from gpud.errors import Error as Error
from gpud.errors import ExistsError as ExistsError
from gpud.errors import ForkedError as ForkedError
from gpud.errors import InternalError as InternalError
from gpud.errors import InvalidError as InvalidError
from gpud.errors import IoError as IoError
from gpud.errors import JobError as JobError
from gpud.errors import KernelFaultError as KernelFaultError
from gpud.errors import LaunchError as LaunchError
from gpud.errors import LimitError as LimitError
from gpud.errors import NoDeviceError as NoDeviceError
from gpud.errors import NomemError as NomemError
from gpud.errors import NotFoundError as NotFoundError
from gpud.errors import PermissionError as PermissionError
from gpud.errors import ProtocolError as ProtocolError
from gpud.errors import QuarantinedError as QuarantinedError
from gpud.errors import RangeError as RangeError
from gpud.errors import RefusedError as RefusedError
from gpud.errors import RequestError as RequestError
from gpud.errors import SealedError as SealedError
from gpud.errors import StaleHandleError as StaleHandleError
from gpud.errors import StateError as StateError
from gpud.errors import TimeLimitError as TimeLimitError
from gpud.errors import TimeoutError as TimeoutError
from gpud.errors import UndefinedError as UndefinedError
from gpud.errors import UnsupportedError as UnsupportedError
from gpud.errors import VersionError as VersionError
from gpud.errors import WorkerLostError as WorkerLostError
from gpud.job import Job, Options, Times
from gpud.kernel import Kernel, Module
from gpud.program import Node, Program, ProgramFunction

#: The version of libgpud.
__version__ = _text(_lib.gpud_version())

# What help(gpud) explains. The errors are explained by help(gpud.errors).
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
    "Event",
    "Limits",
    "Error",
]
