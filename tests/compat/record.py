#!/usr/bin/env python3
"""Records what a client and the daemon say: record.py SOCKET FILE COMMAND...

Runs the command with GPUD_URL set to a socket of its own, hands everything on to the daemon that
listens on SOCKET, and writes both directions to FILE in the form of stream.py. For new versions.
"""
import os
import select
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import stream  # noqa: E402


def relay(client, path, out):
    daemon = stream.connect(path)
    assert stream.read(client, 8) == stream.REQ_HEADER
    client.sendall(stream.REP_HEADER)
    out.write("+\n")
    while True:
        for ready in select.select([client, daemon], [], [])[0]:
            message = stream.read_message(ready)
            if not message:
                out.write("-\n")
                return
            out.write(("> " if ready is client else "< ") + message.hex() + "\n")
            stream.send_message(daemon if ready is client else client, message)


def main():
    path, file = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder, open(file, "w", encoding="ascii") as out:
        server = socket.socket(socket.AF_UNIX)
        server.bind(folder + "/gpud.sock")
        server.listen()
        server.settimeout(0.1)
        environment = dict(os.environ, GPUD_URL=f"ipc://{folder}/gpud.sock", GPUD_LANE="nng")
        with subprocess.Popen(sys.argv[3:], env=environment) as client:
            while client.poll() is None:
                try:
                    relay(server.accept()[0], path, out)
                except TimeoutError:
                    pass
        return client.returncode


if __name__ == "__main__":
    sys.exit(main())
