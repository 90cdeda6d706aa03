"""The life of a connection: how many threads are inside libgpud, and when it may be closed."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional

from gpud._lib import CData, encode, ffi, lib, sized
from gpud.errors import ClosedError, Error, check

#: Bytes of arrays from which an argument goes through shared memory instead of the message.
LARGE = 64 * 1024
#: Bytes of shared memory that a client keeps for its next calls.
KEPT_MAX = 256 * 1024 * 1024
#: Waits for a job return to the interpreter this often, for Ctrl-C and for a client that another thread closes.
SLICE_NS = 100_000_000


def nanoseconds(seconds: Optional[float]) -> int:
    """For libgpud, where 0 means "not given"; 0 s becomes 1 ns."""
    return 0 if seconds is None else max(int(seconds * 1e9), 1)


class Session:
    """A gpud_client, which must not be closed while another thread is inside libgpud with it.

    `enter` and `hold` count a user in, `leave` counts it out. After `close`, `enter` fails, and the last user closes.
    A thread that closes first becomes the closer, and gives that up if it still sees a user. A thread that holds first
    counts itself in, and then looks for a closer. These are single operations of deques and dicts, which are atomic, so
    a signal handler or a fork meets no lock. Callbacks run while the client is closed, and so do finalizers that the
    garbage collector finds: the thread that closes does not wait for itself.
    """

    def __init__(self, url: Optional[str], options: Dict[str, Any]) -> None:
        o = sized("gpud_options")
        keep = []
        for name in ("name", "ca_file", "cert_file", "key_file", "server_name"):
            if options.get(name) is not None:
                keep.append(encode(os.fspath(options[name])))
                setattr(o, name, keep[-1])
        token = options.get("token")
        if token is not None:
            token = token.encode() if isinstance(token, str) else bytes(token)
            keep.append(ffi.from_buffer(token))
            o.token, o.token_size = keep[-1], len(token)
        o.connect_timeout_ns = nanoseconds(options.get("connect_timeout"))
        o.timeout_ns = nanoseconds(options.get("timeout"))
        o.reconnect_ns = nanoseconds(options.get("reconnect"))
        client = ffi.new("gpud_client **")
        check(lib.gpud_open(encode(url), o, client))
        self.timeout: Optional[float] = options.get("timeout")
        self.client: CData = client[0]
        self.callback: CData = None  # for events; libgpud has its address
        self.closed = False
        self._users: Deque[None] = deque()
        self._closer: Dict[str, List[int]] = {}  # "by": its thread, in a list of its own
        self._ended = False
        self._pid = os.getpid()
        self._kept: Dict[int, List[CData]] = {}
        self._kept_bytes = 0
        self._abandoned: List[Any] = []

    def enter(self) -> CData:
        """The client, which stays open until `leave`."""
        self._users.append(None)
        if self.closed:
            self.leave()
            raise ClosedError("the client was closed")
        return self.client

    def hold(self) -> None:
        """For objects of the client, which outlive it: until `leave` it does not begin to close."""
        while True:
            self._users.append(None)
            closer = self._closer.get("by")
            if closer is None or closer[0] == threading.get_ident() or self._ended:
                return
            if os.getpid() != self._pid:  # a child only frees memory
                return
            self._users.pop()
            time.sleep(0.001)  # another thread closes, which takes a second at most

    def leave(self) -> None:
        self._users.pop()
        if self.closed:
            self._finish()

    # `with session as client:` enters and leaves. The start and the wait of each job use the faster calls.
    __enter__ = enter

    def __exit__(self, *error: object) -> None:
        self.leave()

    def close(self) -> None:
        self.closed = True
        self._finish()

    def _finish(self) -> None:
        me = [threading.get_ident()]
        while not self._users and self._closer.setdefault("by", me) is me:
            if not self._users:
                try:
                    lib.gpud_close(self.client)
                finally:  # a signal's handler may raise when it returns
                    self._ended = True
                return
            self._closer.clear()

    def __reduce__(self) -> Any:
        raise TypeError("objects of gpud belong to one process: send arrays instead, as b.get() gives them")

    # ---- shared memory for arguments -----------------------------------------------------------

    def scratch(self, size: int) -> CData:
        """Shared memory of at least `size` bytes, new or of an earlier call. The caller has entered."""
        room = 1 << (size - 1).bit_length()
        try:
            memory = self._kept[room].pop()
            self._kept_bytes -= room
            return memory
        except (KeyError, IndexError):
            pass
        pointer = ffi.new("void **")
        check(lib.gpud_host_alloc(self.client, room, pointer))
        return pointer[0]

    def scratch_return(self, memory: CData, size: int, again: bool) -> None:
        """again: no job may still write to it, so that the next call may have it. The caller has entered."""
        room = 1 << (size - 1).bit_length()
        if again and self._kept_bytes + room <= KEPT_MAX:
            self._kept_bytes += room
            self._kept.setdefault(room, []).append(memory)
        else:
            lib.gpud_host_free(self.client, memory)

    def abandon(self, job: Any) -> None:
        """Keeps a job to which nothing refers any more until its end: libgpud may write to its memory until then."""
        self._abandoned.append(job)

    def sweep(self) -> None:
        """Lets go of abandoned jobs that have ended."""
        if self._abandoned:
            jobs, self._abandoned = self._abandoned, []
            self._abandoned += [job for job in jobs if not job._take_end()]


class Handle:
    """What the daemon keeps for a session: freed once, by `free` or when nothing refers to it any more."""

    def __init__(self, session: Session, value: CData, release: CData) -> None:
        self.session = session
        self.value = value
        self._release = release  # a function of libgpud
        self._freed = False

    def free(self) -> None:
        if self._freed:
            return
        with self.session as client:
            self._freed = True
            check(self._release(client, self.value))

    def __del__(self) -> None:
        try:
            self.free()
        except (Error, AttributeError, TypeError):  # closed, forked, or the interpreter ends
            pass
