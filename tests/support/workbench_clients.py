"""A served workbench that can be killed at any moment, and annotators who work through HTTP and try again.

The server is `steelyard workbench serve` in a process of its own. It ends by SIGKILL, also when the tests end without
asking for it: a shell between them waits for the end of its input.
"""

import http.client
import random
import subprocess
import sys
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from steelyard.workbench.accounts.api_tokens import issue_token
from steelyard.workbench.storage.tables import StoredPerson

_SERVE = '"$@" & server=$!; read -r _; kill -9 $server; wait $server 2>/dev/null'


class KillableServer:
    """`steelyard workbench serve` at a free port; killed and started again by `restart`."""

    def __init__(self, address, *options):
        self._address, self._options = address, options
        self.url = ""
        self._start()

    def _start(self):
        serve = [sys.executable, "-m", "steelyard", "workbench", "serve", "--port", "0", "--database", self._address]
        serve += self._options
        self._shell = subprocess.Popen(
            ["sh", "-c", _SERVE, "sh", *serve],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        line = self._shell.stdout.readline()
        assert "http://" in line, f"the server did not start: {line}"
        self.url = line.strip().rpartition(" ")[2]

    @property
    def process(self):
        """The number of the shell, whose child is the server."""
        return self._shell.pid

    def kill(self):
        """Kill the server without any warning."""
        self._shell.stdin.close()
        self._shell.wait()
        self._shell.stdout.close()

    def restart(self):
        """Kill the server and start another one, at another port."""
        # Nobody connects to the old port in between: it may be somebody else's by then.
        self.url = ""
        self.kill()
        self._start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Annotator(threading.Thread):
    """A person who answers until there is no task left, and sends each answer until the server says it has it.

    ``acknowledged``: what the server said it has stored, by assignment; ``failure``: an answer that should not be.
    ``pause`` gives the seconds that an answer takes; ``seconds`` are the times of requests by kind.
    """

    def __init__(self, server, token, *, project, order=sorted, pause=lambda: 0.0, until=None):
        super().__init__(daemon=True)
        self._server, self._project, self._order, self._pause, self._until = server, project, order, pause, until
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection = None
        self.acknowledged = {}
        self.seconds = {"serve": [], "draft": [], "submit": []}
        self.num_retries = 0
        self.failure = None

    def run(self):
        """Work until there is no task, or until the time is over."""
        try:
            # People do not all come in the same moment.
            time.sleep(random.random() * self._pause())
            while self._until is None or time.monotonic() < self._until:
                tasks = self._ask("serve", "GET", f"/annotate/tasks?project={self._project}&number=1")["tasks"]
                if not tasks:
                    return
                time.sleep(self._pause())
                self._answer(tasks[0])
        except Exception as error:
            self.failure = error
            raise
        finally:
            self._hang_up()

    def _answer(self, task):
        path = f"/annotate/{task['assignment']}/answer?seconds=3"
        self.acknowledged[task["assignment"]] = self._ask("submit", "POST", path, self._content(task))["outcome"]

    def _content(self, task):
        letters = {response["raw"]: response["id"] for response in task["responses"]}
        order = [letters[raw] for raw in self._order(letters)]
        scores = {letter: 5 - 2 * place for place, letter in enumerate(order)}
        return {"scores": scores, "ranking": [[letter] for letter in order]}

    def _ask(self, kind, method, path, content=None):
        """Send a request until it is answered. Raises AssertionError for an answer other than 200."""
        body = None if content is None else msgspec.json.encode(content)
        while True:
            started = time.perf_counter()
            try:
                status, answer = self._send(method, path, body)
            except (OSError, http.client.HTTPException):
                # The server was killed: nobody knows whether it stored what was sent.
                self._hang_up()
                self.num_retries += 1
                time.sleep(0.05)
                continue
            self.seconds[kind].append(time.perf_counter() - started)
            assert status == 200, (status, answer)
            return msgspec.json.decode(answer)

    def _send(self, method, path, body):
        if self._connection is None:
            if not self._server.url:
                raise ConnectionError("the server is not there")
            self._connection = http.client.HTTPConnection(urlsplit(self._server.url).netloc, timeout=120)
        self._connection.request(method, path, body, self._headers)
        response = self._connection.getresponse()
        return response.status, response.read()

    def _hang_up(self):
        with suppress(OSError):
            if self._connection is not None:
                self._connection.close()
        self._connection = None


class RequestsOfOne(Annotator):
    """The requests of one person, to be sent one by one."""

    def serve(self):
        """Ask for a task."""
        (self._task,) = self._ask("serve", "GET", f"/annotate/tasks?project={self._project}&number=1")["tasks"]

    def draft(self):
        """Save what would be the answer."""
        path = f"/annotate/{self._task['assignment']}/draft?seconds=3"
        self._ask("draft", "POST", path, self._content(self._task))

    def submit(self):
        """Send the answer."""
        self._answer(self._task)


def tokens_of(database, people):
    """Issue a token of the REST interface for each person."""

    def issue(session):
        return [
            issue_token(session, session.get_one(StoredPerson, person), "test", at=time.time()) for person in people
        ]

    return database.write(issue)
