#!/usr/bin/env python3
"""The page of `volta serve` in a real browser: digits drawn with the mouse are recognised, a text is continued.

    tests/command/browser_test.py PROGRAM DATA_FOLDER [unittest arguments]

Needs Chromium (Debian: apt-get install chromium); without it the test is skipped. With SCREENSHOT=FILE.png in the environment it
leaves a picture of the page: that is how docs/pictures/draw-a-digit.png was made.
"""

import json
import math
import os
import pathlib
import sys
import tempfile
import unittest

from browser import Browser, chromium
from common import SKIPPED, Served, train_text, volta

if not chromium():
    print("skipped: there is no chromium (apt-get install chromium)")
    sys.exit(SKIPPED)

# Strokes on a pad of 280 x 280.
DIGITS = {
    "0": [[(140 + 52 * math.sin(t / 16 * math.pi), 140 - 82 * math.cos(t / 16 * math.pi)) for t in range(33)]],
    "1": [[(150, 50), (138, 230)]],
    "2": [[(85, 95), (95, 65), (130, 50), (170, 60), (185, 95), (165, 135), (120, 180), (80, 225), (135, 222), (200, 222)]],
    "3": [[(90, 70), (130, 50), (175, 65), (180, 100), (150, 130), (125, 135), (160, 142), (188, 170), (180, 210), (140, 232), (90, 218)]],
    "4": [[(110, 50), (95, 100), (80, 150), (130, 150), (200, 145)], [(170, 70), (165, 150), (158, 235)]],
    "7": [[(80, 65), (140, 62), (200, 60), (170, 120), (145, 175), (128, 230)]],
}


def smooth(points, rounds=3):
    """Chaikin's corner cutting: a hand does not draw polygons."""
    for _ in range(rounds):
        cut = [p for (a, b), (c, d) in zip(points, points[1:])
               for p in [(0.75 * a + 0.25 * c, 0.75 * b + 0.25 * d), (0.25 * a + 0.75 * c, 0.25 * b + 0.75 * d)]]
        points = [points[0], *cut, points[-1]]
    return points


class Page(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        self.browser = Browser(chromium())
        self.addCleanup(self.browser.close)

    def serve(self, file, *flags):
        server = Served(file, *flags)
        self.addCleanup(server.stop)
        self.browser.open(server.address)
        return server

    def bars(self):
        """Name and percentage of each bar, as shown."""
        shown = self.browser.run("[...document.querySelectorAll('.bar')].map(b => [b.firstChild.textContent, b.lastChild.textContent])")
        return {name: float(share.rstrip("%")) for name, share in shown}

    def test_digits_drawn_with_the_mouse_are_recognised(self):
        browser = self.browser
        model = json.loads(volta("train", "lenet", "--data", "digits", "--out", self.folder / "digits", "--json").stdout)["file"]
        self.serve(model, "--name", "lenet-digits")
        browser.wait_for("document.querySelectorAll('.bar').length == 10")
        left, top = browser.run("(() => { const r = document.querySelector('#pad').getBoundingClientRect(); return [r.left, r.top]; })()")
        for digit, strokes in DIGITS.items():
            browser.click("#clear")
            self.assertEqual(sum(self.bars().values()), 0)
            for stroke in strokes:
                browser.drag([(left + x, top + y) for x, y in smooth(stroke)])
            browser.wait_for("!asking && !again && document.querySelectorAll('.best').length == 1")
            bars = self.bars()
            self.assertEqual(list(bars), list("0123456789"))
            self.assertAlmostEqual(sum(bars.values()), 100, delta=0.6)  # each is rounded to a tenth
            best = max(bars, key=bars.get)
            self.assertEqual((best, browser.run("document.querySelector('.best').firstChild.textContent")), (digit, digit), bars)
            if digit == "3" and os.environ.get("SCREENSHOT"):
                browser.run("new Promise(done => setTimeout(done, 300))")  # the bars grow for a moment
                browser.screenshot(os.environ["SCREENSHOT"])
        self.assertEqual(browser.problems, [])

    def test_a_text_is_continued(self):
        self.serve(train_text(self.folder))
        self.browser.wait_for("!document.querySelector('#write').hidden")
        self.browser.click("#prompt")
        self.browser.type("abcd")
        self.browser.click("#go")
        text = self.browser.wait_for("document.querySelector('#text').textContent.length == 204 && document.querySelector('#text').textContent")
        self.assertTrue(text.startswith("abcd") and set(text) <= set("abcdefgh"), text)
        self.browser.run("document.querySelector('#prompt').value = 'Z'")
        self.browser.click("#go")
        self.browser.wait_for("document.querySelectorAll('.error').length == 1")
        self.assertIn("no 'Z'", self.browser.run("document.querySelector('.error').textContent"))


if __name__ == "__main__":
    unittest.main()
