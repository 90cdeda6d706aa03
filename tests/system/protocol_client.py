#!/usr/bin/env python3
"""A client written from proto/PROTOCOL.md alone, without any library: protocol_client.py URL

It says HELLO, writes a buffer and reads it back, runs axpy on inline arrays, sends a request twice
and looks at an error. Prints "ok" and exits with 0 if every answer is what it has to be.
"""
import os
import socket
import struct
import sys

HELLO, BYE, PING, BUFFER_CREATE, BUFFER_FREE, KERNEL_FIND, SUBMIT = 1, 2, 3, 4, 5, 12, 15
ERROR, DONE, WELCOME, PONG, BUFFER, KERNEL_FOUND, RESULTS = 64, 65, 66, 67, 68, 70, 73
ARG_BUFFER, ARG_SCALAR, ARG_INLINE = 1, 2, 3
OP_WRITE, OP_LAUNCH, OP_READ = 1, 4, 5
IN, INOUT = 1, 3
F32 = 10


def pack(value):
    """msgpack of an int >= 0, str, bytes or list."""
    if isinstance(value, int):
        return bytes([value]) if value < 128 else b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, str):
        return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))


NUMBERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
           0xD3: ">q"}
LENGTHS = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H",
           0xDD: ">I"}


def unpack(data, at=0):
    """The value at data[at] and where it ends."""
    lead = data[at]
    at += 1
    if lead < 0x80 or lead >= 0xE0:
        return (lead if lead < 0x80 else lead - 256), at
    if lead == 0xC0:
        return None, at
    if lead in NUMBERS:
        size = struct.calcsize(NUMBERS[lead])
        return struct.unpack_from(NUMBERS[lead], data, at)[0], at + size
    if lead in LENGTHS:
        size = struct.unpack_from(LENGTHS[lead], data, at)[0]
        at += struct.calcsize(LENGTHS[lead])
    else:
        size = lead & 0x1F if 0xA0 <= lead < 0xC0 else lead & 0x0F
    if lead in (0xDC, 0xDD) or 0x90 <= lead < 0xA0:
        items = []
        for _ in range(size):
            item, at = unpack(data, at)
            items.append(item)
        return items, at
    content = data[at:at + size]
    return (content if 0xC4 <= lead <= 0xC6 else content.decode()), at + size


def field(message, index, default=0):
    """Trailing fields may be left out."""
    return message[index] if index < len(message) and message[index] is not None else default


class Connection:
    def __init__(self, url):
        scheme, _, rest = url.partition("://")
        self.mark = b"\x01" if scheme == "ipc" else b""
        if scheme == "ipc":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(rest)
        else:
            host, _, port = rest.rpartition(":")
            self.socket = socket.create_connection((host, int(port)))
        self.socket.settimeout(60)
        self.socket.sendall(bytes.fromhex("0053500000300000"))
        assert self.read(8) == bytes.fromhex("0053500000310000"), "not a REP socket"
        self.id = 0x80000000

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise SystemExit("the daemon closed the connection")
            data += part
        return data

    def call(self, *message):
        self.id += 1
        content = struct.pack(">I", self.id) + pack(list(message))
        self.socket.sendall(self.mark + struct.pack(">Q", len(content)) + content)
        assert self.read(len(self.mark)) == self.mark
        content = self.read(struct.unpack(">Q", self.read(8))[0])
        assert struct.unpack_from(">I", content)[0] == self.id, "answer to another request"
        return unpack(content, 4)[0]


def expect(kind, answer):
    if answer[0] != kind:
        raise SystemExit(f"expected an answer of kind {kind}: {answer}")
    return answer


def inline(access, values):
    data = struct.pack(f"<{len(values)}f", *values)
    return [ARG_INLINE, access, 0, 0, 0, F32, 0, data, 1, len(values)]


def submit(connection, seq, steps):
    """Runs the steps; the outputs as {(step, arg): floats}."""
    answer = expect(RESULTS, connection.call(SUBMIT, seq, seq - 1, 0, [], 0, 0, 10**10, 0, 0,
                                             "protocol", 0, [], steps))
    result = answer[1][0]
    if field(result, 1) != 0:
        raise SystemExit(f"job failed: {result}")
    return {(field(o, 0), field(o, 1)): struct.unpack(f"<{len(field(o, 2)) // 4}f", field(o, 2))
            for o in field(result, 8, [])}


def main():
    connection = Connection(sys.argv[1])
    assert expect(PONG, connection.call(PING, 0, 0, 300))[1] == 300
    client_id = os.urandom(16)
    welcome = expect(WELCOME, connection.call(HELLO, 0, 0, 0, 1, client_id, 1, "protocol_client"))
    assert len(welcome[3]) == 16 and field(welcome, 4) == 0 and welcome[5] == 1, welcome

    create = (BUFFER_CREATE, 1, 0, F32, 1, 1000, 0, 0, 0, 0, "from python")
    buffer = expect(BUFFER, connection.call(*create))
    assert connection.call(*create) == buffer, "the same number has another answer"
    handle = buffer[1]
    values = [float(i) for i in range(1000)]
    steps = [[OP_WRITE, 0, [[ARG_BUFFER, 0, handle], inline(IN, values)]],
             [OP_READ, 0, [[ARG_BUFFER, 0, handle, 10, 5]]]]
    assert submit(connection, 2, steps) == {(1, 0): (10.0, 11.0, 12.0, 13.0, 14.0)}

    kernel = expect(KERNEL_FOUND, connection.call(KERNEL_FIND, 3, 2, "axpy"))[1][0][0]
    bits = struct.unpack("<I", struct.pack("<f", 2.0))[0]
    x, y = [1.0, 2.0, 3.0], [10.0, 20.0, 30.0]
    args = [[ARG_SCALAR, 0, 0, 0, 0, F32, bits], inline(IN, x), inline(INOUT, y)]
    assert submit(connection, 4, [[OP_LAUNCH, kernel, args]]) == {(0, 2): (12.0, 24.0, 36.0)}

    expect(DONE, connection.call(BUFFER_FREE, 5, 4, handle))
    error = expect(ERROR, connection.call(BUFFER_FREE, 6, 5, handle))
    assert error[1] == -19, f"not STALE_HANDLE: {error}"
    expect(DONE, connection.call(BYE, 7, 6))
    print("ok")


if __name__ == "__main__":
    main()
