"""A headless Chromium, driven through its debugging pipe with nothing but the standard library."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars",
         "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "about:blank"]


def find_chromium():
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Browser:
    def __init__(self, program):
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_it, self.write_end = os.pipe()
        self.read_end, from_it = os.pipe()
        command = f'exec "$0" "$@" 3<&{to_it} 4>&{from_it}'  # where the pipe is expected
        self.process = subprocess.Popen(
            ["bash", "-c", command, program, f"--user-data-dir={self.home.name}", *FLAGS], pass_fds=(to_it, from_it),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **dict.fromkeys(["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"], self.home.name)})
        os.close(to_it)
        os.close(from_it)
        self.last, self.held, self.events = 0, b"", []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.ask(f"{domain}.enable")

    def read(self, seconds):
        """The next message, or None."""
        end = time.monotonic() + seconds
        while b"\0" not in self.held:
            ready, _, _ = select.select([self.read_end], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self.read_end, 1 << 20) if ready else b""
            if not chunk:
                return None
            self.held += chunk
        line, self.held = self.held.split(b"\0", 1)
        return json.loads(line)

    def ask(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read(30)
            assert answer is not None, f"no answer to {method}"
            if answer.get("id") == self.last:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def js(self, expression):
        """The value of an expression, awaited if it is a promise."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (expression, result["exceptionDetails"])
        return result["result"].get("value")

    def until(self, expression, seconds=20):
        end = time.monotonic() + seconds
        while not (value := self.js(expression)):
            assert time.monotonic() < end, f"waited for {expression}"
            time.sleep(0.05)
        return value

    def open(self, path, width=1200, height=900, dark=False, media=""):
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.colours(dark, media)
        self.ask("Page.navigate", url=f"file://{path}")
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    def colours(self, dark, media=""):
        self.ask("Emulation.setEmulatedMedia", media=media,
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, name, **more):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name, **more)

    def complaints(self):
        """What the console said, and requests beside the page itself."""
        self.js("0")
        out = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                out.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                out.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                out.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent" and params["type"] != "Document":
                if not params["request"]["url"].startswith(("data:", "blob:")):
                    out.append("request: " + params["request"]["url"][:200])
        return out

    def screenshot(self, path):
        height = self.js("Math.ceil(document.documentElement.scrollHeight)")
        width = self.js("innerWidth")
        data = self.ask("Page.captureScreenshot", captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": width, "height": min(height, 8000), "scale": 1})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        os.close(self.write_end)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_end)
        self.home.cleanup()
