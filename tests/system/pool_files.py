#!/usr/bin/env python3
"""Checks the files of `gpuctl pool snapshot`: pool_files.py JSON CSV PICKLE.

The CSV is replayed as RMM's tools do; the pickle is held against what PyTorch's viewer relies on; all
three must tell the same bytes in use.
"""
import csv
import json
import pickle
import re
import sys


def check(good, what):
    if not good:
        raise SystemExit("wrong: " + what)


def check_json(path):
    with open(path, encoding="utf-8") as file:
        root = json.load(file)
    check(root["version"] == 1, "version")
    used = {}
    for device in root["devices"]:
        end = 0
        live = 0
        there = 0
        for piece in device["pieces"]:
            check(piece["at"] >= end, f"two pieces at {end}")
            end = piece["at"] + piece["size"]
            check(piece["state"] in ("free", "pending", "live", "lost"), "state")
            there += piece["size"]
            live += piece["size"] if piece["state"] == "live" else 0
        check(there <= device["pool"]["size"], f"{there} bytes of {device['pool']['size']} taken")
        check(live == device["pool"]["used"], f"{live} bytes of {device['pool']['used']} in use")
        numbers = [event["event"] for event in device["events"]]
        check(numbers == sorted(set(numbers)), "the order of events")
        times = [event["before"] for event in device["events"]]
        check(times == sorted(times), "the times of events")
        used[device["device"]] = live
    return used


def check_rmm(path):
    live = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            check(list(row) == ["Thread", "Time", "Action", "Pointer", "Size", "Stream"], "head")
            check(re.fullmatch(r"\d\d:\d\d:\d\d\.\d{6}", row["Time"]), row["Time"])
            key = int(row["Thread"]), int(row["Pointer"], 16)
            if row["Action"] == "allocate":
                check(key not in live and key[1] > 0, f"{key} is allocated twice")
                live[key] = int(row["Size"])
            elif row["Action"] == "free":
                check(live.pop(key, None) == int(row["Size"]), f"{key} was not allocated")
            else:
                check(row["Action"] == "allocate failure", row["Action"])
    used = {}
    for (device, _), size in live.items():
        used[device] = used.get(device, 0) + size
    return used


def check_pytorch(path):
    with open(path, "rb") as file:
        root = pickle.load(file)
    used = {}
    for segment in root["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            check(block["address"] == at, "blocks of a segment leave a gap")
            check(block["state"] in ("active_allocated", "inactive"), block["state"])
            at += block["size"]
        check(at == segment["address"] + segment["total_size"], "the segment's end")
    for device, trace in enumerate(root["device_traces"]):
        segments = sorted((s["address"], s["address"] + s["total_size"])
                          for s in root["segments"] if s["device"] == device)
        check(all(a[1] <= b[0] for a, b in zip(segments, segments[1:])), "segments overlap")
        live = {b["address"]: b["size"] for s in root["segments"] if s["device"] == device
                for b in s["blocks"] if b["state"] == "active_allocated"}
        used[device] = sum(live.values())
        for entry in reversed(trace):  # as the viewer does
            if entry["action"] == "oom":
                continue
            check(any(a <= entry["addr"] < b for a, b in segments), "an entry in no segment")
            if entry["action"] == "free_completed":
                live[entry["addr"]] = entry["size"]
            elif entry["action"] == "alloc":
                check(live.pop(entry["addr"], None) is not None, "an alloc of what does not live")
            else:
                check(entry["action"] == "free_requested" and entry["addr"] in live, "a free")
            for frame in entry["frames"]:
                check(isinstance(frame["filename"], str) and isinstance(frame["name"], str),
                      "frames")
    return used


def main():
    by_json = check_json(sys.argv[1])
    by_rmm = check_rmm(sys.argv[2])
    by_pytorch = check_pytorch(sys.argv[3])
    for device, used in by_json.items():
        check(by_rmm.get(device, 0) == used, f"RMM: {by_rmm.get(device)} instead of {used}")
        check(by_pytorch.get(device, 0) == used, f"PyTorch: {by_pytorch} instead of {used}")
    print("the files agree:", by_json)


if __name__ == "__main__":
    main()
