"""How the tests run the program: as a user does, and without anything left behind."""
import os
import pathlib
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("HYBRIDSYNC", ROOT / "build/release/cli/hybridsync"))

SMALL = """
[train]
model = "cnn"
data = "fashion-mnist"
micro_batch = 8
steps = 6
lr = 0.05

[accumulate]
steps = 2
"""
TIERS = """
[[tier]]
name = "node"
size = 2

[[tier]]
name = "site"
size = 2
strategy = "periodic"
every = 2
"""


def program(*arguments, cwd, timeout=200):
    """The finished process, with its output as text."""
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    return subprocess.run([PROGRAM, *map(str, arguments)], cwd=cwd, env=environment, text=True,
                          capture_output=True, timeout=timeout)


class Running:
    """The program while it runs; ends it and its ranks whatever happens."""

    def __init__(self, *arguments, cwd):
        self.process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=cwd, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ranks(self):
        """pid of each rank by its number, as far as they run."""
        found = {}
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in map(int, children.read_text().split()):
            try:
                entries = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            for entry in entries:
                if entry.startswith(b"RANK="):
                    found[int(entry[5:])] = pid
        return found

    def end(self, timeout=100):
        """(exit code, standard output, standard error) once it has ended by itself."""
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.communicate()


def eventually(condition, seconds=60):
    """Generous: only a bound against hanging."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.05)


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def write(tmp_path):
    """write(name, text) -> path of a configuration in a folder of the test's own."""
    def write_file(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path
    return write_file


@pytest.fixture
def start(tmp_path):
    """start(arguments...) -> Running, in the test's folder."""
    started = []

    def start_program(*arguments):
        started.append(Running(*arguments, cwd=tmp_path))
        return started[-1]
    yield start_program
    for running in started:
        running.stop()
