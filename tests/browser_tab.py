"""A tab of Chromium that a test drives: opens addresses, presses keys, clicks, evaluates, takes pictures.

It speaks the browser's own protocol over a pipe: no port, no driver, no package.
"""

import base64
import fcntl
import json
import os
import subprocess
import time

from browser import CHROMIUM, environment_of

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
LONGEST_WAIT = 60.0
CODES = {"Enter": (13, "\r"), "Backspace": (8, ""), "Escape": (27, ""), "ArrowLeft": (37, ""), "ArrowUp": (38, "")}
CODES |= {"ArrowRight": (39, ""), "ArrowDown": (40, ""), "Tab": (9, "")}


class Tab:
    """One tab. ``complaints`` are what the console and the page's errors said."""

    def __init__(self, profile, *, width=1280, height=900):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The browser reads from descriptor 3 and writes to 4; high numbers, for none may be in another's way.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (to_browser, from_browser)]
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"]
        join = f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", join, "bash", *command],
            pass_fds=ends,
            env=environment_of(profile),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in ends:
            os.close(end)
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._left, self.complaints = 0, b"", []
        target = self._call("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        attached = self._call("Target.attachToTarget", {"targetId": target, "flatten": True}, session=None)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._write)
        os.close(self._read)
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _message(self):
        while b"\0" not in self._left:
            part = os.read(self._read, 2**16)
            if not part:
                raise RuntimeError("the browser has ended")
            self._left += part
        line, self._left = self._left.split(b"\0", 1)
        return json.loads(line)

    def _call(self, method, params=None, *, session=""):
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._message()
            if reply.get("id") == number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']['message']}")
                return reply["result"]
            self._listen(reply)

    def _listen(self, event):
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def resize(self, width, height, *, is_phone=False):
        """Set the size of the page in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}
        self._call("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme):
        """Prefer ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", {"features": features})

    def disconnect(self, is_offline):
        """Take the network away, or bring it back."""
        self._network(offline=is_offline)

    def delay(self, milliseconds):
        """Let every request take longer; 0 for none."""
        self._network(latency=milliseconds)

    def _network(self, *, offline=False, latency=0):
        conditions = {"offline": offline, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1}
        self._call("Network.emulateNetworkConditions", conditions)

    def set_cookie(self, origin, name, value):
        """Keep a cookie, as after logging in."""
        self._call("Network.setCookie", {"url": origin, "name": name, "value": value, "sameSite": "Strict"})

    def forget(self, origin):
        """Empty what pages of an origin stored in the browser."""
        self._call("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "local_storage"})

    def open(self, address):
        """Open an address and wait until its scripts ran."""
        # A mark on the page that is left: the one that follows does not have it.
        self.value("window.isLeft = true")
        self._call("Page.navigate", {"url": address})
        self.wait("!window.isLeft && document.readyState === 'complete'")

    def value(self, expression):
        """Return the value of an expression; promises are awaited."""
        params = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        result = self._call("Runtime.evaluate", params)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait(self, condition):
        """Wait until an expression is true, however slow the machine is."""
        end = time.monotonic() + LONGEST_WAIT
        while True:
            try:
                if self.value(f"Boolean({condition})"):
                    return
            except RuntimeError as error:
                # Between two pages there is nothing to ask.
                if "context" not in str(error) and "navigat" not in str(error):
                    raise
            if time.monotonic() > end:
                raise AssertionError(f"never true: {condition}\n{self.value('document.body.innerText')}")
            time.sleep(0.02)

    def press(self, key, *, modifiers=0):
        """Press a key and let it go. Modifiers: 1 Alt, 2 Ctrl, 4 Command, 8 Shift."""
        code, text = CODES.get(key, (ord(key.upper()) if len(key) == 1 else 0, key if len(key) == 1 else ""))
        event = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        shown = {} if modifiers & 7 else {"text": text}
        self._call("Input.dispatchKeyEvent", {"type": "keyDown" if text else "rawKeyDown", **event, **shown})
        self._call("Input.dispatchKeyEvent", {"type": "keyUp", **event})

    def type(self, text):
        """Enter a text where the focus is."""
        self._call("Input.insertText", {"text": text})

    def place(self, selector):
        """Return the middle of an element on the screen."""
        return self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " if (!e.closest('#bar')) e.scrollIntoView({block: 'center'});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )

    def _mouse(self, kind, place, **more):
        self._call("Input.dispatchMouseEvent", {"type": kind, "x": place[0], "y": place[1], **more})

    def click(self, selector):
        """Click on the middle of an element."""
        place = self.place(selector)
        self._mouse("mouseMoved", place)
        self._mouse("mousePressed", place, button="left", clickCount=1)
        self._mouse("mouseReleased", place, button="left", clickCount=1)

    def drag(self, selector, target):
        """Drag the middle of an element to that of another, in steps as a hand does."""
        start, end = self.place(selector), self.place(target)
        self._mouse("mouseMoved", start)
        self._mouse("mousePressed", start, button="left", clickCount=1)
        for step in range(1, 11):
            place = [first + (last - first) * step / 10 for first, last in zip(start, end, strict=True)]
            self._mouse("mouseMoved", place, button="left", buttons=1)
            self.value("new Promise(requestAnimationFrame)")
        self._mouse("mouseReleased", end, button="left", clickCount=1)

    def picture(self, path):
        """Write a picture of what is on the screen."""
        data = self._call("Page.captureScreenshot", {"format": "png"})["data"]
        path.write_bytes(base64.b64decode(data))
