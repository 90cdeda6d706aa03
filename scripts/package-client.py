#!/usr/bin/python3
"""A client that computes while the packages are upgraded; scripts/package-try.sh runs it in its root.

usage: package-client.py FOLDER [--same-build]

Calls one job after the other and compares each answer with a model, and two buffers that were made at the begin. Writes
the number of rounds to FOLDER/rounds. Ends when FOLDER/stop exists, and prints what it counted. It fails if an answer is
wrong or a round fails for good, and with --same-build if any call ends with an error, or a buffer is lost.

Another build ends the workers. A call may then end with an error, and a buffer be lost, if gpud says so: the client
sends the call again, and makes the buffer anew.
"""
import collections
import os
import sys
import time

import gpud
import numpy as np

N = 5000
PATIENCE_S = 300  # of a round


class Load:
    def __init__(self, folder):
        self.folder = folder
        self.rounds = 0
        self.wrong = 0  # answers
        self.made = 0  # buffers, beyond the first ones
        self.errors = collections.Counter()
        self.events = collections.Counter()
        self.longest = 0.0
        self.g = gpud.connect(name="upgraded", reconnect=120, on_event=lambda e: self.events.update([e.kind]))
        self.table = self.total = None
        self.sum = 0  # what each element of `total` has to be
        self.expected = np.arange(N, dtype=np.float32)
        self.ones = np.ones(N, np.float32)

    def make(self):
        if self.table is None:
            self.table = self.g.array(self.expected, label="table")
        if self.total is None:
            self.total, self.sum = self.g.zeros(N), 0

    def compare(self, got, want):
        self.wrong += not np.array_equal(got, want)

    def one(self):
        factor = float(1 + self.rounds % 50)
        self.compare(self.g.call("axpy", factor, self.expected, self.ones), factor * self.expected + 1)
        self.compare(self.table.get(), self.expected)
        nxt = self.g.call("axpy", 1.0, self.g.array(self.ones), self.total)
        self.total, self.sum = nxt, self.sum + 1
        self.compare(self.total.get(), np.full(N, self.sum, np.float32))

    def forget(self):
        """Buffers that gpud says were lost."""
        for name in ("table", "total"):
            try:
                getattr(self, name).get()
            except (gpud.BufferLostError, gpud.StaleHandleError):
                setattr(self, name, None)
                self.made += 1

    def round(self):
        begin = time.monotonic()
        while True:
            try:
                self.make()
                self.one()
                break
            except gpud.Error as error:
                self.errors[type(error).__name__] += 1
                if time.monotonic() > begin + PATIENCE_S:
                    raise
                time.sleep(error.retry_after or 0.05)
                try:
                    self.forget()
                except gpud.Error:
                    pass  # the next try finds it
        self.longest = max(self.longest, time.monotonic() - begin)
        self.rounds += 1

    def note(self):
        with open(os.path.join(self.folder, "rounds.new"), "w", encoding="ascii") as file:
            file.write(f"{self.rounds}\n")
        os.rename(os.path.join(self.folder, "rounds.new"), os.path.join(self.folder, "rounds"))

    def run(self):
        while not os.path.exists(os.path.join(self.folder, "stop")):
            self.round()
            if self.rounds % 20 == 0:
                self.note()


def text(counter):
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items())) or "none"


def main():
    load = Load(sys.argv[1])
    load.run()
    print(f"client: {load.rounds} rounds of 4 answers, {load.wrong} wrong; errors: {text(load.errors)}; "
          f"events: {text(load.events)}; {load.made} buffers made anew; longest round {load.longest:.1f} s")
    strict = "--same-build" in sys.argv[2:]
    bad = load.wrong > 0 or (strict and (load.errors or load.made or load.events["buffer_lost"]))
    return 1 if bad else 0


sys.exit(main())
