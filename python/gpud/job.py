"""Jobs: what was submitted and is not waited for yet."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Final, List, Optional, Protocol, Tuple

from gpud._lib import CData, encode, ffi, lib, sized, text
from gpud._session import SLICE_NS, Session, nanoseconds
from gpud.errors import ClosedError, Error, TimeoutError, check, job_error

TIMEOUT: Final[int] = lib.GPUD_ERR_TIMEOUT
FAILED: Final[int] = lib.GPUD_ERR_INVALID  # or not: the job knows


@dataclass(frozen=True)
class Options:
    """How a job is submitted: `g.call(..., options=gpud.Options(priority=2, label="frame"))`.

    Times are in seconds; None leaves the choice to the daemon.
    """

    label: Optional[str] = None
    #: Higher runs earlier, among the tenant's own jobs of a class: -16 to 16.
    priority: int = 0
    #: A job that has not begun by then, from now on, ends with DeadlineError.
    deadline: Optional[float] = None
    #: Of execution: a job beyond it ends with TimeLimitError.
    time_limit: Optional[float] = None
    #: The id of a device; None: any.
    device: Optional[int] = None
    #: "realtime", "interactive" or "batch"; None: the tenant's own class.
    job_class: Optional[str] = None
    #: The job goes on after the end of this program.
    detached: bool = False
    trace_id: int = 0


CLASSES = {
    None: lib.GPUD_CLASS_USUAL,
    "realtime": lib.GPUD_CLASS_REALTIME,
    "interactive": lib.GPUD_CLASS_INTERACTIVE,
    "batch": lib.GPUD_CLASS_BATCH,
}


def submit_options(options: Optional[Options], block: bool) -> Tuple[CData, Any]:
    """A gpud_submit_options, and what has to live as long."""
    o = sized("gpud_submit_options")
    o.flags = lib.GPUD_SUBMIT_BLOCK if block else 0
    label = None
    if options is not None:
        if not isinstance(options, Options):
            raise TypeError(f"options is a gpud.Options, not a {type(options).__name__}")
        if options.job_class not in CLASSES:
            raise ValueError(f"job_class {options.job_class!r}: realtime, interactive or batch")
        label = encode(options.label)
        o.label = label
        o.flags |= lib.GPUD_SUBMIT_DETACHED if options.detached else 0
        o.priority = options.priority
        o.deadline_ns = nanoseconds(options.deadline)
        o.time_limit_ns = nanoseconds(options.time_limit)
        o.device = 0 if options.device is None else options.device + 1
        o.trace_id = options.trace_id
        o.job_class = CLASSES[options.job_class]
    return o, label


@dataclass(frozen=True)
class Times:
    """Where the time of a job went, in seconds."""

    device: int
    queued: float
    executed: float
    replays: int
    #: (step, begin, end), relative to the start of execution.
    steps: List[Tuple[int, float, float]]
    #: Implementations of operations that have several, as "cublas"; else "".
    implementation: str


class Work(Protocol):
    """What a job owns: its arguments and the way to its results."""

    def start(self, client: CData, grid: CData, options: CData, cell: CData) -> None: ...

    def finish(self) -> Any: ...

    def fail(self) -> None: ...


class Job:
    """A submitted job. `result()` waits for it and gives what `Client.call` would have given.

    >>> jobs = [g.submit("scale", float(i), np.float32([1, 2])) for i in range(3)]
    >>> [job.result().tolist() for job in jobs]
    [[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]]

    A job to which nothing refers any more goes on; use `cancel` to end it.
    """

    def __init__(self, session: Session, cell: CData, work: Work) -> None:
        self._session = session
        self._cell = cell  # a gpud_job **, which libgpud fills; NULL: not submitted
        self._work = work
        self._lock = threading.Lock()
        self._settled = False
        self._result: Any = None
        self._error: Optional[Error] = None

    def __repr__(self) -> str:
        return f"<gpud.Job {'ended' if self.done else 'running'}>"

    @property
    def _job(self) -> CData:
        return self._cell[0]

    @property
    def done(self) -> bool:
        """Has it ended, well or not?"""
        return self._settled or self._ended()

    def _ended(self) -> bool:
        self._session.hold()
        try:
            return bool(lib.gpud_job_done(self._job))
        finally:
            self._session.leave()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits for its end, `timeout` seconds at most; True: it has ended."""
        end = None if timeout is None else time.monotonic_ns() + int(timeout * 1e9)
        while not self._settled:
            left = SLICE_NS if end is None else min(SLICE_NS, max(end - time.monotonic_ns(), 0))
            code = self._wait(left)
            if code != TIMEOUT or self._ended():
                self._settle(code)
            elif end is not None and time.monotonic_ns() >= end:
                return False
        return True

    def _wait(self, nanos: int) -> int:
        """The job's code, or TIMEOUT."""
        try:
            self._session.enter()
        except ClosedError:
            if self._ended():
                return FAILED
            raise
        try:
            return int(lib.gpud_wait(self._job, nanos))
        finally:
            self._session.leave()

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits, and returns the results or raises the job's error; TimeoutError after `timeout` seconds."""
        if not self.wait(timeout):
            raise TimeoutError(f"the job has not ended within {timeout} s; it goes on", retriable=True)
        if self._error is not None:
            raise self._error
        return self._result

    def _take_end(self) -> bool:
        """Takes the results of a job that has ended; False: it has not."""
        if not self.done:
            return False
        self._settle(FAILED)
        return True

    def _settle(self, code: int) -> None:
        """The job has ended, with success for sure if the code is 0."""
        with self._lock:
            if not self._settled:
                self._error = self._take_error() if code else None
                if self._error is None:
                    try:
                        self._result = self._work.finish()
                    except ClosedError as error:
                        self._error = error
                if self._error is not None:
                    self._work.fail()
                self._settled = True

    def _take_error(self) -> Optional[Error]:
        self._session.hold()
        try:
            return job_error(self._job)
        finally:
            self._session.leave()

    @property
    def error(self) -> Optional[Error]:
        """The job's error; None while it runs and after success."""
        return self._error if self._take_end() else None

    def cancel(self) -> None:
        """Asks for its end. It then ends once, with CancelledError if the request came in time."""
        with self._session:
            check(lib.gpud_cancel(self._job))

    def kill(self) -> None:
        """As `cancel`, but a job that runs ends with its worker, whatever its kernel does.

        It may have had effects, and the tenant's other jobs there run again or are lost. StateError, and nothing is
        done, where other tenants share the worker.
        """
        with self._session:
            check(lib.gpud_kill(self._job))

    def _cancel_later(self) -> None:
        """As `cancel`, in a thread: for the way out of an interrupted call, which must not wait for the daemon."""

        def run() -> None:
            try:
                self.cancel()
            except Error:
                pass

        threading.Thread(target=run, daemon=True).start()

    @property
    def id(self) -> int:
        """The daemon's number of the job, as in `gpuctl jobs`; 0 while it is not known."""
        with self._session:
            return int(lib.gpud_job_id(self._job))

    @property
    def times(self) -> Times:
        """Of a job that has ended."""
        self._session.hold()
        try:
            return self._times()
        finally:
            self._session.leave()

    def _times(self) -> Times:
        t = sized("gpud_job_times")
        check(lib.gpud_job_timing(self._job, t))
        step, begin, end = ffi.new("uint32_t *"), ffi.new("uint64_t *"), ffi.new("uint64_t *")
        steps = []
        for i in range(t.step_count):
            check(lib.gpud_job_step_time(self._job, i, step, begin, end))
            steps.append((int(step[0]), begin[0] / 1e9, end[0] / 1e9))
        return Times(
            int(t.device), t.queued_ns / 1e9, t.executed_ns / 1e9, int(t.replays), steps, text(t.implementation)
        )

    def __del__(self) -> None:
        try:
            if not self._job:
                return
            if self._settled or self._take_end():
                self._session.hold()
                try:
                    lib.gpud_job_free(self._job)
                finally:
                    self._session.leave()
            else:  # its memory is needed until it ends
                self._session.abandon(Job(self._session, self._cell, self._work))  # __del__ runs once for an object
        except (Error, AttributeError, TypeError):
            pass


def submit(session: Session, prepare: Callable[[], Tuple[Work, CData]], options: CData) -> Job:
    """Prepares work and starts it, without leaving in between: closing the client unmaps shared memory.

    libgpud may wait for room. A signal's handler runs when libgpud returns, and may raise although there is a job. So
    the Job is made before. The caller does not get it then, but it keeps the job's memory until the job ends.
    """
    cell = ffi.new("gpud_job **")
    client = session.enter()
    try:
        session.sweep()
        work, grid = prepare()
        try:
            job = Job(session, cell, work)
            work.start(client, grid, options, cell)
            return job
        except BaseException:
            if cell[0]:
                job._cancel_later()
            else:
                work.fail()
            raise
    finally:
        session.leave()
