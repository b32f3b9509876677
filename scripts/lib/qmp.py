# SPDX-License-Identifier: GPL-2.0
"""Talk to the monitor of a running emulator, by QEMU's protocol QMP."""

import json
import socket
import time


class Monitor:
    """A connection to an emulator that was started with -qmp unix:PATH,server=on,wait=off."""

    # Seconds to wait for the emulator, many because the host can be busy
    PATIENCE = 900

    def __init__(self, path, patience=PATIENCE):
        self.patience = patience
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
        self.events = []
        self.lines.readline()
        self.ask("qmp_capabilities")

    def be_patient(self):
        """Sleep for a moment before asking the emulator again; raise TimeoutError after patience seconds."""
        if time.monotonic() > self.deadline:
            raise TimeoutError("the emulator does not answer")
        time.sleep(0.02)

    def messages(self):
        """Yield the messages that the emulator sends, as dictionaries."""
        for line in self.lines:
            yield json.loads(line)
        raise EOFError("the emulator has gone")

    def ask(self, command, **arguments):
        """Send a command to the emulator; return the answer."""
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        for message in self.messages():
            if "error" in message:
                raise RuntimeError(f"{command}: {message['error']['desc']}")
            if "return" in message:
                return message["return"]
            self.events.append(message)

    def wait_for(self, event):
        """Wait for an event of the emulator, which can have come before this call, and forget the event."""
        while event not in (message.get("event") for message in self.events):
            self.events.append(next(self.messages()))
        while self.events.pop(0).get("event") != event:
            pass

    def migrate(self, uri):
        """Save the state of the machine to uri, which stops the machine; return whether the save succeeded."""
        self.ask("migrate", uri=uri)
        self.deadline = time.monotonic() + self.patience
        while True:
            status = self.ask("query-migrate").get("status")
            if status in ("completed", "failed", "cancelled"):
                return status == "completed"
            self.be_patient()

    def wait_until_loaded(self):
        """Wait until an emulator that was started with -incoming has loaded the state of its machine."""
        while self.ask("query-status")["status"] == "inmigrate":
            self.be_patient()
