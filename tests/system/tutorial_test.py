"""Runs docs/tutorial.md: tutorial_test.py BUILD SOURCE [FAKECUDA]

All blocks of shell run in one bash, in the source folder, with BUILD for build/release. What a block prints is the
text block behind it, where "…" stands for anything in a line. A block for "sh TOOL" runs where that tool is. Blocks
of C are pieces of the programs in examples/tutorial. FAKECUDA: a folder with the double of the driver, which loads
frame.cu."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MARK = "== tutorial"
SKIPPED = 77


def blocks(page):
    """(line, kind, text) of each block."""
    found = re.finditer(r"^```(\w[^\n]*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [(page.count("\n", 0, m.start()) + 1, m.group(1), m.group(2)) for m in found]


def runs(kind):
    words = kind.split()
    return words[0] == "sh" and all(shutil.which(tool) for tool in words[1:])


def commands(all_blocks):
    """(line, shell, what it prints) for each block that runs."""
    pairs = zip(all_blocks, all_blocks[1:] + [(0, "", "")])
    return [(a[0], a[2], b[2] if b[1] == "text" else "") for a, b in pairs if runs(a[1])]


def like(wanted, said):
    pattern = ".*".join(re.escape(part) for part in wanted.split("…"))
    return re.fullmatch(pattern, said) is not None


def play(build, source, steps):
    """Runs the steps; the parts of the output."""
    script = "set -u\ntrap 'kill $(cat $d/pid) 2>/dev/null; cat $d/said >&2; rm -rf $d' EXIT\n"
    for line, shell, _ in steps:
        shell = shell.replace("$PWD/build/release", str(build))
        script += f"echo '{MARK} {line}'\n{shell}"
    with tempfile.TemporaryFile("w+") as out:  # a pipe would stay open as long as a daemon
        code = subprocess.run(["bash", "-c", script], cwd=source, stdout=out, timeout=250).returncode
        out.seek(0)
        said = re.split(rf"^{MARK} \d+\n", out.read(), flags=re.MULTILINE)[1:]
    assert code == 0, f"bash ended with {code}: {said}"
    return said


def check_commands(page, build, source):
    steps = commands(blocks(page))
    assert len(steps) > 10
    said = play(build, source, steps)
    assert len(said) == len(steps), said
    for (line, _, wanted), got in zip(steps, said):
        rows, there = wanted.splitlines(), got.splitlines()
        good = len(rows) == len(there) and all(map(like, rows, there))
        assert good, f"docs/tutorial.md:{line}: wanted\n{wanted}said\n{got}"


def check_pieces(page, source):
    texts = [path.read_text() for path in (source / "examples/tutorial").glob("*.[ch]")]
    pieces = [(line, text) for line, kind, text in blocks(page) if kind == "c"]
    assert len(pieces) > 5
    for line, piece in pieces:
        assert any(piece in text for text in texts), f"docs/tutorial.md:{line}: not in examples/tutorial"


def check_cuda(build, source, fake):
    """NVRTC compiles frame.cu, and the double of the driver loads it."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "GPUD_URL": f"ipc://{folder}/s"}
        command = [build / "bin/gpud", "--backend", "cuda", "--foreground", "--listen", env["GPUD_URL"]]
        command += ["--runtime-dir", folder, "--cache-dir", f"{folder}/cache"]
        with open(f"{folder}/log", "wb") as log:
            daemon = subprocess.Popen(command, env={**env, "LD_LIBRARY_PATH": str(fake)}, stdout=log, stderr=log)
        try:
            listens = ["bash", "-c", 'until "$0" ping >&2; do sleep 0.2; done', build / "bin/gpuctl"]
            subprocess.run(listens, env=env, check=True, capture_output=True, timeout=100)
            ask = [build / "bin/gpuctl", "kernel", "check", source / "examples/tutorial/frame.cu"]
            shown = subprocess.run(ask, env=env, capture_output=True, text=True, timeout=100)
        finally:
            daemon.terminate()
            daemon.wait()
    if any(lack in shown.stderr for lack in ("needs NVRTC to be compiled", "NVRTC is too old")):
        print("frame.cu is not compiled:", shown.stderr)
        return
    assert shown.returncode == 0, shown.stderr
    assert "in u8[] pixels, in f32[] weights" in shown.stdout, shown.stdout
    assert "inout f32[] background" in shown.stdout, shown.stdout


def main():
    build, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if not shutil.which("cc") or not any(pathlib.Path(p, "libOpenCL.so").exists() for p in libraries()):
        print("no C compiler, or no libOpenCL to link with")
        return SKIPPED
    page = (source / "docs/tutorial.md").read_text()
    check_pieces(page, source)
    check_commands(page, build, source)
    if len(sys.argv) > 3:
        check_cuda(build, source, pathlib.Path(sys.argv[3]))
    return 0


def libraries():
    said = subprocess.run(["cc", "-print-search-dirs"], capture_output=True, text=True, check=True).stdout
    return re.search(r"^libraries: =(.*)$", said, re.MULTILINE).group(1).split(":")


if __name__ == "__main__":
    sys.exit(main())
