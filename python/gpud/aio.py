"""The same for asyncio: one connection that the event loop watches."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any, Callable, Dict, Generator, List, Mapping, Optional, Set, Union

import numpy.typing as npt

from gpud._args import Grid
from gpud._lib import CData, ffi, lib
from gpud._session import Session
from gpud.buffer import Buffer
from gpud.client import Client, Device, Request, Value, Work, connect
from gpud.errors import BusyError, ClosedError, LimitError, check
from gpud.job import Job, Options, submit, submit_options
from gpud.kernel import Module

RETRY_FIRST, RETRY_LAST = 0.005, 1.0

#: Jobs that are awaited, by the number that libgpud gives back.
_waiting: Dict[int, _Awaited] = {}
#: Each number once: the job of an interrupted call ends later, when nothing waits for it.
_numbers = itertools.count(1)


@ffi.callback("void(gpud_job *, int, void *)")  # type: ignore[misc]
def _done(job: CData, code: int, user: CData) -> None:
    """Runs where libgpud found the end of the job: in gpud_dispatch, or in a wait of another thread."""
    awaited = _waiting.pop(int(ffi.cast("uintptr_t", user)), None)
    if awaited is not None:
        awaited.ended()


class _Awaited:
    """A job of the event loop, and the future that its end completes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = threading.get_ident()
        self.future: asyncio.Future[None] = loop.create_future()

    def ended(self) -> None:
        if threading.get_ident() == self.thread:
            self._complete()
        else:
            self.loop.call_soon_threadsafe(self._complete)

    def _complete(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class AsyncClient:
    """A session for asyncio, of `gpud.aconnect`. It belongs to the event loop in which it was opened.

    >>> async def main():
    ...     async with gpud.aconnect() as g:
    ...         x = np.float32([1, 2, 3])
    ...         return await asyncio.gather(*(g.call("scale", float(i), x) for i in range(3)))
    >>> [y.tolist() for y in asyncio.run(main())]
    [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]

    `call` takes kernels and programs and waits without a thread. The other coroutines run in the loop's executor.
    `sync` is the client for all other calls, which block the loop.
    """

    def __init__(self, client: Client) -> None:
        #: The client with blocking calls, for building programs and for calls that take no time.
        self.sync = client
        self._session: Session = client._session
        self._loop = asyncio.get_running_loop()
        self._cancels: Set[asyncio.Future[None]] = set()
        with self._session as c:
            self._fd: int = check(lib.gpud_fd(c))
        self._loop.add_reader(self._fd, self._dispatch)

    def _dispatch(self) -> None:
        try:
            with self._session as client:
                lib.gpud_dispatch(client)  # what fails is the error of the jobs
        except ClosedError:
            self._loop.remove_reader(self._fd)

    async def call(
        self,
        kernel: Work,
        *args: Any,
        out: Any = None,
        grid: Grid = None,
        local: Grid = None,
        shared: int = 0,
        options: Optional[Options] = None,
        **named: Any,
    ) -> Any:
        """As `Client.call`. If the task is cancelled, as `asyncio.wait_for` does, the job is cancelled, too.

        Large arrays are copied in the loop's thread, before the job is sent and when it is done.
        """
        request = Request(kernel, args, out, grid, local, shared, named)
        pause = RETRY_FIRST
        while True:
            try:
                return await self._call(request, options)
            except BusyError as busy:
                if busy.effects != "none":
                    raise
                pause = min(max(pause, busy.retry_after or 0), RETRY_LAST)
            except LimitError:
                if not request.in_parts(options):
                    raise
                return await self._thread(lambda: self.sync._call_in_parts(request))
            await asyncio.sleep(pause)
            pause *= 2

    async def _call(self, request: Request, options: Optional[Options]) -> Any:
        o, label = submit_options(options, False)
        awaited = _Awaited(self._loop)
        number = next(_numbers)
        o.done, o.user = _done, ffi.cast("void *", number)
        _waiting[number] = awaited
        try:
            job = submit(self._session, lambda: self.sync._prepare(request), o)
        except BaseException:
            _waiting.pop(number, None)
            raise
        del label
        try:
            await awaited.future
        except asyncio.CancelledError:
            self._cancel(job)
            raise
        return job.result()

    def _cancel(self, job: Job) -> None:
        cancel = asyncio.ensure_future(self._thread(job.cancel))
        self._cancels.add(cancel)
        cancel.add_done_callback(self._cancelled)

    def _cancelled(self, cancel: asyncio.Future[None]) -> None:
        self._cancels.discard(cancel)
        if not cancel.cancelled():
            cancel.exception()  # seen: it had ended, or the client was closed

    async def _thread(self, run: Callable[[], Any]) -> Any:
        return await self._loop.run_in_executor(None, run)

    async def compile(
        self,
        *,
        path: Any = None,
        source: Union[str, bytes, None] = None,
        lang: Optional[str] = None,
        options: Optional[str] = None,
        headers: Optional[Mapping[str, Union[str, bytes]]] = None,
        signature: Optional[str] = None,
        name: Optional[str] = None,
    ) -> Module:
        """As `Client.compile`. Run its kernels by `await g.call(module["name"], …)`."""
        return await self._thread(  # type: ignore[no-any-return]
            lambda: self.sync.compile(
                path=path, source=source, lang=lang, options=options, headers=headers, signature=signature, name=name
            )
        )

    async def array(self, array: Any, dtype: Any = None, *, label: Optional[str] = None) -> Buffer:
        """As `Client.array`."""
        return await self._thread(lambda: self.sync.array(array, dtype, label=label))  # type: ignore[no-any-return]

    async def get(self, buffer: Buffer) -> npt.NDArray[Any]:
        """As `Buffer.get`."""
        return await self._thread(buffer.get)  # type: ignore[no-any-return]

    async def devices(self) -> List[Device]:
        """As `Client.devices`."""
        return await self._thread(self.sync.devices)  # type: ignore[no-any-return]

    async def query(self, what: str, filter: Optional[str] = None) -> List[Dict[str, Value]]:
        """As `Client.query`."""
        return await self._thread(lambda: self.sync.query(what, filter))  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Ends the session. Calls that wait get ClosedError."""
        self._loop.remove_reader(self._fd)
        await self._thread(self.sync.close)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class _Connecting:
    """What `aconnect` returns: `await` it, or use it in `async with`."""

    def __init__(self, url: Optional[str], options: Dict[str, Any]) -> None:
        self._url = url
        self._options = options
        self._client: Optional[AsyncClient] = None

    async def _open(self) -> AsyncClient:
        loop = asyncio.get_running_loop()
        return AsyncClient(await loop.run_in_executor(None, lambda: connect(self._url, **self._options)))

    def __await__(self) -> Generator[Any, None, AsyncClient]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncClient:
        self._client = await self._open()
        return self._client

    async def __aexit__(self, *error: object) -> None:
        if self._client is not None:
            await self._client.close()


def aconnect(url: Optional[str] = None, **options: Any) -> _Connecting:
    """Connects for asyncio: `async with gpud.aconnect() as g:` or `g = await gpud.aconnect()`; options of `connect`."""
    return _Connecting(url, options)
