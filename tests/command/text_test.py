#!/usr/bin/env python3
"""The command volta with the novel that ships: language models learn from it by name, are measured, and write on.

    tests/command/text_test.py PROGRAM DATA_FOLDER [unittest arguments]
"""

import json
import unittest

from common import Folder, volta

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


if __name__ == "__main__":
    unittest.main()
