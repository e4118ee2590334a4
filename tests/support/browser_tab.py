"""A tab of Chromium that a test drives through Playwright: opens addresses, presses keys, evaluates, takes pictures.

Playwright's interface for tests without ``async`` keeps an event loop running in its thread, where nothing else could
start one. Every tab therefore has a thread of its own, which also lets a test have several.
"""

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

from browser import CHROMIUM, environment_of

FLAGS = ["--disable-gpu", "--disable-quic", "--hide-scrollbars"]
LONGEST_WAIT = 60.0
MODIFIERS = {1: "Alt", 2: "Control", 4: "Meta", 8: "Shift"}


class Tab:
    """One tab. ``complaints`` are what the console and the page's errors said."""

    def __init__(self, profile, *, width=1280, height=900, flags=()):
        self._profile = profile
        self._thread = ThreadPoolExecutor(1, "browser tab")
        try:
            self._in_thread(self._start, profile, [*FLAGS, *flags])
            self._in_thread(self._watch, self._context.pages[0])
            self.resize(width, height)
        except BaseException:
            self._thread.shutdown()
            raise

    def _start(self, profile, flags):
        self._playwright = sync_playwright().start()
        self._context = self._playwright.chromium.launch_persistent_context(
            profile,
            executable_path=CHROMIUM,
            args=flags,
            chromium_sandbox=False,
            env=environment_of(profile),
            no_viewport=True,
        )
        self._context.set_default_timeout(1000 * LONGEST_WAIT)

    def _watch(self, page):
        self.complaints, self._page = [], page
        self._page.on("pageerror", lambda error: self.complaints.append(error.stack or error.message))
        self._page.on("console", self._listen)
        self._page.on("dialog", self._refuse)
        self._devtools = self._context.new_cdp_session(self._page)
        self._devtools.send("Network.enable")

    def _listen(self, message):
        if message.type == "error":
            self.complaints.append(f"{message.text} {message.location['url']}")

    def _refuse(self, dialog):
        if dialog.type != "beforeunload":
            self.complaints.append(f"a page opened a dialog: {dialog.message}")
        dialog.dismiss()

    def _in_thread(self, action, *arguments, **more):
        return self._thread.submit(action, *arguments, **more).result()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A browser that was killed has closed it already.
        with contextlib.suppress(Error):
            self._in_thread(self._context.close)
        self._in_thread(self._playwright.stop)
        self._thread.shutdown()

    def beside(self, *, script=None):
        """Return another tab of the same browser. ``script`` runs before those of each page."""
        made = object.__new__(Tab)
        made._thread, made._context, made._profile = self._thread, self._context, self._profile
        self._in_thread(lambda: made._watch(self._context.new_page()))
        if script is not None:
            self._in_thread(made._page.add_init_script, script)
        return made

    def close(self):
        """Close this tab and leave the browser open; its page is told."""
        self._in_thread(self._page.close)

    def kill(self):
        """Kill the browser, as a crash does: nothing is told or written any more."""
        lock = Path(self._profile, "SingletonLock").readlink().name
        process = int(lock.rpartition("-")[2])
        os.kill(process, signal.SIGKILL)
        end = time.monotonic() + LONGEST_WAIT
        while Path(f"/proc/{process}").exists() and time.monotonic() < end:
            time.sleep(0.02)

    def let_pass(self, seconds):
        """Put the clock forward, as if the computer had slept. Only with `own_clock`."""
        self._in_thread(self._page.clock.fast_forward, 1000 * seconds)

    def run_for(self, seconds):
        """Put the clock forward in steps, as if somebody sat there for so long. Only with `own_clock`."""
        self._in_thread(self._page.clock.run_for, 1000 * seconds)

    def own_clock(self):
        """Give pages that are opened from now on a clock that `let_pass` puts forward."""
        self._in_thread(self._page.clock.install)

    def back(self):
        """Go back in the history, as by the button of the browser."""
        self._in_thread(self._page.go_back)

    def forward(self):
        """Go forward in the history."""
        self._in_thread(self._page.go_forward)

    def reload(self):
        """Load the page anew and wait until its scripts ran; until then the old page would answer."""
        self._in_thread(self._page.reload)

    def protocol(self, method, **parameters):
        """Send a command of the browser's own protocol, for what Playwright has no call for."""
        return self._in_thread(self._devtools.send, method, parameters)

    def resize(self, width, height, *, is_phone=False):
        """Set the size of the page in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}
        self.protocol("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, scheme):
        """Prefer ``light`` or ``dark``."""
        self._in_thread(self._page.emulate_media, color_scheme=scheme)

    def disconnect(self, is_offline):
        """Take the network away, or bring it back."""
        self._in_thread(self._context.set_offline, is_offline)

    def delay(self, milliseconds):
        """Let every request take longer; 0 for none."""
        conditions = {"offline": False, "latency": milliseconds, "downloadThroughput": -1, "uploadThroughput": -1}
        self.protocol("Network.emulateNetworkConditions", **conditions)

    def set_cookie(self, origin, name, value):
        """Keep a cookie, as after logging in."""
        self._in_thread(
            self._context.add_cookies, [{"url": origin, "name": name, "value": value, "sameSite": "Strict"}]
        )

    def cookie(self, origin):
        """Return the cookie of the workbench at an origin."""
        return next(each["value"] for each in self._in_thread(self._context.cookies, origin))

    def forget(self, origin):
        """Empty what pages of an origin stored in the browser."""
        self.protocol("Storage.clearDataForOrigin", origin=origin, storageTypes="local_storage,indexeddb")

    def open(self, address):
        """Open an address and wait until its scripts ran."""
        self._in_thread(self._page.goto, address)

    def value(self, expression):
        """Return the value of an expression; promises are awaited."""
        return self._in_thread(self._page.evaluate, expression)

    def wait(self, condition):
        """Wait until an expression is true, however slow the machine is."""
        end = time.monotonic() + LONGEST_WAIT
        while True:
            try:
                if self.value(f"Boolean({condition})"):
                    return
            except Error as error:
                # Between two pages there is nothing to ask.
                if "context" not in str(error) and "navigat" not in str(error):
                    raise
            if time.monotonic() > end:
                raise AssertionError(f"never true: {condition}\n{self.value('document.body.innerText')}")
            time.sleep(0.02)

    def press(self, key, *, modifiers=0):
        """Press a key and let it go. Modifiers: 1 Alt, 2 Ctrl, 4 Command, 8 Shift."""
        held = [name for bit, name in MODIFIERS.items() if modifiers & bit]
        self._in_thread(self._page.keyboard.press, "+".join([*held, key]))

    def hold(self, key, *, repeats=12):
        """Press a key and let it go after the keyboard has repeated it, as a finger that stays on it does."""
        for _ in range(repeats + 1):
            self._in_thread(self._page.keyboard.down, key)
            self.value("new Promise((done) => setTimeout(done, 30))")
        self._in_thread(self._page.keyboard.up, key)

    def type(self, text):
        """Enter a text where the focus is."""
        self._in_thread(self._page.keyboard.insert_text, text)

    def place(self, selector):
        """Return the middle of an element on the screen."""
        return self._in_thread(
            self._page.evaluate,
            "(selector) => { const e = document.querySelector(selector);"
            " if (!e.closest('#bar')) e.scrollIntoView({block: 'center'});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }",
            selector,
        )

    def click(self, selector):
        """Click on the middle of an element."""
        self._in_thread(self._page.mouse.click, *self.place(selector))

    def double_click(self, selector):
        """Click twice on the place of an element, as a hand does that is used to desktop icons."""
        place = self.place(selector)
        for count in (1, 2):
            self._in_thread(self._page.mouse.move, *place)
            self._in_thread(self._page.mouse.down, click_count=count)
            self._in_thread(self._page.mouse.up, click_count=count)
            self.value("new Promise((done) => setTimeout(done, 60))")

    def drag(self, selector, target):
        """Drag the middle of an element to that of another, in steps as a hand does."""
        start, end = self.place(selector), self.place(target)
        self._in_thread(self._page.mouse.move, *start)
        self._in_thread(self._page.mouse.down)
        for step in range(1, 11):
            place = [first + (last - first) * step / 10 for first, last in zip(start, end, strict=True)]
            self._in_thread(self._page.mouse.move, *place)
            self.value("new Promise(requestAnimationFrame)")
        self._in_thread(self._page.mouse.up)

    def picture(self, path):
        """Write a picture of what is on the screen."""
        self._in_thread(self._page.screenshot, path=path)
