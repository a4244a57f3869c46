#!/usr/bin/env python3
"""What a run of `volta train` keeps: the split of its data, its flags, its logs, and what was there before it.

    tests/command/runs_test.py PROGRAM DATA_FOLDER [unittest arguments]
"""

import json
import os
import pathlib
import pty
import random
import shlex
import shutil
import signal
import struct
import subprocess
import time
import unittest

from common import ENVIRONMENT, PROGRAM, Folder, iris_like, recipe_of, safetensors, train_text, volta


def noise(path, rows=200, seed=5):
    """A table with nothing to learn but its training items: what was held out gets worse soon."""
    draw = random.Random(seed)
    path.write_text("a,b,c,kind\n" + "".join(f"{draw.gauss(0, 1):.4f},{draw.gauss(0, 1):.4f},{draw.gauss(0, 1):.4f},{draw.choice('xy')}\n"
                                             for _ in range(rows)))
    return path


# Ctrl-C at the moment from which on the training takes note of it.
INTERRUPTS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
int sigaction(int number, const struct sigaction* now, struct sigaction* before) {
  int (*const next)(int, const struct sigaction*, struct sigaction*) = dlsym(RTLD_NEXT, "sigaction");
  const int result = next(number, now, before);
  if (number == SIGINT && now && now->sa_handler != SIG_DFL && now->sa_handler != SIG_IGN && write(2, "raised\n", 7) == 7) raise(SIGINT);
  return result;
}
"""


def files_of(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in pathlib.Path(folder).rglob("*") if f.is_file()}


def npy(kind, shape, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


class Runs(Folder):
    def kill(self, flags, out, draw, most):
        """Runs with --resume until it ends; kills it `most` times at moments that are drawn."""
        killed = 0
        for _ in range(100):
            running = subprocess.Popen([PROGRAM, *map(str, flags), "--out", str(out), "--resume"], env=ENVIRONMENT,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                said = running.communicate(timeout=draw.uniform(0.03, 0.2) if killed < most else 300)
                self.assertEqual(running.returncode, 0, said)
                break
            except subprocess.TimeoutExpired:
                running.kill()
                running.communicate()
                killed += 1
        self.assertGreater(killed, 0)

    def test_eval_measures_the_items_that_training_held_out(self):
        table = noise(self.folder / "noise.csv")
        rows = [line.split(",") for line in table.read_text().split()]
        table.write_text("\n".join(",".join([row[3], *row[:3]]) for row in rows) + "\n")  # the target is not the last column
        flags = ["--data", f"csv:{table}", "--target", "kind", "--seed", 7, "--held-out", 0.3, "--epochs", 40, "--batch", 16]
        result = json.loads(volta("train", "mlp", *flags, "--set", "hidden=64", "--out", self.folder / "run", "--json").stdout)
        recipe = recipe_of(result["file"])
        self.assertEqual((recipe["seed"], recipe["held_out"], recipe["target"]), (7, 0.3, "kind"))
        measure = ["eval", result["file"], "--data", f"csv:{table}", "--json"]
        found = json.loads(volta(*measure).stdout)
        self.assertEqual(found["items"], 60)
        self.assertAlmostEqual(found["loss"], result["test"]["loss"], 5)
        self.assertGreater(abs(json.loads(volta(*measure, "--seed", 1).stdout)["loss"] - found["loss"]), 0.01)
        self.assertIn("not the kind of data", volta(*measure, "--target", "a", status=1).stderr)
        counted = json.loads(volta(*measure, "--confusion").stdout)
        self.assertEqual((counted["labels"], sum(map(sum, counted["confusion"]))), (["x", "y"], 60))

    def test_a_run_that_fails_leaves_the_one_before_it(self):
        train_text(self.folder)
        there = files_of(self.folder / "lm")
        again = ["train", "gpt", "--data", f"text:{self.folder / 'text.txt'}", "--epochs", 1, "--out", self.folder / "lm"]
        small = ["--set", "width=32", "--set", "heads=2", "--set", "layers=1", "--set", "context=16"]
        for wrong, word in [(["--set", "width=10", "--set", "heads=3"], "a width of 10 cannot be divided among 3 heads"),
                            (["--set", "context=2000"], "--held-out"), ([*small, "--lr", "1e30", "--schedule", "constant"], "--clip")]:
            said = volta(*again, *wrong, status=1).stderr
            self.assertIn(word, said)
            self.assertNotIn("max_grad_norm", said)
            self.assertNotIn("-nan", said)
            self.assertEqual(files_of(self.folder / "lm"), there, wrong)
        self.assertIn("the size 'context' is 0", volta(*again, "--set", "context=0", status=1).stderr)
        volta(*again, *small)
        self.assertEqual(len((self.folder / "lm/log.csv").read_text().splitlines()), 2)
        table = self.folder / "small.csv"
        table.write_text("x,y\n1,2.5\n2,3.5\n")
        self.assertIn("--held-out", volta("train", "mlp", "--data", f"csv:{table}", "--held-out", "0.01", "--out", self.folder / "x", status=1).stderr)

    def test_a_new_run_may_have_other_columns_in_its_log(self):
        self.train_table("run", "--save-every", "1000")
        table = self.folder / "sums.csv"
        table.write_text("a,b,sum\n" + "".join(f"{i},{i % 7},{i + i % 7}.5\n" for i in range(60)))
        for _ in range(2):
            volta("train", "mlp", "--data", f"csv:{table}", "--epochs", 3, "--save-every", 1000, "--out", self.folder / "run")
            self.assertEqual([row.split(",")[0] for row in (self.folder / "run/log.csv").read_text().split()], ["epoch", "0", "1", "2"])
            self.assertEqual(len((self.folder / "run/log.jsonl").read_text().splitlines()), 3)

    def test_sizes_that_the_model_does_not_have_are_refused(self):
        train = ["train", "mlp", "--data", f"csv:{iris_like(self.folder / 'kinds.csv')}", "--out", self.folder / "run"]
        self.assertIn("no size 'hiden'; known are hidden", volta(*train, "--set", "hiden=8", status=1).stderr)
        self.assertIn("follows from the data", volta(*train, "--set", "inputs=8", status=1).stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_images_of_a_folder_are_brought_to_the_size_that_is_set(self):
        if not json.loads(volta("doctor", "--json").stdout)["images"]["state"].startswith("PNG"):
            self.skipTest("a build without images")
        for kind, colour in [("dark", 20), ("light", 220)]:
            (self.folder / "images" / kind).mkdir(parents=True)
            for i in range(20):
                (self.folder / "images" / kind / f"{i}.ppm").write_bytes(b"P6\n20 16\n255\n" + bytes([colour + i]) * (3 * 20 * 16))
        data = f"images:{self.folder / 'images'}"
        train = ["train", "mlp", "--data", data, "--epochs", 2, "--batch", 8, "--set", "hidden=8", "--out", self.folder / "run", "--json"]
        file = json.loads(volta(*train, "--set", "height=8", "--set", "width=12").stdout)["file"]
        self.assertEqual([recipe_of(file)["sizes"][name] for name in ["channels", "height", "width"]], [3, 8, 12])
        self.assertIn("accuracy", json.loads(volta("eval", file, "--data", data, "--json").stdout))
        volta("predict", file, self.folder / "images/dark/0.ppm")
        volta(*train, "--resume", "--set", "height=8")
        self.assertIn("the size 'height' is 9, but 8", volta(*train, "--resume", "--set", "height=9", status=1).stderr)
        self.assertIn("must be from 1 to 16384", volta(*train, "--set", "width=0", status=1).stderr)
        digits = ["train", "lenet", "--data", "digits", "--epochs", 1, "--out", self.folder / "lenet"]
        self.assertIn("follows from the data: it is 28, not 32", volta(*digits, "--set", "height=32", status=1).stderr)
        self.assertIn("no size 'height'", volta("train", "mlp", "--data", f"csv:{iris_like(self.folder / 'kinds.csv')}", "--set", "height=8",
                                                "--out", self.folder / "x", status=1).stderr)

    def test_two_trainings_do_not_share_a_folder(self):
        table, run = iris_like(self.folder / "kinds.csv"), self.folder / "run"
        train = ["train", "mlp", "--data", f"csv:{table}", "--schedule", "constant", "--out", run]
        first = subprocess.Popen([PROGRAM, *map(str, train), "--epochs", "100000"], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not list((run / "checkpoints").glob("*.ckpt")):
                self.assertIsNone(first.poll())
                time.sleep(0.01)
            for more in [(), ("--resume",)]:
                self.assertRegex(volta(*train, "--epochs", 1, *more, status=1).stderr, "another training writes to .*run.lock.*--out")
        finally:
            first.kill()
            first.wait()
        done = len((run / "log.jsonl").read_text().splitlines())
        self.assertIn("resumed", volta(*train, "--resume", "--epochs", done + 5).stdout)
        volta(*train, "--epochs", 1)

    def test_adam_takes_weight_decay(self):
        weights = [self.train_table(f"run{w}", "--optimizer", "adam", "--weight-decay", w)["file"] for w in [0, 1]]
        self.assertNotEqual(*map(safetensors, weights))

    def test_resuming_takes_the_flags_of_the_run(self):
        table = iris_like(self.folder / "kinds.csv", 300)
        flags = ["--epochs", 6, "--batch", 16, "--optimizer", "sgd", "--lr", "0.03", "--seed", 5, "--set", "hidden=24", "--clip", "2", "--held-out", "0.2",
                 "--weight-decay", "0.2", "--schedule", "cosine"]
        whole = safetensors(json.loads(volta("train", "mlp", "--data", f"csv:{table}", *flags, "--out", self.folder / "whole", "--json").stdout)["file"])
        run = self.folder / "a run's"
        volta("train", "mlp", "--data", f"csv:{table}", *flags, "--out", run)
        (run / "model.safetensors").unlink()
        checkpoints = sorted((run / "checkpoints").glob("*.ckpt"))
        checkpoints[-1].unlink()  # as if the last epoch had not been
        go_on = ["train", "mlp", "--data", f"csv:{table}", "--out", run, "--resume"]
        there = files_of(run)
        for wrong, words in [(["--optimizer", "adamw"], "--optimizer is adamw, but sgd"), (["--lr", "0.04"], "--lr is 0.04, but 0.03"),
                             (["--seed", 6], "--seed is 6, but 5"), (["--batch", 8], "--batch is 8, but 16"), (["--clip", 3], "--clip is 3.0, but 2.0"),
                             (["--patience", 3], "--patience is 3, but not set"), (["--no-augment"], "--no-augment is true, but not set"),
                             (["--set", "hidden=16"], "'hidden' is 16, but 24"), (["--epochs", 3], "--epochs is 3, but the run"),
                             (["--epochs", 9], "the schedule cosine"), (["--held-out", 0.1], "--held-out is 0.1, but 0.2"),
                             (["--target", "width"], "other")]:
            said = volta(*go_on, *wrong, status=1).stderr
            self.assertIn(words, said)
            self.assertEqual(files_of(run), there, wrong)
        volta("train", "--out", run, "--resume", "--optimizer", "sgd", "--set", "hidden=24")  # the rest is in the checkpoint
        self.assertEqual(safetensors(run / "model.safetensors"), whole)

    def test_columns_that_are_left_out_are_named(self):
        table = self.folder / "words.csv"
        table.write_text("a,note,b,kind\n" + "".join(f"{i},n{i},{'x' if i == 7 else i},{'xy'[i % 2]}\n" for i in range(40)))
        for more in [[], ["--json"]]:
            done = volta("train", "mlp", "--data", f"csv:{table}", "--epochs", 1, "--out", self.folder / "run", *more)
            self.assertEqual([line for line in done.stderr.splitlines() if "left out" in line],
                             [f"volta: the column '{name}' is left out: it holds words" for name in ["note", "b"]])
        self.assertEqual(recipe_of(self.folder / "run/model.safetensors")["columns"], ["a"])

    def test_a_run_of_a_constant_rate_can_be_made_longer(self):
        table = iris_like(self.folder / "kinds.csv")
        train = ["train", "mlp", "--data", f"csv:{table}", "--schedule", "constant", "--json"]
        whole = json.loads(volta(*train, "--epochs", 5, "--out", self.folder / "whole").stdout)["file"]
        volta(*train, "--epochs", 2, "--out", self.folder / "run")
        longer = json.loads(volta(*train, "--epochs", 5, "--out", self.folder / "run", "--resume").stdout)["file"]
        self.assertEqual(safetensors(longer), safetensors(whole))

    def test_patience_survives_kills(self):
        table = noise(self.folder / "noise.csv")
        flags = ["train", "mlp", "--data", f"csv:{table}", "--epochs", 200, "--batch", 8, "--patience", 30, "--schedule", "constant", "--lr", "0.002",
                 "--set", "hidden=32", "--save-every", 37, "--json"]
        whole = safetensors(json.loads(volta(*flags, "--out", self.folder / "whole").stdout)["file"])
        epochs = [json.loads(line)["epoch"] for line in (self.folder / "whole/log.jsonl").read_text().splitlines()]
        self.assertTrue(30 < len(epochs) < 200, len(epochs))
        self.kill(flags, self.folder / "cut", random.Random(3), 15)
        self.assertEqual(safetensors(self.folder / "cut/model.safetensors"), whole)
        for again in range(2):  # the second time there is nothing left to do
            rows = (self.folder / "cut/log.csv").read_text().splitlines()
            self.assertEqual([row.split(",")[0] for row in rows], ["epoch", *map(str, epochs)])
            self.assertEqual([json.loads(line)["epoch"] for line in (self.folder / "cut/log.jsonl").read_text().splitlines()], epochs)
            volta(*flags, "--out", self.folder / "cut", "--resume")
            self.assertEqual(safetensors(self.folder / "cut/model.safetensors"), whole)

    @unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
    def test_a_ctrl_c_before_the_first_step_is_no_result(self):
        (self.folder / "interrupts.c").write_text(INTERRUPTS)
        library = self.folder / "interrupts.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(self.folder / "interrupts.c"), "-ldl"], check=True)
        self.train_table()
        there = files_of(self.folder / "run")
        train = [PROGRAM, "train", "mlp", "--data", f"csv:{self.folder / 'kinds.csv'}", "--seed", "9", "--out"]
        for out, more in [("run", []), ("new", []), ("new", ["--json"]), ("new", ["--patience", "2", "--save-every", "1"])]:
            done = subprocess.run([*train, str(self.folder / out), *more], env={**ENVIRONMENT, "LD_PRELOAD": str(library)}, capture_output=True, text=True,
                                  timeout=60)
            if "raised" not in done.stderr:
                self.skipTest("this build does not let its calls of sigaction be replaced")
            self.assertEqual(done.returncode, 130, done)
            if "--json" in more:
                said = json.loads(done.stdout)
                self.assertEqual((said["file"], said["interrupted"], said["test"]), (None, True, {}))
            else:
                self.assertIn("nothing was saved", done.stdout)
            self.assertEqual(files_of(self.folder / "run"), there)
            self.assertEqual({name: data for name, data in files_of(self.folder / "new").items() if data} if out == "new" else {}, {})
        (self.folder / "run/model.safetensors").unlink()
        done = subprocess.run([PROGRAM, "train", "--out", str(self.folder / "run"), "--resume"], env={**ENVIRONMENT, "LD_PRELOAD": str(library)},
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 130)
        self.assertEqual((self.folder / "run/model.safetensors").read_bytes(), there["model.safetensors"])  # what was learned before is a result

    def test_an_epoch_whose_last_group_is_smaller_ends_after_a_kill(self):
        flags = ["train", "mlp", "--data", f"csv:{iris_like(self.folder / 'kinds.csv')}", "--epochs", 2, "--batch", 16, "--accumulate", 4, "--save-every", 1,
                 "--out", self.folder / "run"]
        volta(*flags)
        log = self.folder / "run/log.csv"
        whole = log.read_text().splitlines()
        weights = safetensors(self.folder / "run/model.safetensors")
        log.write_text("\n".join(whole[:2]) + "\n")  # as after a kill behind the last step, before the epoch's row
        volta(*flags, "--resume")
        again = log.read_text().splitlines()
        self.assertEqual([row.split(",")[:2] for row in again], [row.split(",")[:2] for row in whole])
        column = whole[0].split(",").index("val_loss")
        self.assertEqual(again[2].split(",")[column], whole[2].split(",")[column])
        self.assertEqual(safetensors(self.folder / "run/model.safetensors"), weights)

    def test_damaged_checkpoints_are_named(self):
        self.train_table()
        weights = safetensors(self.folder / "run/model.safetensors")
        resume = ["train", "--out", self.folder / "run", "--resume"]
        self.assertNotIn("damaged", volta(*resume).stderr)
        before, newest = sorted((self.folder / "run/checkpoints").iterdir())
        for damage in [lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), lambda raw: raw[:100], lambda raw: b""]:
            newest.write_bytes(damage(newest.read_bytes()))
            self.assertIn(f"{newest} is damaged", volta(*resume).stderr)
            self.assertEqual(safetensors(self.folder / "run/model.safetensors"), weights)
            before, newest = sorted((self.folder / "run/checkpoints").iterdir())
        for file in [before, newest]:
            file.write_bytes(b"")
        for more in [[], ["--json"]]:
            said = volta(*resume, *more, status=1).stderr
            self.assertIn(str(newest), said)
            self.assertIn("leave out --resume", said)

    def test_an_interrupted_run_says_the_command_that_goes_on(self):
        folder = self.folder / "a folder"
        folder.mkdir()
        table = iris_like(folder / "kinds.csv", 3000)
        log = folder / "run/log.csv"
        flags = ["--data", f"csv:{table}", "--epochs", "100000", "--optimizer", "sgd", "--seed", "3", "--workers", "2", "--out", str(folder / "run")]
        running = subprocess.Popen([PROGRAM, "train", "mlp", *flags], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while running.poll() is None and not (log.exists() and log.stat().st_size):
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130)
        line = next(line for line in said.splitlines() if line.startswith("go on with: volta "))
        words = shlex.split(line)[4:]
        self.assertEqual(words, ["train", "mlp", "--data", f"csv:{table}", "--out", str(folder / "run"), "--workers", "2", "--resume"])
        running = subprocess.Popen([PROGRAM, *words], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        self.assertIn("resumed after", running.stdout.readline())
        while log.read_text().count("\n") < 5:
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130)

    def test_a_ctrl_c_that_is_ignored_stays_so(self):
        table = iris_like(self.folder / "kinds.csv", 1000)
        running = subprocess.Popen([PROGRAM, "train", "mlp", "--data", f"csv:{table}", "--epochs", "60", "--out", str(self.folder / "run")], env=ENVIRONMENT,
                                   stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN), text=True)
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=120)
        self.assertEqual(running.returncode, 0)
        self.assertNotIn("interrupted", said)

    def test_bytes_of_a_table_are_numbers_and_those_of_an_image_are_not(self):
        model = self.train_table()["file"]
        (self.folder / "x.npy").write_bytes(npy("|u1", (2, 2), bytes([4, 0, 0, 2])))
        rows = self.folder / "x.csv"
        rows.write_text("length,width\n4,0\n0,2\n")
        said = [[json.loads(line)["probabilities"] for line in volta("predict", model, self.folder / name, "--json").stdout.splitlines()]
                for name in ["x.npy", "x.csv"]]
        self.assertEqual(*said)

    def test_numbers_that_are_not_finite_are_refused(self):
        model = self.train_table()["file"]
        rows = self.folder / "rows.csv"
        for row in ["1,", "1,inf", "1e300,1", "3e38,3e38"]:
            rows.write_text(f"length,width\n0,0\n{row}\n")
            done = volta("predict", model, rows, status=1)
            self.assertRegex(done.stderr, r"rows\.csv:2: ", row)
            self.assertEqual(done.stdout, "")
        (self.folder / "x.npy").write_bytes(npy("<f8", (1, 2), struct.pack("<2d", 0, 1e300)))
        self.assertIn("x.npy: ", volta("predict", model, self.folder / "x.npy", status=1).stderr)


class Formats(Folder):
    def test_conversion_keeps_what_the_source_says(self):
        model = self.train_table()["file"]
        same, other, half = (self.folder / f"{name}.safetensors" for name in ["same", "other", "half"])
        volta("convert", model, same)
        self.assertEqual(recipe_of(same), recipe_of(model))
        volta("convert", model, half, "--cast", "f16")
        self.assertIn("accuracy", json.loads(volta("eval", half, "--data", f"csv:{self.folder / 'kinds.csv'}", "--json").stdout))
        volta("convert", model, other, "--add-prefix", "net.")
        self.assertIn("without a recipe", volta("predict", other, "x.csv", status=1).stderr)
        volta("convert", other, same, "--strip-prefix", "net.", "--model", "mlp:" + json.dumps(recipe_of(model)))
        self.assertEqual(recipe_of(same), recipe_of(model))
        checkpoint = next((self.folder / "run/checkpoints").glob("*.ckpt"))
        volta("convert", checkpoint, other, "--select", "model.*")
        self.assertNotIn("volta.checkpoint", volta("info", other).stdout)

    def test_info_goes_by_the_content(self):
        model = self.train_table()["file"]
        checkpoint = next((self.folder / "run/checkpoints").glob("*.ckpt"))
        self.assertEqual(json.loads(volta("info", checkpoint, "--json").stdout)["metadata"]["format"], "volta.checkpoint")
        (self.folder / "weights.bin").write_bytes(pathlib.Path(model).read_bytes())
        self.assertIn("volta.recipe", volta("info", self.folder / "weights.bin").stdout)
        self.assertIn("volta.recipe", volta("info", self.folder / "run").stdout)
        (self.folder / "numbers.npy").write_bytes(npy("<f4", (2, 3), bytes(24)))
        self.assertRegex(volta("info", self.folder / "numbers.npy").stdout, r"^numbers +f32 +\[2, 3\]\n1 tensors")
        (self.folder / "cut.npy").write_bytes(npy("<f4", (2, 3), bytes(20)))
        self.assertIn("takes 24 bytes", volta("info", self.folder / "cut.npy", status=1).stderr)

    def test_json_is_json_everywhere(self):
        model = self.train_table()["file"]
        plan = [json.loads(line) for line in volta("convert", model, "x.pt", "--exclude", "*bias", "--dry-run", "--json").stdout.splitlines()]
        self.assertEqual(sum(line.get("to") is None for line in plan), 3)
        self.assertEqual({tuple(line["shape"]) for line in plan if line["to"]}, {(16, 2), (16, 16), (3, 16)})
        for wrong in [["fly"], ["fly", "--help"], ["train", "--fly"], ["train", "--epochs", "many"], []]:
            self.assertIn("see volta --help", json.loads(volta(*wrong, "--json", status=2).stderr)["error"])
        self.assertIn("complete -o", json.loads(volta("completion", "zsh", "--json").stdout)["script"])
        table = self.folder / "input.csv"
        table.write_text("x,input\n" + "".join(f"{i},{i}.5\n" for i in range(40)))
        result = json.loads(volta("train", "mlp", "--data", f"csv:{table}", "--epochs", 2, "--out", self.folder / "in", "--json").stdout)
        said = json.loads(volta("predict", result["file"], table, "--json").stdout.splitlines()[0])
        self.assertEqual((set(said), said["input"]), ({"input", "output"}, f"{table}:1"))

    def test_closed_standard_streams_are_not_taken_for_files(self):
        table = iris_like(self.folder / "kinds.csv")
        train = f"'{PROGRAM}' train mlp --data 'csv:{table}' --epochs 2 --out '{self.folder}/run'"
        for closed in ["<&- >&-", "<&- >&- 2>&-", ">&- --json"]:
            subprocess.run(["bash", "-c", f"{train} {closed}"], env=ENVIRONMENT, timeout=60, check=True, stderr=subprocess.DEVNULL)
            rows = (self.folder / "run/log.csv").read_text().splitlines()
            self.assertEqual([row.split(",")[0] for row in rows], ["epoch", "0", "1"])
            for line in (self.folder / "run/log.jsonl").read_text().splitlines():
                json.loads(line)

    def test_a_dumb_terminal_gets_plain_lines(self):
        table = iris_like(self.folder / "kinds.csv")
        for kind, codes in [("dumb", False), ("xterm", True)]:
            ours, theirs = pty.openpty()
            subprocess.run([PROGRAM, "train", "mlp", "--data", f"csv:{table}", "--epochs", "2", "--out", str(self.folder / "run")],
                           env={**{k: v for k, v in ENVIRONMENT.items() if k != "NO_COLOR"}, "TERM": kind}, stdout=theirs, timeout=60, check=True)
            os.close(theirs)
            said = b""
            try:
                while part := os.read(ours, 65536):
                    said += part
            except OSError:
                pass
            os.close(ours)
            self.assertEqual(b"\x1b" in said, codes, said)

    def test_files_of_pytorch_that_hold_more_than_weights(self):
        nested, plain = (pathlib.Path(__file__).resolve().parent.parent / "data/io" / name for name in ["nested.pt", "module.pt"])
        names = {t["name"] for t in json.loads(volta("info", nested, "--json").stdout)["tensors"]}
        self.assertLessEqual({"shared.2", "model.0.weight", "model.1.num_batches_tracked", "expanded"}, names)
        out = self.folder / "out.safetensors"
        said = volta("convert", nested, out, status=1).stderr
        self.assertIn("nested.pt: not a plain state dict", said)
        self.assertIn("--part model", said)
        self.assertNotIn("read_torch_value", said)
        self.assertIn("has no part 'nets'", volta("convert", nested, out, "--part", "nets", status=1).stderr)
        self.assertIn("'shared' is of type list", volta("convert", nested, out, "--part", "shared", status=1).stderr)
        volta("convert", nested, out, "--part", "model")
        found = safetensors(out)
        volta("convert", plain, out)
        self.assertEqual({name: t[:2] for name, t in found.items()}, {name: t[:2] for name, t in safetensors(out).items()})

    def test_conversions_that_do_nothing_say_so(self):
        plain, out = pathlib.Path(__file__).resolve().parent.parent / "data/io/module.pt", self.folder / "out.pt"
        self.assertIn("is kept: nothing was written", volta("convert", plain, out, "--select", "layer*", status=1).stderr)
        self.assertFalse(out.exists())
        self.assertIn('without effect: rename_pattern("layer.*", "fc.*")', volta("convert", plain, out, "--rename", "layer.*=fc.*").stderr)
        self.assertEqual(volta("convert", plain, out, "--map", "resnet").stderr, "")

    def test_data_that_grew_are_not_those_of_the_run(self):
        """They would be split in another way: what was trained on would be tested on."""
        table, run = iris_like(self.folder / "kinds.csv"), self.folder / "run"
        volta("train", "mlp", "--data", f"csv:{table}", "--schedule", "constant", "--epochs", 2, "--out", run)
        go_on = ["train", "--out", run, "--resume", "--epochs", 3]
        for rows in [130, 110]:
            iris_like(table, rows)
            said = volta(*go_on, status=1).stderr
            self.assertIn(f"has {rows - rows // 10} training and {rows // 10} test items, but 108 training and 12 test in the run", said)
        iris_like(table)
        volta(*go_on)

    def test_columns_of_large_or_equal_values(self):
        draw = random.Random(3)
        rows = [(1.6e9 + i, 0.1, draw.gauss(0, 1)) for i in range(3000)]
        rows[7] = (rows[7][0], 5, rows[7][2])  # which a sample of the rows would miss
        table = self.folder / "t.csv"
        table.write_text("time,flag,b,y\n" + "".join(f"{t:.0f},{flag},{b:.4f},{b:.4f}\n" for t, flag, b in rows))
        result = json.loads(volta("train", "mlp", "--data", f"csv:{table}", "--epochs", 3, "--out", self.folder / "run", "--json").stdout)
        self.assertLess(result["test"]["loss"], 0.5)
        deviation = recipe_of(result["file"])["deviation"]
        self.assertAlmostEqual(deviation[0], 3000 / 12**0.5, delta=60)
        self.assertAlmostEqual(deviation[1], 4.9 / 2700**0.5, delta=0.01)
        table.write_text("c,b,y\n" + "".join(f"0.1,{b:.4f},{b:.4f}\n" for _, _, b in rows[:200]))
        result = json.loads(volta("train", "mlp", "--data", f"csv:{table}", "--epochs", 3, "--out", self.folder / "run", "--json").stdout)
        self.assertEqual(recipe_of(result["file"])["deviation"][0], 1)
        table.write_text("c,b\n0.2,1\n")
        other = json.loads(volta("predict", result["file"], table, "--json").stdout)
        self.assertLess(abs(other["y"]), 10)

    def test_tables_that_cannot_be_meant(self):
        table = self.folder / "t.csv"
        train = ["train", "mlp", "--data", f"csv:{table}", "--epochs", 1, "--out", self.folder / "run"]
        table.write_text("a,y\n" + "".join(f"{i},{['cat', 'dog', ''][i % 3]}\n" for i in range(60)))
        self.assertIn("t.csv: values of 'y', which is to be predicted, are missing", volta(*train, status=1).stderr)
        table.write_text("a;y\n" + "".join(f"{i};{i}\n" for i in range(60)))
        self.assertIn("the one column 'a;y': its fields must be separated by commas", volta(*train, status=1).stderr)
        self.assertIn("none.toml: ", volta("train", "--config", self.folder / "none.toml", status=1).stderr)

    def test_an_epoch_does_not_end_with_a_batch_of_one(self):
        """Batch norm could not normalise by it."""
        for part, count in [("train", 9), ("t10k", 4)]:
            (self.folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, count, 28, 28) + random.Random(1).randbytes(count * 784))
            (self.folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, count) + bytes(range(count)))
        for model, steps in [("resnet18", 2), ("mlp", 3)]:
            out = self.folder / model
            volta("train", model, "--data", f"mnist:{self.folder}", "--epochs", 1, "--batch", 4, "--out", out)
            self.assertEqual((out / "log.csv").read_text().splitlines()[1].split(",")[1], str(steps))

    def test_wrong_words_are_status_2(self):
        table = iris_like(self.folder / "kinds.csv")
        train = ["train", "mlp", "--data", f"csv:{table}"]
        for arguments in [["train", "lenot", "--data", "digits"], ["train", "mlp", "--data", "digit"], [*train, "--optimizer", "adamx"],
                          [*train, "--schedule", "wave"], [*train, "--precision", "f8"], [*train, "--device", "tpu"], ["summary", "lenot"], ["eval", "x", "--data", "digit"],
                          ["bench", "--device", "tpu"], ["bench", "--device", "cuda:one"], ["convert", "x", "y.pt", "--map", "gpt3"]]:
            self.assertIn("known are", volta(*arguments, status=2).stderr)
        for arguments, word in [([*train, "--set", "hidden"], "NAME=NUMBER"), (["convert", "x", "y.pt", "--rename", "a"], "OLD=NEW"),
                                (["convert", "x", "y.pt", "--cast", "f8"], "--cast takes"), (["convert", "x", "y.pt", "--rename", "a.*=b"], "stars")]:
            self.assertIn(word, volta(*arguments, status=2).stderr)
        for seed in [["train", "mlp", "--data", "digits"], ["eval", "x", "--data", "digits"]]:
            self.assertIn("-1 is not a number from 0 on", volta(*seed, "--seed=-1", status=2).stderr)
            self.assertIn("more than 64 bits", volta(*seed, f"--seed={2**64}", status=2).stderr)
        self.assertEqual(recipe_of(json.loads(volta(*train, "--epochs", 1, "--seed", 2**64 - 1, "--out", self.folder / "run", "--json").stdout)["file"])["seed"], 2**64 - 1)
        config = self.folder / "run.toml"
        self.assertIn("is a folder", volta(*train, "--config", self.folder, status=1).stderr)
        for value in ["nan", "inf"]:
            config.write_text(f"lr = {value}\n")
            said = volta(*train, "--config", config, status=1).stderr
            self.assertIn("run.toml: 'lr' must be finite", said)
            self.assertLess(len(said), 200)
        self.assertLess(len(volta(*train, "--lr=inf", status=2).stderr), 100)
        for line in ["epochs = 'x'", "epochs = 1.5", "epochs = [1, 2]", "lr = 0", "seed = -1", "resume = 'maybe'", "set = []"]:
            config.write_text(line + "\n")
            said = volta(*train, "--config", config, status=2).stderr
            self.assertIn("run.toml: ", said)
            self.assertIn(f"--{line.split()[0]}", said)
        for name in ["help", "config", "threads"]:
            config.write_text(f"{name} = true\n")
            self.assertIn(f"run.toml: there is no option '{name}'", volta(*train, "--config", config, status=1).stderr)

    def test_names_that_no_file_can_have(self):
        loop = self.folder / "loop"
        loop.symlink_to(loop)
        table = iris_like(self.folder / "kinds.csv")
        for name in ["x" * 5000, loop]:
            self.assertIn("there is no model", volta("summary", name, status=2).stderr)
            for arguments in [("plot", name), ("info", name), ("predict", name, table), ("train", "mlp", "--data", f"csv:{name}", "--out", self.folder / "run"),
                              ("train", "mlp", "--data", f"csv:{table}", "--config", name), ("train", "mlp", "--data", f"csv:{table}", "--out", name),
                              ("train", "resnet18", "--data", f"images:{name}", "--out", self.folder / "run"), ("convert", name, "x.pt")]:
                said = volta(*arguments, status=1).stderr
                self.assertIn(str(name), said)
                self.assertNotIn("unexpected", said)

    def test_words_among_numbers_are_told_with_their_line(self):
        model = self.train_table()["file"]
        rows = self.folder / "rows.csv"
        rows.write_text("length,width,kind\n1,2,a\n1,wide,a\n")
        done = volta("predict", model, rows, status=1)
        self.assertRegex(done.stderr, r"rows\.csv: line 3, column 'width': 'wide' is not a number")
        self.assertEqual(done.stdout, "")
        rows.write_text("epoch,step,loss\n0,1,0.5\n1,2,low\n")
        self.assertRegex(volta("plot", rows, status=1).stderr, r"rows\.csv: line 3, column 'loss': 'low' is not a number")
        volta("convert", model, self.folder / "half.safetensors", "--cast", "bf16")
        self.assertIn("--cast f32", volta("convert", self.folder / "half.safetensors", self.folder / "half.npz", status=1).stderr)
        self.assertFalse((self.folder / "half.npz").exists())

    def test_nothing_is_shown_of_what_fails(self):
        text = train_text(self.folder)
        self.assertEqual(volta("generate", text, "abQ", status=1).stdout, "")
        (self.folder / "log.csv").write_text("epoch,step,lr,seconds\n")
        for log in ["epoch,step,lr,seconds\n0,1,1,1\n", "epoch,step,loss\n"]:
            (self.folder / "log.csv").write_text(log)
            self.assertIn("no curves", volta("plot", self.folder, status=1).stderr)
        self.assertFalse(list(self.folder.glob("curves.*")))


if __name__ == "__main__":
    unittest.main()
