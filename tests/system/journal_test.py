"""gpud's log in a real journal: a private journald, and gpud in a control group that journald takes for its unit.
Exit code 77: not root, or no journald, control groups or namespaces.

usage: journal_test.py BIN SOURCE
"""
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60 * int(os.environ.get("GPUD_TEST_PATIENCE", "1"))
SKIPPED = 77
JOURNALD = "/usr/lib/systemd/systemd-journald"
GROUPS = "/sys/fs/cgroup"
UNIT = GROUPS + "/system.slice/gpud.service"
CATALOG = "/usr/lib/systemd/catalog"
CONTROLS = 30  # more than the log takes of one kind
STARTS = 15


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def wait_for(what, ready):
    end = time.monotonic() + PATIENCE_S
    while not ready():
        assert time.monotonic() < end, what
        time.sleep(0.05)


# ---- a host of its own ---------------------------------------------------------------------------

def enter():
    """Runs this program again, in namespaces of its own. Returns its exit status."""
    if os.geteuid() != 0:
        skip("not root")
    if not os.access(JOURNALD, os.X_OK) or shutil.which("journalctl") is None:
        skip("no journald")
    if not os.path.isdir(CATALOG) or not os.path.isdir("/var/log/journal"):
        skip("no folders of the journal")
    return subprocess.run(["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv, "apart"],
                          check=False).returncode


def enter_group():
    """As enter, in a control group that is the root of all that is seen inside. Other mounts of control groups, and
    the folders of a host that runs systemd, stay as they are."""
    with tempfile.TemporaryDirectory(prefix="gpud-groups-") as groups:
        group = groups + "/gpud-journal-%d" % os.getpid()
        if subprocess.run(["mount", "-t", "cgroup2", "cgroup2", groups], check=False).returncode != 0:
            skip("no control groups")
        try:
            os.mkdir(group)
        except OSError as e:
            subprocess.run(["umount", groups], check=True)
            skip("control groups: %s" % e)
        words = [sys.executable, *sys.argv[:-1], "inside"]
        try:
            return subprocess.run(["unshare", "--mount", "--cgroup", "--propagation", "private", *words], check=False,
                                  preexec_fn=lambda: join(group)).returncode
        finally:
            leave(group)
            subprocess.run(["umount", groups], check=True)


def join(group):
    with open(group + "/cgroup.procs", "w", encoding="ascii") as f:
        f.write("0")


def is_empty(group):
    with open(group + "/cgroup.procs", encoding="ascii") as f:
        return f.read() == ""


def leave(group):
    for folder, _, _ in os.walk(group, topdown=False):
        wait_for("the end of processes in " + folder, lambda at=folder: is_empty(at))
        os.rmdir(folder)


def furnish(source, work):
    """Empty folders for the journal, and a catalogue of gpud's texts alone."""
    catalog = work + "/catalog"
    os.mkdir(catalog)
    shutil.copy(source + "/packaging/gpud.catalog", catalog)
    for folder in "/run", "/var/log/journal", "/var/lib/systemd":
        mount("-t", "tmpfs", "tmpfs", folder)
    mount("--bind", catalog, CATALOG)
    mount("-t", "cgroup2", "cgroup2", GROUPS)
    os.makedirs(UNIT)
    for folder in "/run/systemd/journal", "/run/log/journal", "/var/lib/systemd/catalog", "/run/gpud", "/run/cache":
        os.makedirs(folder)
    subprocess.run(["journalctl", "--update-catalog"], check=True)


def start_journal():
    journal = subprocess.Popen([JOURNALD], stderr=subprocess.DEVNULL)
    wait_for("journald", lambda: os.path.exists("/run/systemd/journal/stdout")
             and os.path.exists("/run/systemd/journal/socket"))
    return journal


def start_gpud(binaries, folder="/run/gpud"):
    """As the service manager does: standard error is a stream to the journal."""
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stream.connect("/run/systemd/journal/stdout")
    stream.send(b"gpud\ngpud.service\n6\n0\n0\n0\n0\n")
    st = os.fstat(stream.fileno())
    env = {**os.environ, "JOURNAL_STREAM": "%d:%d" % (st.st_dev, st.st_ino)}
    env.pop("GPUD_LOG", None)
    return subprocess.Popen([binaries + "/gpud", "--backend", "sim", "--runtime-dir", folder, "--cache-dir",
                             "/run/cache", "--listen", "ipc:///run/gpud/gpud.sock"],
                            stderr=stream, env=env, preexec_fn=lambda: join(UNIT))


# ---- what is there -------------------------------------------------------------------------------

def gpuctl(binaries, *words):
    return subprocess.run([binaries + "/gpuctl", "-u", "ipc:///run/gpud/gpud.sock", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False, text=True).stdout


def entries(binaries, *words):
    # The first line may be journalctl's own, that there are no entries.
    return [json.loads(line) for line in gpuctl(binaries, "-o", "json", "logs", *words).splitlines()
            if line.startswith("{")]


def forge():
    """A process of no unit writes an entry with gpud's fields."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(b"MESSAGE=forged\nSYSLOG_IDENTIFIER=gpud\nGPUD_DEVICE=0\nPRIORITY=0\n", "/run/systemd/journal/socket")


def look(binaries):
    forge()
    said = gpuctl(binaries, "logs")
    assert "device 0 ready" in said, said
    assert "gpud-worker" in said, said
    assert "forged" not in said, said
    of_device = entries(binaries, "--device", "0")
    ready = [e for e in of_device if e["GPUD_KIND"] == "DEVICE_READY"]
    assert len(ready) == 1 and ready[0]["PRIORITY"] == "6" and len(ready[0]["MESSAGE_ID"]) == 32, of_device
    assert all(e["GPUD_DEVICE"] == "0" and e["SYSLOG_IDENTIFIER"] == "gpud" for e in of_device), of_device
    assert not entries(binaries, "--tenant", "nobody")
    assert len(entries(binaries, "-n", "1")) == 1
    explained = gpuctl(binaries, "logs", "--device", "0", "--explain")
    assert "Subject: A device is ready" in explained and "What to do: Nothing." in explained, explained


def follow(binaries):
    follower = subprocess.Popen([binaries + "/gpuctl", "logs", "-f", "-n", "0", "--level", "info"],
                                stdout=subprocess.PIPE, text=True)
    lines = []
    try:
        end = time.monotonic() + PATIENCE_S
        os.set_blocking(follower.stdout.fileno(), False)
        while not any("log-level" in line for line in lines): # it may have begun after the first of them
            assert time.monotonic() < end, lines
            gpuctl(binaries, "log-level", "info")
            time.sleep(0.1)
            lines += follower.stdout.readlines()
    finally:
        follower.kill()
        follower.wait()


def fail_to_start(binaries):
    """The journal has the unit of a line though its process ends at once."""
    os.mkdir("/run/open")
    os.chmod("/run/open", 0o777)
    for _ in range(STARTS):
        assert start_gpud(binaries, "/run/open").wait() == 1
    # The journal reads in order, so the lines are there when the last of them is.
    wait_for("the last start", lambda: len(of_all("START_FAILED")) == STARTS)
    failed = [e for e in entries(binaries) if e.get("GPUD_KIND") == "START_FAILED"]
    assert len(failed) == STARTS, "%d of %d lines have the unit" % (len(failed), STARTS)


def of_all(kind):
    """Lines of any unit and of none."""
    return subprocess.run(["journalctl", "-q", "-o", "cat", "GPUD_KIND=" + kind], stdout=subprocess.PIPE, check=False,
                          text=True).stdout.splitlines()


def flood(binaries):
    for _ in range(CONTROLS):
        gpuctl(binaries, "log-level", "info")


def watch(binaries):
    """Returns the entries of requests, and those about lines that were left out."""
    daemon = start_gpud(binaries)
    try:
        wait_for("gpud", lambda: "ready" in gpuctl(binaries, "status"))
        wait_for("the log", lambda: "device 0 ready" in gpuctl(binaries, "logs"))
        look(binaries)
        follow(binaries)
        fail_to_start(binaries)
        flood(binaries)
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
    return [[e for e in entries(binaries) if e.get("GPUD_KIND") == kind] for kind in ("CONTROL", "SUPPRESSED")]


def main():
    binaries, source = sys.argv[1:3]
    if sys.argv[-1] != "inside":
        return enter_group() if sys.argv[-1] == "apart" else enter()
    with tempfile.TemporaryDirectory(prefix="gpud-journal-") as work:
        furnish(source, work)
        journal = start_journal()
        try:
            controls, told = watch(binaries)
        finally:
            journal.terminate()
            journal.wait()
    assert told and "lines of kind CONTROL were left out" in told[-1]["MESSAGE"], told
    left_out = sum(int(e["MESSAGE"].split()[0]) for e in told)
    print("%d lines of requests were kept, %d were left out" % (len(controls), left_out))
    assert left_out > 0 and len(controls) + left_out >= CONTROLS
    return 0


if __name__ == "__main__":
    sys.exit(main())
