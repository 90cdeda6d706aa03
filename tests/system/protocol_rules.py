#!/usr/bin/env python3
"""Rules of proto/PROTOCOL.md that need a daemon to show: protocol_rules.py URL PROTOCOL.md

Numbers that nobody acknowledged yet, two connections of one session, scalars of another type, and
the columns of every table and picture, and the limits of tenants and sessions. Prints "ok" and exits
with 0 if all is as the text says.
"""
import os
import re
import struct
import sys

from protocol_client import (ARG_BUFFER, ARG_SCALAR, BUFFER, BUFFER_CREATE, DONE, BYE, ERROR, F32,
                             HELLO, KERNEL_FIND, KERNEL_FOUND, OP_LAUNCH, PING, PONG, RESULTS, SUBMIT,
                             WELCOME, Connection, IN, INOUT, expect, field, inline)

BUFFER_INFO, QUERY, POOL_TAKE, POOL_READ, TABLE = 6, 20, 29, 30, 77
PROTOCOL, ARG_TYPE, RANGE, STATE, PERMISSION = -4, -23, -26, -40, -10
I32, F64, OP_FILL = 5, 11, 2
KINDS = {1: "text", 2: "unsigned", 3: "signed", 4: "bytes", 5: "nanoseconds",
         6: "parts of a million", 7: "handle", 8: "yes/no"}
TABLES = ("status", "devices", "pool", "kernels", "jobs", "timeline", "sessions", "tenants", "domains",
          "accounts", "trace", "config", "buffers")


def hello(connection, client_id, resume, token=b""):
    return expect(WELCOME, connection.call(HELLO, 0, 0, 0, 4, client_id, resume, "rules", token))


def refused(answer, code, admitted):
    expect(ERROR, answer)
    assert answer[1] == code, f"not {code}: {answer}"
    assert field(answer, 9) == (0 if admitted else 1), f"open: {answer}"


def check_ack(connection):
    """An ack of a number that was not admitted is refused, and changes nothing."""
    create = (F32, 1, 4, 0, 0, 0, 1)
    refused(connection.call(BUFFER_CREATE, 1, 1, *create), PROTOCOL, False)
    refused(connection.call(BUFFER_CREATE, 1, 2**64 - 1, *create), PROTOCOL, False)
    refused(connection.call(PING, 0, 7, 1), PROTOCOL, False)
    made = expect(BUFFER, connection.call(BUFFER_CREATE, 1, 0, *create))
    assert connection.call(BUFFER_CREATE, 1, 0, *create) == made
    expect(PONG, connection.call(PING, 0, 1, 1))
    refused(connection.call(BUFFER_CREATE, 1, 0, *create), STATE, True)  # taken: forgotten
    return made[1]


def check_scalars(connection, handle):
    kernel = expect(KERNEL_FOUND, connection.call(KERNEL_FIND, 2, 1, "axpy"))[1][0][0]
    cases = [(I32, struct.pack("<iI", 2, 0), 0), (I32, struct.pack("<iI", 16777217, 0), RANGE),
             (F64, struct.pack("<d", 0.1), 0), (F64, struct.pack("<d", 1e300), RANGE)]
    seq = 3
    for dtype, data, code in cases:
        scalar = [ARG_SCALAR, 0, 0, 0, 0, dtype, struct.unpack("<Q", data)[0]]
        step = [OP_LAUNCH, kernel, [scalar, inline(IN, [1.0]), inline(INOUT, [1.0])]]
        check_job(connection, seq, step, code)
        seq += 1
    fill = [OP_FILL, 0, [[ARG_BUFFER, 0, handle], [ARG_SCALAR, 0, 0, 0, 0, I32, 2]]]
    check_job(connection, seq, fill, ARG_TYPE)
    return seq + 1


def check_job(connection, seq, step, code):
    answer = connection.call(SUBMIT, seq, seq - 1, 0, [], 0, 0, 0, 0, 0, "", 0, [], [step])
    if code != 0:
        refused(answer, code, True)
    else:
        assert field(expect(RESULTS, answer)[1][0], 1) == 0, answer


def check_two(url, connection, client_id, handle, seq):
    """The session goes to the connection that said HELLO last; the other has none any more."""
    other = Connection(url)
    token = b"whatever it is"  # the kernel's word counts more, where it has one
    if not url.startswith("ipc"):
        answer = other.call(HELLO, 0, 0, 0, 4, client_id, seq, "rules", token)
        assert expect(ERROR, answer)[1] == PERMISSION, answer
        token = b""
    welcome = hello(other, client_id, seq, token)
    assert field(welcome, 4) == 1 and field(welcome, 5) == seq, welcome
    refused(connection.call(BUFFER_INFO, seq, seq - 1, handle), STATE, True)
    expect(PONG, connection.call(PING, 0, 0, 1))
    expect(BUFFER, other.call(BUFFER_INFO, seq, seq - 1, handle))
    return other


def listed(document, title):
    """The rows of a table's columns: {column: kind}. Columns of one row have one kind, or each its own."""
    part = re.search(rf"^#### {title}\n.*?(?=^#)", document, re.S | re.M)
    assert part, f"PROTOCOL.md has no columns of {title}"
    kinds = {}
    for columns, kind in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([^|]+) \|", part.group(0), re.M):
        names, each = re.findall(r"\w+", columns), kind.strip().split(", ")
        kinds.update(zip(names, each if len(each) > 1 else each * len(names)))
    return kinds


def check_columns(document, title, answer):
    columns = {c[0]: KINDS[field(c, 1)] for c in expect(TABLE, answer)[2]}
    wanted = listed(document, title)
    assert columns == wanted, f"{title}: {set(columns.items()) ^ set(wanted.items())}"


def check_tables(connection, document):
    for name in TABLES:
        answer = connection.call(QUERY, 0, 0, name)
        if answer[0] == ERROR and answer[1] == PERMISSION:
            continue
        check_columns(document, f"`{'jobs' if name == 'timeline' else name}`", answer)


def check_pictures(connection, document):
    answer = connection.call(POOL_TAKE, 0, 0, 0, 1)
    check_columns(document, "Picture: `pool`", answer)
    names = [column[0] for column in answer[2]]
    picture = field(answer[3][0][0][names.index("picture")], 0)
    for part, name in enumerate(("meters", "pieces", "events"), 1):
        check_columns(document, f"Picture: `{name}`",
                      connection.call(POOL_READ, 0, 0, picture, part, 0, 0, 1))


def check_limits(connection, document):
    """Each limit of a tenant, and each of sessions, stands in the text."""
    for (cells,) in expect(TABLE, connection.call(QUERY, 0, 0, "config"))[3]:
        section, key = field(cells[0], 1), field(cells[1], 1)
        if key.endswith("_max") and (section == "tenants" or "sessions" in key):
            assert f"`{key}`" in document, f"PROTOCOL.md does not tell of {section}.{key}"


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        document = file.read()
    connection = Connection(sys.argv[1])
    client_id = os.urandom(16)
    hello(connection, client_id, 1)
    handle = check_ack(connection)
    seq = check_scalars(connection, handle)
    check_tables(connection, document)
    check_pictures(connection, document)
    check_limits(connection, document)
    other = check_two(sys.argv[1], connection, client_id, handle, seq)
    expect(DONE, other.call(BYE, seq + 1, seq))
    print("ok")


main()
