#!/usr/bin/env python3
"""Plays recorded conversations to today's daemon: play.py [--spoil PLACE] URL FILE...

The recorded requests are sent as they were, but for handles that an earlier answer gave out: they
are today's. An answer serves a recorded client if it is of the same kind and has every recorded
field, with the same type. Codes of errors and of jobs, outputs of jobs and what a kernel takes have
to be the same; times and counts differ. Later versions may append fields.

--spoil changes the recorded results of jobs (code, output, or a field more), which has to be found.
"""
import argparse
import re
import sys

sys.dont_write_bytecode = True
import stream  # noqa: E402

ERROR, KERNEL_FOUND, RESULTS, EVENTS = 64, 70, 73, 74
GIVEN_OUT = 1 << 20  # numbers from here on may be handles
RESULT_AT = {RESULTS: 1, EVENTS: 2}  # the field that lists results of jobs
EVENTS_NUMBER, EVENTS_TAKEN = 1, 4  # of an answer, and of the request that follows it
CODE_AT = {ERROR: r"\.1", RESULTS: r"\.1\.\d+\.1", EVENTS: r"\.2\.\d+\.1"}


class Mismatch(Exception):
    pass


def kinds(value):
    return "bytes" if isinstance(value, (bytes, bytearray)) else type(value).__name__


def renamed(value, known):
    """The request with today's numbers."""
    if isinstance(value, list):
        return [renamed(v, known) for v in value]
    return known.get(value, value) if isinstance(value, int) else value


def same(kind, place, old, new):
    """Whether today's value serves, of two that have one type and are no list."""
    if isinstance(old, str):
        return True
    if isinstance(old, int):
        code = kind in CODE_AT and re.fullmatch(CODE_AT[kind], place)
        return old == new or not (kind == KERNEL_FOUND or code)
    return old == new or kind not in RESULT_AT


def compare(kind, old, new, known, place=""):
    """Raises Mismatch; learns today's numbers. kind: of the answer; place: in it, as ".1.0"."""
    if old is None:
        return  # left out, or of no value
    if kinds(old) != kinds(new):
        raise Mismatch(f"{place}: {kinds(old)} is {kinds(new)} now")
    if isinstance(old, list):
        if len(new) < len(old) and any(v not in (None, 0, "", b"", []) for v in old[len(new):]):
            raise Mismatch(f"{place}: {len(old)} fields are {len(new)} now")
        for i, (a, b) in enumerate(zip(old, new)):
            compare(kind, a, b, known, f"{place}.{i}")
    elif isinstance(old, int) and old >= GIVEN_OUT:
        known[old] = new
    elif not same(kind, place, old, new):
        raise Mismatch(f"{place}: {old!r} is {new!r} now")


def spoil(answer, place):
    """The recorded answer, changed."""
    for result in answer[RESULT_AT[answer[0]]] if answer[0] in RESULT_AT else []:
        if place == "code":
            result[1] = 1 + (result[1] or 0)
        elif place == "output":
            result[8][0][2] = result[8][0][2][::-1]
        elif place == "field":
            result.append("new")
    return answer


def answer_to(request, connection, seen):
    while request not in seen:
        answer, new = stream.content(stream.read_message(connection))
        seen[answer] = new
    return seen.pop(request)


def over_time(old, new):
    """Whether today's events did not come in the time that the request gave: a client of any
    release asks again."""
    at = RESULT_AT[EVENTS]
    return (old[0] == new[0] == EVENTS and len(old) > at and bool(old[at]) and
            (len(new) <= at or not new[at]))


def play(connection, path, spoiled):
    """The number of answers that were compared."""
    known, asked, seen = {}, {}, {}
    compared = 0
    with open(path, encoding="ascii") as file:
        lines = [line.split() for line in file]
    connection_now = stream.connect(connection)
    for n, line in enumerate(lines):
        if line[0] == "+" and n > 0:
            connection_now = stream.connect(connection)
        elif line[0] == ">":
            request, message = stream.content(bytes.fromhex(line[1]))
            today = asked[request] = renamed(message, known)
            stream.send_message(connection_now, bytes.fromhex(line[1]) if today == message else
                                request + stream.pack(today))
        elif line[0] == "<":
            request, old = stream.content(bytes.fromhex(line[1]))
            old = spoil(old, spoiled)
            new = answer_to(request, connection_now, seen)
            while over_time(old, new):
                again = asked[request][:EVENTS_TAKEN] + [new[EVENTS_NUMBER]]
                stream.send_message(connection_now, request + stream.pack(again))
                new = answer_to(request, connection_now, seen)
            try:
                if old[0] != new[0]:
                    raise Mismatch(f"{new} now")
                compare(old[0], old, new, known)
            except Mismatch as error:
                raise Mismatch(f"{path}:{n + 1}: answer {old[0]} to {asked[request][0]}: {error}")
            compared += 1
    return compared


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spoil", choices=("code", "output", "field"))
    parser.add_argument("url")
    parser.add_argument("file", nargs="+")
    args = parser.parse_args()
    for file in args.file:
        try:
            print(f"{file}: {play(args.url.removeprefix('ipc://'), file, args.spoil)} answers serve")
        except Mismatch as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
