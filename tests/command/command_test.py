#!/usr/bin/env python3
"""The command volta as a person uses it: trains, resumes after being killed, evaluates, converts, serves, and fails well.

    tests/command/command_test.py PROGRAM DATA_FOLDER [unittest arguments]
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
DATA = os.path.abspath(sys.argv.pop(1))
ENVIRONMENT = {**os.environ, "VOLTA_DATA": DATA, "VOLTA_NUM_THREADS": "2"}


def volta(*arguments, status=0, cwd=None):
    """Runs the command and returns what it wrote."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], env=ENVIRONMENT, cwd=cwd, capture_output=True, text=True, timeout=120)
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


def iris_like(path, rows=120):
    """A table of three clusters, written with a fixed seed."""
    draw = random.Random(1)
    lines = ["length,width,kind"]
    for i in range(rows):
        kind = i % 3
        lines.append(f"{2 * kind + draw.gauss(0, 0.3):.3f},{-kind + draw.gauss(0, 0.3):.3f},{'abc'[kind]}")
    path.write_text("\n".join(lines) + "\n")
    return path


class Folder(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def train_table(self, out="run", *more):
        table = iris_like(self.folder / "kinds.csv")
        return json.loads(volta("train", "mlp", "--data", f"csv:{table}", "--epochs", 40, "--batch", 16, "--set", "hidden=16",
                                "--out", self.folder / out, "--json", *more).stdout)


class Words(Folder):
    def test_help_names_every_command(self):
        text = volta("--help").stdout
        for command in ["train", "eval", "predict", "generate", "serve", "summary", "info", "convert", "plot", "bench", "doctor"]:
            self.assertIn(command, text)
            self.assertIn("Usage", volta(command, "--help").stdout)
        self.assertRegex(volta("--version").stdout, r"^\d+\.\d+\.\d+\n$")

    def test_wrong_arguments_are_status_2_and_say_why(self):
        for arguments, word in [((), "subcommand"), (("fly",), "fly"), (("train", "--epochs", "0"), "epochs"),
                                (("train", "--epochs", "many"), "epochs"), (("serve",), "model"), (("info",), "file"),
                                (("--threads", "0", "doctor"), "threads")]:
            done = volta(*arguments, status=2)
            self.assertIn(word, done.stderr, arguments)
            self.assertEqual(done.stdout, "")

    def test_errors_are_status_1_and_name_the_file(self):
        absent = self.folder / "absent.safetensors"
        for arguments in [("info", absent), ("eval", absent, "--data", "digits"), ("predict", absent, "x.png"), ("serve", absent),
                          ("convert", absent, self.folder / "x.npz"), ("generate", absent), ("plot", self.folder / "absent")]:
            self.assertIn("absent", volta(*arguments, status=1).stderr)
        self.assertIn("known are", volta("train", "lenot", "--data", "digits", status=1).stderr)
        self.assertIn("known are", volta("train", "lenet", "--data", "digit:x", status=1).stderr)
        self.assertIn("does not take", volta("train", "gpt", "--data", "digits", status=1).stderr)
        bad = self.folder / "bad.safetensors"
        bad.write_text("not a tensor file")
        self.assertIn("bad.safetensors", volta("info", bad, status=1).stderr)
        self.assertIn("error", json.loads(volta("info", bad, "--json", status=1).stderr))

    def test_doctor_summary_completion(self):
        self.assertEqual(json.loads(volta("doctor", "--json").stdout)["arithmetic"]["state"], "right")
        self.assertIn("61706", volta("summary", "lenet").stdout)
        self.assertEqual(json.loads(volta("summary", "lenet", "--json").stdout)["parameters"], 61706)
        self.assertIn("lenet", volta("summary").stdout)
        subprocess.run(["bash", "-n"], input=volta("completion", "bash").stdout, text=True, check=True)

    def test_a_closed_pipe_is_no_crash(self):
        running = subprocess.Popen([PROGRAM, "summary", "resnet50"], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        running.stdout.close()
        running.wait(60)
        running.stderr.close()
        self.assertGreaterEqual(running.returncode, 0)


class Training(Folder):
    def test_a_table_is_learned_evaluated_predicted_and_plotted(self):
        result = self.train_table()
        self.assertGreater(result["test"]["accuracy"], 0.9)
        model = result["file"]
        found = json.loads(volta("eval", model, "--data", f"csv:{self.folder / 'kinds.csv'}", "--json").stdout)
        self.assertAlmostEqual(found["accuracy"], result["test"]["accuracy"], 6)
        volta("eval", model, "--data", f"csv:{self.folder / 'kinds.csv'}", "--confusion")
        rows = self.folder / "rows.csv"
        rows.write_text("width,length\n0,0\n-1,2\n-2,4\n")
        said = [json.loads(line)["label"] for line in volta("predict", model, rows, "--json").stdout.splitlines()]
        self.assertEqual(said, ["a", "b", "c"])
        rows.write_text("width\n0\n")
        self.assertIn("lacks the column 'length'", volta("predict", model, rows, status=1).stderr)
        picture = pathlib.Path(volta("plot", self.folder / "run").stdout.strip()).read_text()
        self.assertIn("<polyline", picture)
        self.assertIn("</svg>", picture)

    def test_a_config_file_gives_what_the_flags_do_not(self):
        table = iris_like(self.folder / "kinds.csv")
        config = self.folder / "run.toml"
        config.write_text(f'model = "mlp"\ndata = "csv:{table}"\nepochs = 2\nset = ["hidden=8"]\nlr = 0.01\n')
        result = json.loads(volta("train", "--config", config, "--epochs", 1, "--out", self.folder / "a", "--json").stdout)
        self.assertEqual(result["parameters"], 2 * 8 + 8 + 8 * 8 + 8 + 8 * 3 + 3)
        self.assertEqual(len((self.folder / "a/log.jsonl").read_text().splitlines()), 1)
        config.write_text("epoch = 2\n")
        self.assertIn("no option 'epoch'", volta("train", "--config", config, status=1).stderr)
        config.write_text("epochs = = 2\n")
        self.assertIn("line 1", volta("train", "--config", config, status=1).stderr)

    def test_the_same_seed_gives_the_same_weights_whatever_the_workers(self):
        files = [self.train_table(f"run{i}", "--workers", workers)["file"] for i, workers in enumerate([0, 1, 3])]
        self.assertEqual(safetensors(files[0]), safetensors(files[1]))
        self.assertEqual(safetensors(files[0]), safetensors(files[2]))

    def test_killed_and_resumed_equals_uninterrupted(self):
        table = iris_like(self.folder / "kinds.csv", 600)
        flags = ["train", "mlp", "--data", f"csv:{table}", "--epochs", 12, "--batch", 8, "--save-every", 7, "--json"]
        whole = safetensors(json.loads(volta(*flags, "--out", self.folder / "whole").stdout)["file"])
        draw = random.Random(2)
        killed = 0
        for attempt in range(60):
            running = subprocess.Popen([PROGRAM, *map(str, flags), "--out", str(self.folder / "cut"), "--resume"], env=ENVIRONMENT,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                running.wait(draw.uniform(0.02, 0.15) if killed < 6 else 120)
                break
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
                killed += 1
            finally:
                running.stdout.close()
        self.assertGreater(killed, 0)
        self.assertEqual(safetensors(self.folder / "cut/model.safetensors"), whole)

    def test_ctrl_c_saves_and_says_how_to_go_on(self):
        table = iris_like(self.folder / "kinds.csv", 3000)
        running = subprocess.Popen([PROGRAM, "train", "mlp", "--data", f"csv:{table}", "--epochs", "100000", "--out",
                                    str(self.folder / "run")], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130)
        self.assertIn("--resume", said)
        self.assertTrue(safetensors(self.folder / "run/model.safetensors"))

    def test_a_text_is_learned_and_continued(self):
        text = self.folder / "text.txt"
        text.write_text("the cat sat on the mat. " * 200)
        result = json.loads(volta("train", "char-lstm", "--data", f"text:{text}", "--epochs", 3, "--batch", 8, "--set", "hidden=32",
                                  "--set", "context=32", "--out", self.folder / "lm", "--json").stdout)
        first = volta("generate", result["file"], "the ", "--tokens", 20, "--seed", 3).stdout
        self.assertTrue(first.startswith("the ") and len(first) == 25)
        self.assertEqual(first, volta("generate", result["file"], "the ", "--tokens", 20, "--seed", 3).stdout)
        self.assertIn("vocabulary has no 'Q'", volta("generate", result["file"], "Q", status=1).stderr)

    def test_weights_go_through_every_format(self):
        model = self.train_table()["file"]
        want = safetensors(model)
        previous = model
        for ending in ["npz", "pt", "safetensors"]:
            volta("convert", previous, self.folder / f"w.{ending}")
            previous = self.folder / f"w.{ending}"
            self.assertIn("6 tensors", volta("info", previous).stdout)
        self.assertEqual(safetensors(previous), want)
        plan = volta("convert", model, self.folder / "x.pt", "--rename", "rows.*=fc.*", "--dry-run").stdout
        self.assertIn("fc.0.weight", plan)
        self.assertFalse((self.folder / "x.pt").exists())
        self.assertIn("ending", volta("convert", model, self.folder / "x.txt", status=1).stderr)


class Serving(Folder):
    def serve(self, file, *flags):
        running = subprocess.Popen([PROGRAM, "serve", str(file), "--port", "0", "--json", *map(str, flags)], env=ENVIRONMENT,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (running.kill(), running.wait(), running.stdout.close(), running.stderr.close()))
        address = json.loads(running.stdout.readline())["listening"]
        return running, int(address.rsplit(":", 1)[1])

    def ask(self, port, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def test_predictions_health_metrics_limits_and_shutdown(self):
        model = self.train_table()["file"]
        running, port = self.serve(model, "--max-body", 4096, "--max-batch", 4)
        self.assertEqual(self.ask(port, "GET", "/health")[0], 200)
        self.assertIn(b"<canvas", self.ask(port, "GET", "/")[1])
        status, body = self.ask(port, "POST", "/v1/predict", json.dumps({"inputs": [[0, 0], [2, -1], [4, -2]]}))
        self.assertEqual((status, [p["label"] for p in json.loads(body)["predictions"]]), (200, ["a", "b", "c"]))
        npy = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }".ljust(117) + b"\n" + struct.pack("<2f", 4, -2)
        status, body = self.ask(port, "POST", "/v1/predict", npy, {"Content-Type": "application/x-npy", "Accept": "application/x-npy"})
        self.assertEqual((status, body[:6]), (200, b"\x93NUMPY"))
        for bad, wanted in [("{", 400), ("[]", 400), ("{}", 400), ('{"inputs": "x"}', 400), ('{"inputs": [[1]]}', 400),
                            ('{"inputs": [[1, 2], [3]]}', 400), ('{"inputs": ' + "[" * 500, 400), ('{"inputs": [[1,2]]}' + " " * 5000, 413),
                            ('{"inputs": [[1,2],[1,2],[1,2],[1,2],[1,2]]}', 413), ("", 400)]:
            status, body = self.ask(port, "POST", "/v1/predict", bad)
            self.assertEqual(status, wanted, bad[:40])
            self.assertIn("message", json.loads(body)["error"])
        self.assertEqual(self.ask(port, "GET", "/nothing")[0], 404)
        self.assertEqual(self.ask(port, "POST", "/v1/completions", "{}")[0], 404)
        text = self.ask(port, "GET", "/metrics")[1].decode()
        self.assertIn('volta_requests_total{code="200"} 2', text)
        self.assertIn("port is in use", volta("serve", model, "--port", port, status=1).stderr)
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(20), 0)

    def test_many_clients_and_junk_get_answers(self):
        model = self.train_table()["file"]
        running, port = self.serve(model)
        good = json.dumps({"inputs": [[2, -1]]}).encode()

        def client(seed):
            draw = random.Random(seed)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            seen = set()
            for i in range(60):
                body = bytearray(good)
                if i % 2:
                    for _ in range(draw.randint(1, 4)):
                        body[draw.randrange(len(body))] = draw.randrange(256)
                connection.request("POST", "/v1/predict", bytes(body))
                reply = connection.getresponse()
                text = reply.read()
                self.assertTrue(reply.status == 200 or 400 <= reply.status < 500, (reply.status, body))
                if i % 2 == 0:
                    self.assertEqual(json.loads(text)["predictions"][0]["label"], "b")
                seen.add(reply.status)
            connection.close()
            return seen

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            seen = set().union(*pool.map(client, range(8)))
        self.assertIn(200, seen)
        self.assertIn(400, seen)
        self.assertIsNone(running.poll())

    def test_completions_whole_and_streamed(self):
        text = self.folder / "text.txt"
        text.write_text("abcdefgh" * 300)
        model = json.loads(volta("train", "gpt", "--data", f"text:{text}", "--epochs", 2, "--batch", 8, "--set", "width=32", "--set",
                                 "heads=2", "--set", "layers=1", "--set", "context=16", "--out", self.folder / "lm", "--json").stdout)["file"]
        _, port = self.serve(model)
        request = {"model": "m", "prompt": "abc", "max_tokens": 30, "temperature": 0, "seed": 1}
        status, body = self.ask(port, "POST", "/v1/completions", json.dumps(request))
        whole = json.loads(body)["choices"][0]["text"]
        self.assertEqual((status, len(whole)), (200, 30))
        status, body = self.ask(port, "POST", "/v1/completions", json.dumps({**request, "stream": True}))
        events = [line[6:] for line in body.decode().split("\n\n") if line.startswith("data: ")]
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual("".join(json.loads(e)["choices"][0]["text"] for e in events[:-1]), whole)
        stopped = json.loads(self.ask(port, "POST", "/v1/completions", json.dumps({**request, "stop": whole[2:4]}))[1])["choices"][0]
        self.assertEqual((stopped["text"], stopped["finish_reason"]), (whole[:whole.index(whole[2:4])], "stop"))
        self.assertEqual(self.ask(port, "POST", "/v1/completions", '{"prompt": "Z"}')[0], 400)
        self.assertEqual(self.ask(port, "POST", "/v1/predict", '{"inputs": [1]}')[0], 404)


if __name__ == "__main__":
    unittest.main()
