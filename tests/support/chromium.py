# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium over a pipe, with its DevTools protocol: open a page, evaluate expressions, use the mouse, take
screenshots. Used by the report's tests and benchmark. Opens no port and needs only Python's own library."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

HOW_TO_INSTALL = "no Chromium: `apt-get install chromium` or `chromium-headless-shell`, or set STOKER_CHROMIUM to its path"


def find():
    names = [os.environ.get("STOKER_CHROMIUM", ""), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


class Browser:
    def __init__(self, program):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self.profile = tempfile.TemporaryDirectory(prefix="stoker-chromium-", ignore_cleanup_errors=True)

        def wire():  # the browser reads commands from descriptor 3 and answers on 4
            reader, writer = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(reader, 3)
            os.dup2(writer, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"],
            preexec_fn=wire, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.reader, self.writer = os.fdopen(ours_in, "rb", 0), os.fdopen(ours_out, "wb", 0)
        self.buffer, self.number = b"", 0
        self.problems, self.requests, self.loaded, self.session = [], [], False, None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")

    def close(self):
        self.writer.close()  # closing the pipe ends the browser
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.close()
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.reader.fileno(), 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        kind, values = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif kind == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(each.get("value", each.get("description"))) for each in values["args"]))
        elif kind == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.problems.append(values["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif kind == "Page.loadEventFired":
            self.loaded = True
        return message

    def send(self, method, **values):
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session:
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path, width=1280, height=900, theme="light"):
        """Opens a file; returns the seconds until its load event."""
        self.problems, self.requests = [], []
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        start, self.loaded = time.monotonic(), False
        self.send("Page.navigate", url="file://" + os.path.abspath(path))
        while not self.loaded:
            self.receive()
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return time.monotonic() - start

    def ask(self, expression):
        result = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, x0, x1, y):
        self.mouse("mouseMoved", x0, y)
        self.mouse("mousePressed", x0, y, button="left", clickCount=1)
        for i in range(1, 6):
            self.mouse("mouseMoved", x0 + (x1 - x0) * i / 5, y, button="left", buttons=1)
        self.mouse("mouseReleased", x1, y, button="left", clickCount=1)

    def image(self, path, whole=True):
        height = self.ask("document.documentElement.scrollHeight") if whole else None
        clip = {"x": 0, "y": 0, "width": self.ask("innerWidth"), "height": height, "scale": 1} if whole else None
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=whole, **({"clip": clip} if clip else {}))
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def paper(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"]))
