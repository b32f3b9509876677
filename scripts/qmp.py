# SPDX-License-Identifier: GPL-2.0
"""A running emulator's monitor (QMP)."""

import json
import socket
import time


class Monitor:
    """Give the emulator -qmp unix:PATH,server=on,wait=off."""

    def __init__(self, path, patience=60):
        self.deadline = time.monotonic() + patience
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(path)
                break
            except OSError:
                self.socket.close()
                self.be_patient()
        self.socket.settimeout(patience)
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.lines.readline()
        self.ask("qmp_capabilities")

    def be_patient(self):
        """Wait a moment before another look at what takes its time."""
        if time.monotonic() > self.deadline:
            raise TimeoutError("the emulator does not answer")
        time.sleep(0.02)

    def ask(self, command, **arguments):
        """Returns the answer to a command; what happens meanwhile is not told."""
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        for line in self.lines:
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        raise EOFError("the emulator has gone")

    def migrate(self, uri):
        """Save the machine; it stands still then."""
        self.ask("migrate", uri=uri)
        while True:
            status = self.ask("query-migrate").get("status")
            if status in ("completed", "failed", "cancelled"):
                return status == "completed"
            self.be_patient()
