"""Recorded conversations of a client with the daemon, as text: one SP message a line.

    > HEX     the client sent this message (request id and content)
    < HEX     the daemon answered
    + or -    the client connected, or its connection ended
"""
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from protocol_client import pack, unpack  # noqa: E402, F401

REQ_HEADER = bytes.fromhex("0053500000300000")
REP_HEADER = bytes.fromhex("0053500000310000")


def read(stream, size):
    """So many bytes; b"" if the stream ended before."""
    data = b""
    while len(data) < size:
        part = stream.recv(size - len(data))
        if not part:
            return b""
        data += part
    return data


def read_message(stream):
    """The next message of an ipc connection; b"" at its end."""
    head = read(stream, 9)
    if not head:
        return b""
    assert head[0] == 1, head
    return read(stream, struct.unpack(">Q", head[1:])[0])


def send_message(stream, message):
    stream.sendall(b"\x01" + struct.pack(">Q", len(message)) + message)


def connect(path):
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(60)
    stream.connect(path)
    stream.sendall(REQ_HEADER)
    assert read(stream, 8) == REP_HEADER, "not a REP socket"
    return stream


def content(message):
    """The request id and what the message says."""
    return message[:4], unpack(message, 4)[0]
