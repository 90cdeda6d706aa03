"""Exceptions: one class for each error of libgpud, in families by what the caller can do about it.

    Error
      RequestError      the request is wrong: the program needs a change
      ConnectionError   the daemon cannot be reached, or the client is closed
      RefusedError      the daemon does not take the request now, or not from this user
      CompileError      source does not compile: `log` has the compiler's output
      JobError          the job was accepted and failed

A class is also a subclass of the built-in exception that Python programs expect in its place: ArgTypeError is a
TypeError, TimeoutError a TimeoutError, DeviceMemoryError a MemoryError.

>>> import gpud
>>> issubclass(gpud.ArgShapeError, (gpud.RequestError, ValueError))
True
>>> gpud.BusyError.code, gpud.BusyError.name
(-11, 'BUSY')
"""

from __future__ import annotations

import builtins
from typing import Any, Dict, Optional, Type, TypeVar

from gpud._lib import lib, sized, text

E = TypeVar("E", bound="Type[Error]")
_CLASSES: Dict[int, "Type[Error]"] = {}

EFFECTS = ("none", "maybe", "yes")


class Error(Exception):
    """A failure of gpud. `str()` is the whole chain: what was asked, the step, the argument, the reason."""

    code: int = 0
    name: str = "UNKNOWN"

    def __init__(
        self,
        message: str,
        *,
        vendor: int = 0,
        step: Optional[int] = None,
        arg: Optional[int] = None,
        effects: str = "none",
        retriable: bool = False,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        #: The vendor's error code; 0 if there is none.
        self.vendor = vendor
        #: The index of the program's step that failed, if it was one.
        self.step = step
        #: The index of the argument that is wrong, if it is one.
        self.arg = arg
        #: "none", "maybe" or "yes": did the failed operation change anything outside itself?
        self.effects = effects
        #: The same request may succeed later; `retry_after` is the daemon's hint in seconds.
        self.retriable = retriable
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.message


class RequestError(Error):
    """The request is wrong; sending it again does not help."""


class ConnectionError(Error, builtins.ConnectionError):
    """The daemon cannot be reached, or this client is closed."""


class RefusedError(Error):
    """The daemon does not take the request now, or not from this user."""


class JobError(Error):
    """The job was accepted and failed."""


def _error(code: int) -> Any:
    """Registers a class for a code of libgpud."""

    def register(cls: E) -> E:
        cls.code = code
        cls.name = text(lib.gpud_err_name(code))
        _CLASSES[code] = cls
        return cls

    return register


# The text of each class is libgpud's own sentence for its code (gpud_strerror).


@_error(-1)
class InvalidError(RequestError, ValueError):
    """An invalid argument."""


@_error(-2)
class NomemError(Error, MemoryError):
    """Out of host memory."""


@_error(-3)
class IoError(Error, OSError):
    """An input/output error."""


@_error(-4)
class ProtocolError(ConnectionError):
    """A malformed or unexpected message."""


@_error(-5)
class VersionError(ConnectionError):
    """The protocol version is not supported."""


@_error(-6)
class ConnectError(ConnectionError):
    """The daemon is not reachable."""


@_error(-7)
class ClosedError(ConnectionError):
    """The client was closed."""


@_error(-8)
class TimeoutError(Error, builtins.TimeoutError):
    """Not finished within the time waited; the job goes on."""


@_error(-9)
class ForkedError(ConnectionError):
    """The client was opened before fork(): the child opens one of its own."""


@_error(-10)
class PermissionError(RefusedError, builtins.PermissionError):
    """Not permitted."""


@_error(-11)
class BusyError(RefusedError):
    """The queue is full."""


@_error(-12)
class LimitError(RefusedError):
    """Over a limit."""


@_error(-13)
class DrainingError(RefusedError):
    """The daemon is draining and takes no new jobs."""


@_error(-14)
class NoDeviceError(RefusedError):
    """No device can serve this."""


@_error(-15)
class DeviceLostError(JobError):
    """The device is lost."""


@_error(-16)
class WorkerLostError(JobError):
    """The worker ended while the job was running."""


@_error(-17)
class DeviceMemoryError(RefusedError, MemoryError):
    """Out of device memory."""


@_error(-18)
class BadHandleError(RequestError):
    """There is no such handle."""


@_error(-19)
class StaleHandleError(RequestError):
    """The handle was freed or lost."""


@_error(-20)
class NotFoundError(RequestError, LookupError):
    """Not found."""


@_error(-21)
class ExistsError(RequestError):
    """It exists already."""


@_error(-22)
class ArgCountError(RequestError, TypeError):
    """The wrong number of arguments."""


@_error(-23)
class ArgTypeError(RequestError, TypeError):
    """An argument of the wrong type."""


@_error(-24)
class ArgShapeError(RequestError, ValueError):
    """An argument of the wrong shape."""


@_error(-25)
class ArgAccessError(RequestError, ValueError):
    """An argument with the wrong access."""


@_error(-26)
class RangeError(RequestError, ValueError):
    """Out of range."""


@_error(-27)
class UndefinedError(RequestError):
    """The content is undefined until it is fully written."""


@_error(-28)
class SealedError(RequestError):
    """Sealed: it cannot be written."""


@_error(-29)
class CompileError(RequestError):
    """Source does not compile. `log` is the compiler's whole output."""

    log: str = ""


@_error(-30)
class CompileLimitError(CompileError):
    """The compiler stopped at its limits."""


@_error(-31)
class LaunchError(JobError):
    """The device refused the launch."""


@_error(-32)
class KernelFaultError(JobError):
    """The kernel ended its worker."""


@_error(-33)
class TimeLimitError(JobError):
    """The time limit of the job passed."""


@_error(-34)
class DeadlineError(JobError):
    """The deadline passed."""


@_error(-35)
class CancelledError(JobError):
    """The job was cancelled."""


@_error(-36)
class QuarantinedError(RefusedError):
    """The kernel or tenant is quarantined after repeated faults."""


@_error(-37)
class UnsupportedError(RequestError):
    """Not supported here."""


@_error(-38)
class InternalError(Error):
    """An internal error."""


@_error(-39)
class BufferLostError(JobError):
    """The buffer was lost with its worker."""


@_error(-40)
class StateError(RequestError):
    """Not possible in this state."""


def error_of(code: int, record: Any) -> Error:
    """The exception for a gpud_error."""
    own = int(record.code) == code
    return _CLASSES.get(code, Error)(
        text(record.text) if own else text(lib.gpud_strerror(code)),
        vendor=int(record.vendor) if own else 0,
        step=int(record.step) if own and record.step >= 0 else None,
        arg=int(record.arg) if own and record.arg >= 0 else None,
        effects=EFFECTS[record.effects] if own and 0 <= record.effects < len(EFFECTS) else "maybe",
        retriable=bool(record.retriable) if own else False,
        retry_after=record.retry_after_ns / 1e9 if own and record.retry_after_ns else None,
    )


def last_error(code: int) -> Error:
    """The exception for this thread's last failure, which returned `code`."""
    return error_of(code, lib.gpud_last_error())


def check(code: int) -> int:
    """Raises the error that a function of libgpud returned."""
    if code < 0:
        raise last_error(code)
    return code


def job_error(job: Any) -> Optional[Error]:
    """The error of an ended job, None after success."""
    record = sized("gpud_error")
    check(lib.gpud_job_error(job, record))
    return error_of(int(record.code), record) if record.code else None
