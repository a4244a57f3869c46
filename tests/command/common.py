"""What the tests of the command share: running it, serving with it, small data.

    tests/command/NAME_test.py PROGRAM DATA_FOLDER [unittest arguments]
"""

import http.client
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

if len(sys.argv) < 3:
    sys.exit(f"usage: {sys.argv[0]} PROGRAM DATA_FOLDER [unittest arguments]")
PROGRAM = os.path.abspath(sys.argv.pop(1))
DATA = os.path.abspath(sys.argv.pop(1))
ENVIRONMENT = {**os.environ, "VOLTA_DATA": DATA, "VOLTA_NUM_THREADS": "2"}
SANITIZED = bool({"TSAN_OPTIONS", "UBSAN_OPTIONS"} & set(os.environ))  # the test presets set them
if "TSAN_OPTIONS" in os.environ:
    ENVIRONMENT["TSAN_OPTIONS"] += f" suppressions={pathlib.Path(__file__).resolve().parent / 'tsan.supp'}"
SKIPPED = 77  # the status that ctest knows as skipped
SANITIZER = re.compile(r"(ThreadSanitizer|AddressSanitizer|LeakSanitizer|runtime error):?.*")


def check_stderr(text):
    found = SANITIZER.search(text)
    if found:
        raise AssertionError(f"a sanitizer complained: {text[found.start():found.start() + 4000]}")


def volta(*arguments, status=0, cwd=None, data=DATA, **more):
    """Runs the command and returns what it wrote."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], env={**ENVIRONMENT, "VOLTA_DATA": str(data)}, cwd=cwd, capture_output=True,
                          text=True, timeout=600, **more)
    check_stderr(done.stderr)
    if done.returncode != status:
        raise AssertionError(f"volta {' '.join(map(str, arguments))} ended with {done.returncode}, not {status}\n"
                             f"{done.stdout}\n{done.stderr}")
    return done


def safetensors(path):
    """Names and bytes of the tensors of a file."""
    raw = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (info["dtype"], info["shape"], raw[8 + size + info["data_offsets"][0]:8 + size + info["data_offsets"][1]])
            for name, info in header.items()}


def write_safetensors(path, tensors, metadata):
    """Writes what safetensors() gives, with any metadata."""
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def recipe_of(path):
    raw = pathlib.Path(path).read_bytes()
    return json.loads(json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])["__metadata__"]["volta.recipe"])


def iris_like(path, rows=120):
    """A table of three clusters, written with a fixed seed."""
    draw = random.Random(1)
    lines = ["length,width,kind"]
    for i in range(rows):
        kind = i % 3
        lines.append(f"{2 * kind + draw.gauss(0, 0.3):.3f},{-kind + draw.gauss(0, 0.3):.3f},{'abc'[kind]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def train_table(folder, out="run", *more):
    table = iris_like(folder / "kinds.csv")
    return json.loads(volta("train", "mlp", "--data", f"csv:{table}", "--epochs", 40, "--batch", 16, "--set", "hidden=16",
                            "--out", folder / out, "--json", *more).stdout)


def train_text(folder, text="abcdefgh" * 300, model="gpt"):
    """A language model of seconds; the file of it."""
    source = folder / "text.txt"
    source.write_text(text)
    sizes = {"gpt": ["width=32", "heads=2", "layers=1", "context=16"], "char-lstm": ["hidden=32", "context=32"]}[model]
    flags = [word for size in sizes for word in ("--set", size)]
    return json.loads(volta("train", model, "--data", f"text:{source}", "--epochs", 2, "--batch", 8, *flags,
                            "--out", folder / "lm", "--json").stdout)["file"]


class Served:
    """A running `volta serve`. It must end well: status 0 after SIGTERM and nothing on standard error."""

    def __init__(self, file, *flags):
        self.process = subprocess.Popen([PROGRAM, "serve", str(file), "--port", "0", "--json", *map(str, flags)], env=ENVIRONMENT,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1])
        self.address = json.loads(line)["listening"]
        self.port = int(self.address.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            _, said = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AssertionError("the server does not end after SIGTERM") from None
        check_stderr(said)
        if self.process.returncode != 0 or said:
            raise AssertionError(f"the server ended with {self.process.returncode} and said: {said}")

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def metric(self, name):
        text = self.ask("GET", "/metrics")[2].decode()
        return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)[1])


class Folder(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def train_table(self, out="run", *more):
        return train_table(self.folder, out, *more)
