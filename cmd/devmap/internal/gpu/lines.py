"""Commands whose lines are read as they come, and the documents that they leave."""

import json
import os
import re
import subprocess
import threading
import time

PATIENCE = 120  # seconds that a command may take
RUNNING = []  # what was begun and is not known to have ended


def documents(path):
    """JSON values of a file, one behind another."""
    with open(path) as file:
        text = file.read()
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        one, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
        found.append(one)
    return found


def finish():
    """Kills what a part has left that broke off; workers end by themselves."""
    for lines in list(RUNNING):
        lines.process.kill()
        lines.end()


class Lines:
    """A command whose lines, of both kinds, are read as they come."""

    def __init__(self, words, environment=(), **over):
        self.begun, self.lines, self._came = time.monotonic(), [], threading.Condition()
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        errors="replace", env=os.environ | dict(environment), **over)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        RUNNING.append(self)

    def _read(self):
        for line in self.process.stdout:
            with self._came:
                self.lines.append(line.rstrip("\n"))
                self._came.notify_all()

    def until(self, pattern, seconds=PATIENCE):
        """Waits for a line that matches, and reports whether it came."""
        ends = time.monotonic() + seconds
        with self._came:
            while not any(re.search(pattern, line) for line in self.lines):
                if self.process.poll() is not None and not self._reader.is_alive() or time.monotonic() > ends:
                    return any(re.search(pattern, line) for line in self.lines)
                self._came.wait(0.05)
        return True

    def more(self, count, seconds=PATIENCE):
        """Waits for some lines more, or the end."""
        ends, want = time.monotonic() + seconds, len(self.lines) + count
        while len(self.lines) < want and self.process.poll() is None and time.monotonic() < ends:
            time.sleep(0.01)

    def end(self, seconds=PATIENCE):
        """The exit status. What does not end is killed, and says so."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.lines.append(f"it did not end in {seconds} s")
        self._reader.join(10)
        if self in RUNNING:
            RUNNING.remove(self)
        self.seconds = time.monotonic() - self.begun
        return self.process.returncode

    @property
    def turns(self):
        """How many it has told of."""
        return sum(line.startswith("turn ") for line in self.lines)

    @property
    def said(self):
        return "\n".join(self.lines)

    def last(self, pattern="."):
        """The last line that matches, else the last."""
        found = [line.strip() for line in self.lines if re.search(pattern, line)] or [line.strip() for line in self.lines[-1:]]
        return found[-1][:240] if found else "it said nothing"
