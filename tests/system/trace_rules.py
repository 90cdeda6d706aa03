#!/usr/bin/env python3
"""Checks a file of `gpuctl trace`: trace_rules.py FILE ARROWS, by what Perfetto relies on.

Slices of one track nest, each pair of events has both, each arrow begins and ends in a slice, and each
process and track has a name. At least ARROWS arrows.
"""
import collections
import json
import sys

NS = 0.0005  # numbers are microseconds, exact to a ns


def check(good, what):
    if not good:
        raise SystemExit("wrong: " + what)


def check_nesting(slices):
    for track, all_of in slices.items():
        open_ends = []
        for x in all_of:  # in the order of the file where they begin together: the outer one first
            check(x["dur"] >= 0 and x["ts"] >= 0, f"times of {x}")
            while open_ends and open_ends[-1] <= x["ts"] + NS:
                open_ends.pop()
            end = x["ts"] + x["dur"]
            check(not open_ends or end <= open_ends[-1] + NS, f"{x} does not nest in track {track}")
            open_ends.append(end)


def check_arrows(arrows, slices, least):
    check(len(arrows) >= least, f"{len(arrows)} arrows")
    for number, ends in arrows.items():
        check(sorted(ends) == ["f", "s"], f"arrow {number} has {sorted(ends)}")
        check(ends["f"]["bp"] == "e", f"arrow {number} binds to the next slice")
        check(ends["s"]["ts"] <= ends["f"]["ts"] + NS, f"arrow {number} goes back in time")
        for x in ends.values():
            track = slices[(x["pid"], x["tid"])]
            check(any(y["ts"] - NS <= x["ts"] <= y["ts"] + y["dur"] + NS for y in track),
                  f"arrow {number} is not in a slice")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        root = json.load(file)
    slices = collections.defaultdict(list)
    arrows = collections.defaultdict(dict)
    spans = collections.Counter()
    names = set()
    jobs = set()
    for x in root["traceEvents"]:
        if x["ph"] == "X":
            slices[(x["pid"], x["tid"])].append(x)
            jobs.update([x["args"]["job"]] if x["cat"] == "job" else [])
        elif x["ph"] in "sf":
            arrows[x["id"]][x["ph"]] = x
        elif x["ph"] in "be":
            spans[(x["pid"], x["cat"], x["id"], x["name"])] += 1 if x["ph"] == "b" else -1
        else:
            check(x["ph"] == "M" and x["args"]["name"] != "", f"{x}")
            names.add((x["pid"], x["tid"] if x["name"] == "thread_name" else None))
    for track in slices.values():
        track.sort(key=lambda x: x["ts"])  # stable
    check_nesting(slices)
    check_arrows(arrows, slices, int(sys.argv[2]))
    check(all(count == 0 for count in spans.values()), "a span without an end")
    for pid, tid in slices:
        check((pid, tid) in names and (pid, None) in names, f"process {pid}, track {tid}: no name")
    for span in spans:
        check((span[0], None) in names, f"process {span[0]}: no name")
    check(len(jobs) > 0 and root["otherData"]["jobs"] >= len(jobs), f"{len(jobs)} jobs")
    check(int(root["otherData"]["begin_wall_ns"]) > 10**18, "no wall clock")
    steps = sum(x["cat"] == "step" for track in slices.values() for x in track)
    check(steps > 0, "no steps")


main()
