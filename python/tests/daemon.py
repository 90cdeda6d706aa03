"""A daemon of one's own for a test."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
from typing import Optional

import gpud

BIN = pathlib.Path(os.environ["GPUD_BIN"])


class Daemon:
    """gpud with workers of one back end, which listens when this is made."""

    def __init__(self, backend: str, *arguments: str) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpud-python-"))
        self.url = f"ipc://{self.folder}/s"
        self.log = self.folder / "log"
        command = [BIN / "gpud", "--backend", backend, "--listen", self.url, "--foreground"]
        command += ["--runtime-dir", self.folder, "--cache-dir", self.folder / "cache", *arguments]
        with self.log.open("wb") as log:
            self.process: "Optional[subprocess.Popen[bytes]]" = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
        try:
            gpud.connect(self.url, connect_timeout=30).close()  # waits until it listens
        except gpud.Error as error:
            text = self.log.read_text()
            self.stop()
            raise RuntimeError(f"gpud did not start: {error}\n{text}") from None

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait()
        self.process = None
        shutil.rmtree(self.folder, ignore_errors=True)
