#!/usr/bin/env python3
"""The command volta as a person uses it: trains, resumes after being killed, evaluates, converts, and fails well.

    tests/command/command_test.py PROGRAM DATA_FOLDER [unittest arguments]
"""

import collections
import json
import os
import pathlib
import pty
import random
import resource
import signal
import struct
import subprocess
import time
import unittest
import xml.etree.ElementTree as xml
import zlib

from common import ENVIRONMENT, PROGRAM, Folder, iris_like, recipe_of, safetensors, train_text, volta, write_safetensors


def png(path):
    """Width, height and rows of bytes of a PNG of 8-bit RGB; every checksum is looked at."""
    raw = pathlib.Path(path).read_bytes()
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    at, data, kinds = 8, b"", []
    while at < len(raw):
        size, kind = struct.unpack(">I4s", raw[at:at + 8])
        body = raw[at + 8:at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", raw[at + 8 + size:at + 12 + size])[0]
        if kind == b"IHDR":
            width, height, *rest = struct.unpack(">IIBBBBB", body)
            assert rest == [8, 2, 0, 0, 0]
        data += body if kind == b"IDAT" else b""
        kinds.append(kind)
        at += 12 + size
    assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND"
    return width, height, unfiltered(zlib.decompress(data), 3 * width, height)


def unfiltered(data, stride, height):
    def nearest(a, b, c):  # Paeth's: whichever is nearest to a + b - c
        near = [abs(b - c), abs(a - c), abs(a + b - 2 * c)]
        return (a, b, c)[near.index(min(near))]
    rows, above = [], bytearray(stride)
    for y in range(height):
        kind, row = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride) if kind else []:
            left, corner = (row[x - 3], above[x - 3]) if x >= 3 else (0, 0)
            row[x] = row[x] + [0, left, above[x], (left + above[x]) // 2, nearest(left, above[x], corner)][kind] & 255
        rows.append(row)
        above = row
    return rows


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
                                (("--threads", "0", "doctor"), "threads"),
                                *((("eval", "x", "--data", "digits", f"--held-out={share}"), "held-out") for share in ["-50", "-1", "2", "nan"]),
                                *((("train", "mlp", f"--{name}=nan"), name) for name in ["held-out", "lr", "weight-decay", "clip"]),
                                (("generate", "x", "--top-p=nan"), "top-p")]:
            done = volta(*arguments, status=2)
            self.assertIn(word, done.stderr, arguments)
            self.assertEqual(done.stdout, "")

    def test_errors_are_status_1_and_name_the_file(self):
        absent = self.folder / "absent.safetensors"
        for arguments in [("info", absent), ("eval", absent, "--data", "digits"), ("predict", absent, "x.png"), ("serve", absent),
                          ("convert", absent, self.folder / "x.npz"), ("generate", absent), ("plot", self.folder / "absent")]:
            self.assertIn("absent", volta(*arguments, status=1).stderr)
        self.assertIn("does not take", volta("train", "gpt", "--data", "digits", status=1).stderr)
        bad = self.folder / "bad.safetensors"
        bad.write_text("not a tensor file")
        self.assertIn("bad.safetensors", volta("info", bad, status=1).stderr)
        self.assertIn("error", json.loads(volta("info", bad, "--json", status=1).stderr))

    def test_what_files_say_is_no_command_to_the_terminal(self):
        evil = "\x1b[31mred\x9b2J\nnext"
        file = write_safetensors(self.folder / "evil.safetensors", {evil: ("F32", [1], bytes(4))}, {"by" + evil: "ä" * 150 + evil, "x": evil})
        for arguments in [("info", file), ("convert", file, self.folder / "x.npz", "--dry-run")]:
            said = volta(*arguments).stdout
            self.assertIn(r"\x1b[31mred\xc2\x9b2J\nnext", said)
            self.assertNotRegex(said, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertIn("ä" * 100 + " …", volta("info", file).stdout)
        self.assertEqual(json.loads(volta("info", file, "--json").stdout)["tensors"][0]["name"], evil)
        model = self.train_table()["file"]
        recipe = {**recipe_of(model), "labels": [evil, "b", "c"]}
        write_safetensors(model, safetensors(model), {"volta.recipe": json.dumps(recipe)})
        rows = self.folder / "rows.csv"
        rows.write_text("width,length\n0,0\n")
        self.assertIn(r"\x1b[31mred", volta("predict", model, rows).stdout)
        rows.rename(self.folder / evil)
        self.assertIn(r"\x1b[31mred", volta("predict", model, self.folder / (evil + "x"), status=1).stderr)
        text = train_text(self.folder)
        write_safetensors(text, safetensors(text), {"volta.recipe": json.dumps({**recipe_of(text), "tokens": list("\x1b\x9b\x07\n\x08\x0e\x7f\r")})})
        ours, theirs = pty.openpty()
        subprocess.run([PROGRAM, "generate", text, "--tokens", "50", "--seed", "1"], env=ENVIRONMENT, stdout=theirs, timeout=60, check=True)
        os.close(theirs)
        self.assertRegex(os.read(ours, 4096).decode(), r"^([\r\n]|\\x[0-9a-f]{2})+$")
        os.close(ours)
        self.assertRegex(volta("generate", text, "--tokens", 50, "--seed", 1).stdout, "[\x1b\x9b\x07\x7f]")  # as it is where no one looks

    def test_a_recipe_that_does_not_fit_is_refused(self):
        model = self.train_table()["file"]
        whole, tensors = recipe_of(model), safetensors(model)
        rows = self.folder / "rows.csv"
        rows.write_text("width,length\n0,0\n-1,2\n")
        file = self.folder / "changed.safetensors"
        for change, word in [({"labels": ["a"]}, "1 labels"), ({"labels": list("abcd")}, "4 labels"), ({"mean": [0]}, "1 means"),
                             ({"deviation": [1]}, "1 deviations"), ({"deviation": []}, "0 deviations"), ({"deviation": [1, 0]}, "not positive"),
                             ({"columns": ["width"]}, "1 columns"), ({"mean": [None, 0]}, "cannot be read")]:
            write_safetensors(file, tensors, {"volta.recipe": json.dumps({**whole, **change})})
            self.assertIn(word, volta("predict", file, rows, status=1).stderr)
        for task, word in [("classify", "1"), ("regress", "output")]:  # names may be missing
            write_safetensors(file, tensors, {"volta.recipe": json.dumps({**whole, "labels": [], "task": task})})
            self.assertIn(f"rows.csv:2: {word} ", volta("predict", file, rows).stdout)
        text = train_text(self.folder)
        for tokens, word in [([], "no tokens"), (["a"], "1 tokens")]:
            write_safetensors(file, safetensors(text), {"volta.recipe": json.dumps({**recipe_of(text), "tokens": tokens})})
            self.assertIn(word, volta("generate", file, "a", status=1).stderr)

    def test_doctor_summary_completion(self):
        self.assertEqual(json.loads(volta("doctor", "--json").stdout)["arithmetic"]["state"], "right")
        self.assertIn("61706", volta("summary", "lenet").stdout)
        self.assertEqual(json.loads(volta("summary", "lenet", "--json").stdout)["parameters"], 61706)
        self.assertIn("lenet", volta("summary").stdout)
        subprocess.run(["bash", "-n"], input=volta("completion", "bash").stdout, text=True, check=True)

    def test_doctor_names_what_a_gpu_needs(self):
        found = json.loads(volta("doctor", "--json").stdout)
        if found["cuda"]["state"] == "not built":
            self.assertIn("VOLTA_CUDA", found["cuda"]["cure"])
            return
        for name in ["driver", "GPU", "cuBLASLt", "cuDNN"]:
            self.assertEqual(found[name]["state"] == "missing", found[name]["cure"] != "", name)
        for name in ["cuBLASLt", "cuDNN"]:
            self.assertRegex(found[name]["state"], r"^(missing|lib\S+ \d+\.\d+\.\d+)$")
        if found["cuDNN"]["cure"]:
            self.assertIn("convolutions are matrix products", found["cuDNN"]["cure"])

    def test_without_a_gpu_no_library_of_it_is_loaded(self):
        table = iris_like(self.folder / "kinds.csv")
        done = subprocess.run([PROGRAM, "train", "mlp", "--data", f"csv:{table}", "--epochs", "1", "--out", self.folder / "run"],
                              env={**ENVIRONMENT, "LD_DEBUG": "libs"}, capture_output=True, text=True, timeout=600, check=True)
        self.assertNotRegex(done.stderr, r"libcuda\.|libcublas|libcudnn")

    def test_a_closed_pipe_ends_quietly(self):
        for arguments in [("summary", "resnet50"), ("summary", "resnet50", "--json"), ("--help",)]:
            read, write = os.pipe()
            os.close(read)
            with os.fdopen(write, "wb") as closed:
                done = subprocess.run([PROGRAM, *arguments], env=ENVIRONMENT, stdout=closed, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        model = self.train_table()["file"]
        piped = f"set -o pipefail; '{PROGRAM}' info '{model}' | head -n 1"
        done = subprocess.run(["bash", "-c", piped], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr, len(done.stdout.splitlines())), (0, "", 1))

    def test_a_full_disk_under_standard_output_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "summary", "lenet"], env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to standard output", done.stderr)


@unittest.skipIf("TSAN_OPTIONS" in os.environ, "ThreadSanitizer itself needs a file larger than the limit when it starts")
class Disk(Folder):
    """Files that may not grow as far as they must: what a full disk does, without filling one."""

    def limited(self, size, *arguments):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return volta(*arguments, status=1, preexec_fn=limit)

    def test_the_last_checkpoint_survives_a_full_disk(self):
        table = iris_like(self.folder / "kinds.csv")
        flags = ["train", "mlp", "--data", f"csv:{table}", "--batch", 16, "--set", "hidden=64", "--save-every", 5, "--epochs", 100, "--json"]
        whole = safetensors(json.loads(volta(*flags, "--out", self.folder / "whole").stdout)["file"])
        cut = [*flags, "--out", self.folder / "cut"]
        running = subprocess.Popen([PROGRAM, *map(str, cut)], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        checkpoints = self.folder / "cut/checkpoints"
        while running.poll() is None and not list(checkpoints.glob("*.ckpt")):
            time.sleep(0.001)
        running.kill()
        running.wait()
        running.stdout.close()
        before = {f.name: f.read_bytes() for f in checkpoints.glob("*.ckpt")}
        self.assertTrue(before)
        size = min(map(len, before.values()))
        said = self.limited(size - 1000, *cut, "--resume").stderr
        self.assertRegex(said, r"checkpoints/step_.*File too large.*--resume")
        for name, content in before.items():
            self.assertEqual((checkpoints / name).read_bytes(), content)
        volta(*cut, "--resume")
        self.assertEqual(safetensors(self.folder / "cut/model.safetensors"), whole)

    def test_a_conversion_that_does_not_fit_leaves_the_old_file(self):
        model = self.train_table()["file"]
        for ending in ["npz", "pt", "safetensors"]:
            to = self.folder / f"weights.{ending}"
            to.write_text("precious")
            said = self.limited(512, "convert", model, to).stderr
            self.assertIn(to.name, said)
            self.assertEqual(to.read_text(), "precious", said)
            self.assertEqual(sorted(f.name for f in self.folder.iterdir() if "weights" in f.name and f != to), [])
            to.unlink()

    def test_a_plot_that_does_not_fit_says_so(self):
        self.train_table()
        self.assertRegex(self.limited(512, "plot", self.folder / "run").stderr, r"cannot write .*curves.*: File too large")
        self.assertEqual(list((self.folder / "run").glob("curves*")), [])
        volta("plot", self.folder / "run")
        before = (self.folder / "run/curves.svg").read_bytes()
        self.limited(512, "plot", self.folder / "run")
        self.assertEqual((self.folder / "run/curves.svg").read_bytes(), before)


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

    def test_a_fraction_is_learned_evaluated_and_predicted(self):
        draw = random.Random(3)
        table = self.folder / "sums.csv"
        pairs = [(draw.random(), draw.random()) for _ in range(200)]
        table.write_text("a,b,sum\n" + "".join(f"{a},{b},{a + b}\n" for a, b in pairs))
        train = ["train", "mlp", "--data", f"csv:{table}", "--epochs", 40, "--set", "hidden=16", "--out", self.folder / "sums", "--json"]
        result = json.loads(volta(*train).stdout)
        self.assertGreater(result["test"]["r2"], 0.9)
        found = json.loads(volta("eval", result["file"], "--data", f"csv:{table}", "--json").stdout)
        self.assertAlmostEqual(found["mae"], result["test"]["mae"], 6)
        rows = self.folder / "rows.csv"
        rows.write_text("b,a\n0.5,0.25\n")
        self.assertAlmostEqual(json.loads(volta("predict", result["file"], rows, "--json").stdout)["sum"], 0.75, 0)
        for row in ["1,2,\n", "1,,3\n", "1,2,inf\n", "1,inf,2\n"]:
            table.write_text("a,b,sum\n1,2,3.5\n2,3,5.5\n" + row)
            self.assertIn("missing or infinite", volta(*train, status=1).stderr, row)

    def test_names_that_are_not_utf8_are_refused_before_the_training(self):
        for name, data, content in [("text", "text:", b"abc\xe9" * 500), ("column", "csv:", b"caf\xe9,kind\n" + b"1,a\n2,b\n" * 40),
                                    ("label", "csv:", b"x,kind\n" + b"1,caf\xe9\n2,b\n" * 40)]:
            file, out = self.folder / name, self.folder / ("run-" + name)
            file.write_bytes(content)
            model = ["gpt", "--set", "width=32", "--set", "context=16"] if name == "text" else ["mlp"]
            said = volta("train", *model, "--data", f"{data}{file}", "--epochs", 1, "--out", out, status=1).stderr
            self.assertRegex(said, r"\\xe9' is not UTF-8.*iconv")
            self.assertFalse(out.exists())
        out = self.folder / os.fsdecode(b"run\xff")  # a folder may be called anything
        self.assertIn("run\ufffd", self.train_table(out)["file"])
        self.assertTrue((out / "model.safetensors").exists())

    def test_a_run_replaces_the_checkpoints_before_it_and_nothing_else(self):
        self.train_table()
        run = self.folder / "run"
        files = lambda: {f.name: f.read_bytes() for f in run.rglob("*") if f.is_file()}
        there = files()
        self.assertTrue(any(name.endswith(".ckpt") for name in there))
        again = ["train", "mlp", "--data", f"csv:{self.folder / 'kinds.csv'}", "--epochs", 1, "--out", run]
        for wrong, status in [(("--optimizer", "adamx"), 2), (("--schedule", "wave"), 2), (("--device", "tpu"), 2), (("--precision", "f8"), 2),
                              (("--set", "hidden=0"), 1)]:
            volta(*again, *wrong, status=status)
            self.assertEqual(files(), there, wrong)
        ours, others = ["step_000000999999.ckpt"], ["notes.txt", "step_mine.ckpt", "step_.ckpt", "step_1.ckpt.old", "step_1.ckptx"]
        for name in ours + others:
            (run / "checkpoints" / name).write_text("precious")
        volta(*again)
        left = {f.name for f in (run / "checkpoints").iterdir()}
        self.assertEqual((left & {*ours, *there}, left >= set(others), len(left)), (set(), True, len(others) + 1))

    def test_curves_become_pictures(self):
        self.train_table()
        with_png = json.loads(volta("doctor", "--json").stdout)["images"]["state"].startswith("PNG")
        files = volta("plot", self.folder / "run").stdout.split()
        self.assertEqual([pathlib.Path(f).name for f in files], ["curves.svg", "curves.png"][:2 if with_png else 1])
        root = xml.fromstring(pathlib.Path(files[0]).read_text())
        lines = [e for e in root if e.tag.endswith("polyline") and e.get("stroke") == "#3b7dd8" and e.get("points").count(",") == 40]
        self.assertEqual(len(lines), 2)  # loss and accuracy
        self.assertIn("must end in .svg or .png", volta("plot", self.folder / "run", "--out", self.folder / "x.gif", status=1).stderr)
        if not with_png:
            self.assertIn("libpng", volta("plot", self.folder / "run", "--out", self.folder / "x.png", status=1).stderr)
            return
        width, height, rows = png(files[1])
        self.assertEqual((width, height), (1920, 640))
        colours = collections.Counter(tuple(row[x:x + 3]) for row in rows for x in range(0, 3 * width, 3))
        self.assertGreater(colours[(255, 255, 255)], 0.8 * width * height)
        for colour in [(0x3b, 0x7d, 0xd8), (0xd8, 0x70, 0x3b)]:  # the curves
            self.assertGreater(colours[colour], 1000)
        self.assertGreater(colours[(0x33, 0x33, 0x33)], 200)  # the letters
        self.assertGreater(len(colours), 200)  # smooth edges

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

    def test_halves_learn_too(self):
        for precision in ["f32", "bf16", "f16"]:
            self.assertGreater(self.train_table(precision, "--precision", precision)["test"]["accuracy"], 0.9)
        self.assertNotEqual(safetensors(self.folder / "f32/model.safetensors"), safetensors(self.folder / "bf16/model.safetensors"))
        self.assertEqual({dtype for dtype, _, _ in safetensors(self.folder / "f16/model.safetensors").values()}, {"F32"})
        self.assertIn("known are f32, bf16, f16", volta("train", "mlp", "--data", "digits", "--precision", "f8", status=2).stderr)

    def test_killed_and_resumed_equals_uninterrupted(self):
        table = iris_like(self.folder / "kinds.csv", 600)
        flags = ["train", "mlp", "--data", f"csv:{table}", "--epochs", 12, "--batch", 8, "--save-every", 7, "--precision", "f16", "--json"]
        whole = safetensors(json.loads(volta(*flags, "--out", self.folder / "whole").stdout)["file"])
        draw = random.Random(2)
        killed = 0
        for attempt in range(60):
            running = subprocess.Popen([PROGRAM, *map(str, flags), "--out", str(self.folder / "cut"), "--resume"], env=ENVIRONMENT,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                running.wait(draw.uniform(0.02, 0.15) if killed < 20 else 120)
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


if __name__ == "__main__":
    unittest.main()
