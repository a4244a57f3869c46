#!/usr/bin/env python3
"""The command volta with the novel that ships: language models learn from it by name, are measured, and write on.

    tests/command/text_test.py PROGRAM DATA_FOLDER [unittest arguments]
"""

import json
import math
import random
import struct
import unittest

from common import Folder, Served, recipe_of, safetensors, train_text, volta, write_safetensors

SMALL = {"gpt": ["layers=1", "width=32", "heads=2", "context=256"], "char-lstm": ["hidden=48", "context=256"]}


class Novel(Folder):
    def trained(self, model, *more):
        sizes = [word for pair in SMALL[model] for word in ("--set", pair)]
        return volta("train", model, "--data", "austen", "--epochs", 1, "--batch", 32, *sizes, "--out", self.folder / model, *more)

    def test_language_models_learn_it_and_write_on(self):
        for model in SMALL:
            with self.subTest(model):
                result = json.loads(self.trained(model, "--json").stdout)
                self.assertLess(result["test"]["loss"], 3.3)  # of a guess among its 75 letters: 4.3
                found = json.loads(volta("eval", result["file"], "--data", "austen", "--json").stdout)
                self.assertAlmostEqual(found["loss"], result["test"]["loss"], 5)
                asked = ("generate", result["file"], "It is a truth", "--tokens", 80, "--seed", 3)
                text = volta(*asked).stdout
                self.assertTrue(text.startswith("It is a truth"))
                self.assertEqual(len(text), len("It is a truth") + 80 + 1)
                self.assertEqual(text, volta(*asked).stdout)
                self.assertIn("vocabulary has no 'é'", volta("generate", result["file"], "é", status=1).stderr)

    def test_the_hint_after_training_is_to_generate(self):
        self.assertIn("volta generate", self.trained("char-lstm").stdout)

    def test_wrong_uses_are_told_apart(self):
        self.assertIn("does not take texts", volta("train", "lenet", "--data", "austen", status=1).stderr)
        self.assertRegex(volta("train", "gpt", "--data", "emma", status=2).stderr, "no data set 'emma'; known are digits, austen")
        self.assertIn("pride-and-prejudice.txt", volta("train", "gpt", "--data", f"austen:{self.folder}", status=1, cwd=self.folder).stderr)
        self.assertIn("needs a path", volta("train", "gpt", "--data", "text", status=1).stderr)

    def test_missing_files_are_named(self):
        empty = self.folder / "data"
        (empty / "austen").mkdir(parents=True)
        missing = volta("train", "gpt", "--data", "austen", "--out", self.folder / "run", status=1, data=empty).stderr
        self.assertIn("pride-and-prejudice.txt", missing)


class BytePairs(Folder):
    """A folder as the Hub has it for GPT-2: weights with a vocabulary of byte pairs beside them."""
    CONTEXT, WIDTH, VOCAB = 32, 96, 264  # VOCAB is rounded up, as published ones are
    SIZES = {"vocab": VOCAB, "context": CONTEXT, "width": WIDTH, "heads": 2, "layers": 1}

    def hub(self, says):
        """A model that follows a prompt of two tokens with these."""
        visible = [*range(ord("!"), ord("~") + 1), *range(0xa1, 0xad), *range(0xae, 0x100)]
        letters = {b: chr(b) for b in visible}
        letters |= {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in letters)}
        tokens = {letters[b]: b for b in range(256)} | {"ab": 256, "né": 257, "<|endoftext|>": 258}
        folder = self.folder / "hub"
        folder.mkdir(exist_ok=True)
        (folder / "vocab.json").write_text(json.dumps(tokens))
        (folder / "merges.txt").write_text("#version: 0.2\na b\n")
        draw, width = random.Random(4), self.WIDTH
        embedding = [[draw.gauss(0, 1) for _ in range(width)] for _ in range(self.VOCAB)]
        positions = [[0.0] * width for _ in range(self.CONTEXT)]
        for i, token in enumerate(says):  # which drowns what the token itself says
            positions[1 + i] = [20 * x for x in embedding[token]]
        tensors = {"transformer." + name: ("F32", shape, struct.pack("<f", value) * math.prod(shape)) for name, shape, value in [
            ("ln_f.weight", [width], 1), ("ln_f.bias", [width], 0), ("h.0.attn.bias", [1, 1, self.CONTEXT, self.CONTEXT], 1),
            *((f"h.0.{norm}.{part}", [width], value) for norm in ["ln_1", "ln_2"] for part, value in [("weight", 1), ("bias", 0)]),
            *((f"h.0.{name}.{part}", shape, 0) for name, inputs, outputs in [("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                                                                             ("mlp.c_fc", width, 4 * width), ("mlp.c_proj", 4 * width, width)]
              for part, shape in [("weight", [inputs, outputs]), ("bias", [outputs])])]}
        for name, rows in [("wte", embedding), ("wpe", positions)]:
            tensors[f"transformer.{name}.weight"] = ("F32", [len(rows), width], b"".join(struct.pack(f"<{width}f", *row) for row in rows))
        write_safetensors(folder / "model.safetensors", tensors, {"format": "pt"})
        return folder

    def converted(self, says, *more):
        hub, file = self.hub(says), self.folder / "gpt2.safetensors"
        model = "gpt:" + json.dumps({"sizes": self.SIZES})
        volta("convert", hub, file, "--map", "gpt2", "--model", model, "--tokenizer", hub, *more)
        return file

    def test_a_folder_of_the_hub_writes_on(self):
        text = "n\u00e9\u65e5\U0001f600 !"
        file = self.converted([*text.encode(), 258])
        self.assertEqual((recipe_of(file)["model"], recipe_of(file)["task"]), ("gpt", "language"))
        self.assertEqual(volta("generate", file, "abab", "--temperature", 0).stdout, f"abab{text}\n")
        said = json.loads(volta("generate", file, "abab", "--temperature", 0, "--json").stdout)
        self.assertEqual((said["text"], said["finish_reason"]), (text, "stop"))
        said = json.loads(volta("generate", file, "abab", "--temperature", 0, "--tokens", 4, "--json").stdout)
        self.assertEqual((said["text"], said["finish_reason"]), ("n\u00e9\ufffd", "length"))
        self.assertIn("finish_reason", volta("generate", file, "--tokens", 3, "--json").stdout)
        again = self.folder / "half.safetensors"
        volta("convert", file, again, "--cast", "bf16")
        self.assertEqual(volta("generate", again, "abab", "--temperature", 0).stdout, f"abab{text}\n")

    def test_characters_are_streamed_whole(self):
        text = "n\u00e9\u65e5\U0001f600 !"
        file = self.converted([*text.encode(), 258])
        ask = {"prompt": "abab", "temperature": 0, "max_tokens": 20}
        with Served(file) as server:
            whole = json.loads(server.ask("POST", "/v1/completions", json.dumps(ask))[2])
            self.assertEqual((whole["choices"][0]["text"], whole["choices"][0]["finish_reason"]), (text, "stop"))
            self.assertEqual(whole["usage"]["prompt_tokens"], 2)
            for stop, wanted in [(None, list(text)), ("\U0001f600", list(text[:3]))]:
                body = server.ask("POST", "/v1/completions", json.dumps({**ask, "stream": True, "stop": stop}))[2].decode()
                events = [line[6:] for line in body.splitlines() if line.startswith("data: ")]
                self.assertEqual(events.pop(), "[DONE]")
                pieces = [json.loads(event)["choices"][0] for event in events]
                self.assertEqual([p["text"] for p in pieces], [*wanted, ""])
                self.assertEqual(pieces[-1]["finish_reason"], "stop")

    def test_bytes_that_are_no_characters_are_replaced(self):
        for says, wanted in [(b"\xe6\x97!", "\ufffd!"), (b"\xff\x80a", "\ufffd\ufffda"), (b"\xf0\x9f\x98\xe6\x97\xa5", "\ufffd\u65e5"), (b"\xc0a", "\ufffda")]:
            file = self.converted([*says, 258])
            self.assertEqual(volta("generate", file, "abab", "--temperature", 0).stdout, f"abab{wanted}\n", says)
            self.assertEqual(wanted, says.decode(errors="replace"))

    def test_a_text_is_predicted(self):
        file, text = self.converted([*b"xyz"]), self.folder / "some.txt"
        text.write_text("abab")
        said = json.loads(volta("predict", file, text, "--json").stdout)
        self.assertEqual((said["tokens"], said["next"][0]["token"], len(said["next"])), (2, "x", 3))
        self.assertGreater(said["next"][0]["probability"], 0.9)
        self.assertAlmostEqual(said["perplexity"], 2.718281828459045 ** said["loss"], 4)
        self.assertRegex(volta("predict", file, text).stdout, r"some\.txt: loss [\d.]+, perplexity [\d.]+; next 'x' \d+\.\d%, '")
        self.assertIn("byte pairs", volta("eval", file, "--data", f"text:{text}", "--held-out", 0.9, status=1).stderr)

    def test_vocabularies_that_do_not_fit_are_refused(self):
        hub, to = self.hub([1]), self.folder / "x.safetensors"
        sizes = lambda **other: "gpt:" + json.dumps({"sizes": {**self.SIZES, **other}})
        convert = lambda *flags, status=1, to=to: volta("convert", hub, to, "--map", "gpt2", *flags, status=status).stderr
        self.assertIn("--model", convert("--tokenizer", hub))
        self.assertIn("259 tokens, but the size 'vocab' is 200", convert("--tokenizer", hub, "--model", sizes(vocab=200)))
        self.assertIn(".safetensors", convert("--tokenizer", hub, "--model", sizes(), to=self.folder / "x.npz", status=2))
        volta("convert", hub, to, "--map", "gpt2", "--model", sizes())
        self.assertIn("--tokenizer", volta("generate", to, status=1).stderr)
        self.assertIn("vocab.json", convert("--tokenizer", self.folder, "--model", sizes()))
        (hub / "merges.txt").write_text("a q q\n")
        self.assertIn("line 1", convert("--tokenizer", hub, "--model", sizes()))
        (hub / "merges.txt").unlink()
        self.assertIn("merges.txt", convert("--tokenizer", hub, "--model", sizes()))


class Characters(Folder):
    def test_a_recipe_says_what_its_architecture_leaves_open(self):
        trained, bare, made = train_text(self.folder), self.folder / "bare.safetensors", self.folder / "made.safetensors"
        write_safetensors(bare, safetensors(trained), {})
        whole = recipe_of(trained)
        convert = lambda model, status=0: volta("convert", bare, made, "--model", model, status=status).stderr
        convert("gpt:" + json.dumps({name: whole[name] for name in ["sizes", "tokens"]}))
        self.assertEqual([recipe_of(made)[name] for name in ["version", "model", "task", "tokens"]], [1, "gpt", "language", whole["tokens"]])
        ask = ("abc", "--tokens", 20, "--seed", 1)
        self.assertEqual(volta("generate", made, *ask).stdout, volta("generate", trained, *ask).stdout)
        convert("gpt:" + json.dumps(whole))
        self.assertEqual(recipe_of(made), whole)
        self.assertIn("mlp", convert("mlp:" + json.dumps(whole), 2))
        self.assertIn("language", convert("gpt:" + json.dumps({**whole, "task": "classify"}), 2))
        for wrong in ["gpt:", "gpt:[]", "gpt:{", 'gpt:{"sizes": 3}', "gtp"]:
            self.assertTrue(convert(wrong, 2), wrong)

    def test_a_text_is_predicted(self):
        model, text = train_text(self.folder), self.folder / "some.txt"
        text.write_text("abcdefgh" * 6 + "abc")  # three blocks and a bit
        said = json.loads(volta("predict", model, text, "--json").stdout)
        self.assertEqual((said["tokens"], said["next"][0]["token"]), (51, "d"))
        self.assertLess(said["loss"], 1)
        self.assertEqual(set(said), {"input", "tokens", "loss", "perplexity", "next"})
        text.write_text("a")
        self.assertEqual(set(json.loads(volta("predict", model, text, "--json").stdout)), {"input", "tokens", "next"})
        for content, word in [("", "empty"), ("abX", "'X'")]:
            text.write_text(content)
            self.assertRegex(volta("predict", model, text, status=1).stderr, f"some.txt: .*{word}")
        self.assertIn("absent.txt", volta("predict", model, self.folder / "absent.txt", status=1).stderr)


if __name__ == "__main__":
    unittest.main()
