#!/usr/bin/env python3
"""The benchmark report: every suite is drawn from a small sample, and the picture in the documents is in step with its table."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REPORT = ROOT / "tools" / "bench_report"

SAMPLE = {
    "compare": [
        {"case": "add/4096", "threads": 1, "ours_s": 1e-6, "peer_s": 2e-6, "ratio": 2.0},
        {"case": "matmul/512", "threads": 1, "ours_s": 2e-3, "peer_s": 1e-3, "ratio": 0.5},
        {"case": "matmul/512", "threads": 2, "ours_s": 1e-3, "peer_s": 1e-3, "ratio": 1.0, "disturbed": True},
    ],
    "baseline": [{"case": "matmul/512", "threads": 1, "ours_s": 1e-3, "peer_s": 1e-3, "ratio": 1.0}],
    "memory": [{"work": "chain", "ours_mib": 21.6, "peer_mib": 393.1}],
    "figures": [
        {"figure": "start <and> end", "ours": 1.8, "peer": 381.0, "unit": "ms"},
        {"figure": "shared library", "ours": None, "peer": 231.0, "unit": "MiB"},
    ],
    "loader": [{"case": "digits", "ours_per_s": 2e6, "peer_per_s": 1e5, "ratio": 20.0}],
    "serve": [
        {"server": "volta", "rate": 9000.0, "p50": "0.8ms", "p99": "2ms", "errors": "none", "resident_mib": [9.0, 9.1]},
        {"server": "fastapi", "rate": 900.0, "p50": "8ms", "p99": "20ms", "errors": "none", "resident_mib": [400.0, 401.0]},
    ],
    "gpu": [
        {"case": "copy", "ours_s": 1e-3, "peer_s": 1e-3, "ratio": 1.0},
        {"case": "small_item", "ours_s": 1e-5, "peer_s": None, "ratio": None},
    ],
}


def report(*arguments):
    return subprocess.run([sys.executable, REPORT, *arguments], check=True, capture_output=True, text=True).stdout


def drawings(text):
    """The pictures of a page, parsed."""
    found = []
    while "<svg" in text:
        begin, end = text.index("<svg"), text.index("</svg>") + 6
        found.append(xml.etree.ElementTree.fromstring(text[begin:end]))
        text = text[end:]
    return found


class Report(unittest.TestCase):
    def page(self, suites):
        with tempfile.TemporaryDirectory() as folder:
            for name in suites:
                pathlib.Path(folder, name + ".json").write_text(json.dumps(SAMPLE[name]))
            said = report("--no-run", "--folder", folder)
            return pathlib.Path(folder, "report.html").read_text(), said

    def test_every_suite_is_drawn(self):
        text, said = self.page(SAMPLE)
        self.assertIn("6 of 6 suites", said)
        self.assertNotIn("No result", text)
        self.assertEqual(len(drawings(text)), 8)  # compare for 1 and 2 threads, figures in ms and MiB, one of each other
        for words in ("add/4096", "matmul/512", "1.00", "(disturbed)", "digits", "fastapi", "393.1 MiB", "start &lt;and&gt; end"):
            self.assertIn(words, text)
        self.assertNotIn("<script", text)
        self.assertNotIn("http://", text.replace("http://www.w3.org/2000/svg", ""))

    def test_the_baseline_shows_what_fell(self):
        with_baseline, _ = self.page(["compare", "baseline"])
        self.assertIn('<b>1</b>fell since the baseline', with_baseline)
        self.assertIn('<span class="worse">-50%</span>', with_baseline)
        without, _ = self.page(["compare"])
        self.assertIn("<b>none</b>baseline", without)
        self.assertNotIn("-50%", without)

    def test_missing_suites_are_named(self):
        text, said = self.page(["memory"])
        self.assertIn("1 of 6 suites", said)
        self.assertEqual(text.count("No result"), 5)

    def test_picture_follows_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            fresh = pathlib.Path(folder, "bars.svg")
            report("--picture", fresh)
            self.assertEqual(fresh.read_text(), (ROOT / "docs/pictures/benchmarks.svg").read_text(),
                             "tools/bench_report --picture docs/pictures/benchmarks.svg draws it anew")
            xml.etree.ElementTree.parse(fresh)


if __name__ == "__main__":
    unittest.main()
