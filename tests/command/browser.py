"""A headless Chromium, driven over a pipe with the DevTools protocol: no driver, no packages."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def chromium():
    """The program, or None."""
    return next((p for p in map(shutil.which, ["chromium", "chromium-browser", "google-chrome"]) if p), None)


class Browser:
    def __init__(self, program, width=820, height=560):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()
        # It reads from descriptor 3 and writes to 4; the pipes' own numbers are moved out of the way first.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (theirs_read, theirs_write)]
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                 "--disable-background-networking", f"--window-size={width},{height}", f"--user-data-dir={self.folder.name}",
                 "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{high[0]} 4>&{high[1]}', "-", program, *flags], pass_fds=high,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in [theirs_read, theirs_write, *high]:
            os.close(fd)
        self.read, self.write, self.number, self.rest, self.session = ours_read, ours_write, 0, b"", None
        self.problems = []  # what pages complain about
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log"]:
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def message(self, deadline):
        while b"\0" not in self.rest:
            if not select.select([self.read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.read, 1 << 20)
            if not part:
                raise ConnectionError("the browser ended by itself")
            self.rest += part
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters, **({"sessionId": self.session} if self.session else {})}
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        deadline = time.monotonic() + 60
        while True:
            got = self.message(deadline)
            if got.get("method") == "Runtime.exceptionThrown":
                self.problems.append(got["params"]["exceptionDetails"])
            if got.get("method") == "Log.entryAdded" and got["params"]["entry"]["level"] == "error":
                self.problems.append(got["params"]["entry"])
            if got.get("id") == self.number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait_for(f"location.href.startsWith({json.dumps(address)}) && document.readyState === 'complete'")

    def run(self, script):
        """The value of a JavaScript expression."""
        got = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"])
        return got["result"].get("value")

    def wait_for(self, script, seconds=30):
        deadline = time.monotonic() + seconds
        while not (value := self.run(script)):
            if time.monotonic() > deadline:
                raise TimeoutError(script)
            time.sleep(0.05)
        return value

    def mouse(self, kind, x, y):
        pressed = kind != "mouseReleased"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=int(pressed), clickCount=1)

    def drag(self, points):
        """Presses at the first point, moves through the others in small steps, lets go at the last."""
        self.mouse("mousePressed", *points[0])
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            steps = max(1, int(max(abs(x1 - x0), abs(y1 - y0)) / 8))
            for i in range(1, steps + 1):
                self.mouse("mouseMoved", x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps)
        self.mouse("mouseReleased", *points[-1])

    def click(self, element):
        box = self.run(f"(() => {{ const r = document.querySelector({json.dumps(element)}).getBoundingClientRect();"
                       " return [r.left + r.width / 2, r.top + r.height / 2]; })()")
        self.drag([box])

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (ConnectionError, TimeoutError, BrokenPipeError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        os.close(self.write)
        self.folder.cleanup()
