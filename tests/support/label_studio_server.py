"""A server of Label Studio of its own for tests, and people who answer in it over HTTP as its pages do."""

import http.cookiejar
import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager

PASSWORD = "a-password-of-tests"
_LONGEST_START = 240.0


class LabelStudioPerson:
    """Somebody who is logged in: a session of its own, whose requests carry the token of its forms."""

    def __init__(self, address, email, page):
        self.address, self.email = address, email
        self._cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))
        form = self.request("GET", page)
        (token,) = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)[:1]
        fields = {"csrfmiddlewaretoken": token, "email": email, "password": PASSWORD}
        self.request("POST", page, data=urllib.parse.urlencode(fields).encode())
        self.number = self.json("GET", "/api/current-user/whoami")["id"]

    @property
    def cookies(self):
        """The cookies by name, for a browser."""
        return {cookie.name: cookie.value for cookie in self._cookies}

    def request(self, method, path, *, data=None, kind="application/x-www-form-urlencoded"):
        """Return the text of the reply; a refusal is an error with what it says."""
        headers = {"Content-Type": kind, "Referer": self.address, "X-CSRFToken": self.cookies.get("csrftoken", "")}
        request = urllib.request.Request(self.address + path, data=data, method=method, headers=headers)
        try:
            with self._opener.open(request, timeout=60) as reply:
                return reply.read().decode()
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{method} {path}: {refused.code} {refused.read().decode()[:2000]}") from None

    def json(self, method, path, body=None):
        """Send JSON and return the JSON of the reply; null for an empty one."""
        data = None if body is None else json.dumps(body).encode()
        text = self.request(method, path, data=data, kind="application/json")
        return json.loads(text) if text else None

    def make_project(self, folder):
        """Make a project of a folder that Steelyard wrote, as the how-to says. Returns its number."""
        text = (folder / "project.json").read_text(encoding="utf-8")
        project = self.json("POST", "/api/projects", json.loads(text))["id"]
        tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
        self.json("POST", f"/api/projects/{project}/import?commit_to_project=true", tasks)
        return project

    def tasks(self, project):
        """Return the tasks of a project by the key of Steelyard."""
        listed = self.json("GET", f"/api/tasks?project={project}&page_size=1000&fields=all")["tasks"]
        return {task["data"]["task"]: task for task in listed}

    def annotate(self, task, result, *, seconds=12.5, is_skipped=False):
        """Answer a task with results of controls, or skip it."""
        body = {"result": result, "lead_time": seconds, "was_cancelled": is_skipped}
        path = f"/api/tasks/{task['id']}/annotations"
        return self.json("POST", f"{path}?was_cancelled=1" if is_skipped else path, body)

    def export(self, project):
        """Return the export JSON of a project as text."""
        return self.request("GET", f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true")


@contextmanager
def label_studio(program, folder):
    """Start a server with a database in a folder. Yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "COLLECT_ANALYTICS": "False",
        "LATEST_VERSION_CHECK": "False",
    }
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | settings
    command = [program, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(address, process, folder / "server.log")
        yield address
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(address, process, log):
    end = time.monotonic() + _LONGEST_START
    while True:
        assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")[-2000:]
        try:
            with urllib.request.urlopen(f"{address}/api/version", timeout=5):
                return
        except OSError:
            assert time.monotonic() < end, log.read_text(encoding="utf-8", errors="replace")[-2000:]
            time.sleep(0.5)
