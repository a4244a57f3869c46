#!/usr/bin/env python3
"""What the site is made of: examples found in comments, declarations read from headers, pages prepared, the navigation complete."""
import importlib.machinery
import importlib.util
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import headers  # noqa: E402


def script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Examples(unittest.TestCase):
    def found(self, text):
        return headers.one_line(text, {"Tensor", "StateDict"})

    def test_after_a_colon_or_alone(self):
        self.assertEqual(self.found("How it is made: zeros({2, 3}, {.dtype = bf16})."), ["zeros({2, 3}, {.dtype = bf16});"])
        self.assertEqual(self.found("opt.set_lr(1e-4): of all groups"), ["opt.set_lr(1e-4);"])
        self.assertEqual(self.found("The weights: StateDict s = read_torch(\"a.pt\"). More."), ['StateDict s = read_torch("a.pt");'])

    def test_several_statements(self):
        self.assertEqual(self.found("A map: nn::Linear fc(4, 2); fc(x). Weight [out, in]."), ["nn::Linear fc(4, 2); fc(x);"])
        self.assertEqual(self.found("grad(loss, w), grad(loss, {w, b})."), ["grad(loss, w); grad(loss, {w, b});"])
        self.assertEqual(self.found("auto [b, t] = sizes<2>(x)"), ["auto [b, t] = sizes<2>(x);"])

    def test_prose_is_none(self):
        for text in ("y = x W^T + b on the last axis", "get() is called by several threads", "Runs forward(input) and more", "1 / sqrt(width)",
                     "The reverse; the patterns match", "collate(items) or collate(items, g) makes a batch"):
            self.assertEqual(self.found(text), [], text)


class Headers(unittest.TestCase):
    def test_every_header_declares_something(self):
        for path in headers.headers():
            first, entries = headers.read(path)
            self.assertTrue(first.comment.strip(), f"{path} says nothing about itself")
            names = [e.name for e, _ in headers.all_entries(entries)]
            self.assertTrue(all(re.match(r"~?\w+|operator", n) for n in names), f"{path}: {names}")

    def test_members_and_bodies(self):
        _, entries = headers.read("nn/linear.h")
        linear = next(e for e in entries if e.name == "Linear")
        self.assertEqual([m.name for m in linear.members][:3], ["Linear", "Linear", "operator()"])
        self.assertTrue(all("{ return" not in m.text for m in linear.members))
        self.assertEqual(linear.space, "volta::nn")

    def test_reference_has_every_header(self):
        with tempfile.TemporaryDirectory() as folder:
            sys.argv = ["api_reference", folder]
            script("api_reference").main()
            text = "".join(p.read_text() for p in pathlib.Path(folder).glob("*.md"))
        for name in ("nn::Linear", "optim::AdamW", "optim::CosineAnnealingLR", "read_safetensors", "data::DataLoader", "fit", "Tensor", "Error"):
            self.assertIn(f"### `{name}`", text)


class Site(unittest.TestCase):
    def test_navigation_has_every_page(self):
        listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
        site = script("site")
        pages = {p.name for p in (ROOT / "docs").glob("*.md")} | set(site.OUTSIDE.values())
        pages |= {f"api/{page}.md" for page, *_ in script("api_reference").PAGES} | {"api/index.md"}
        self.assertEqual(listed, pages)

    def test_pages_are_prepared(self):
        site = script("site")
        self.assertEqual(site.target("../CHANGELOG.md#stability", "docs"), "changelog.md#stability")
        self.assertEqual(site.target("docs/tour.md", ""), "tour.md")
        self.assertEqual(site.target("https://a.example", "docs"), "https://a.example")
        text = site.prepared("A list:\n- one\n- two\n<!-- given: int x; -->\n```cpp\n- no list\n```\n", "docs")
        self.assertEqual(text, "A list:\n\n- one\n- two\n```c++\n- no list\n```\n")
        self.assertEqual(site.with_cells("| `abs` | |x|; more |", 2), "| `abs` | \\|x\\|; more |")


if __name__ == "__main__":
    unittest.main()
