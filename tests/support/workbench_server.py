"""A workbench in a process of its own, for tests that open its pages, send requests, or kill it."""

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from steelyard.workbench.accounts.people import NewPerson, add_person, log_in, visitor_of_cookie
from steelyard.workbench.accounts.permissions import COOKIE

SERVE = """
import sys, uvicorn
from steelyard.workbench.application import Options, application
from steelyard.workbench.storage.database import Database
address, host, port = sys.argv[1:]
app = application(Database(address), Options(hosts=(host,)))
uvicorn.run(app, host=host, port=int(port), log_level="error", lifespan="off", ws="none")
"""
LONGEST_START = 120.0
PASSWORD = "a long password"


class ServedWorkbench:
    """The server over a migrated database; ``kill`` ends it at once, ``start`` serves at the same address again."""

    def __init__(self, address):
        self._address = address
        # An address of this test alone: nobody takes the port while the server is away.
        self.host = "127." + ".".join(str(2 + secrets.randbelow(250)) for _ in range(3))
        with socket.socket() as free:
            free.bind((self.host, 0))
            self.port = free.getsockname()[1]
        self._process = None
        self.start()

    @property
    def origin(self):
        return f"http://{self.host}:{self.port}"

    def start(self):
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE, self._address, self.host, str(self.port)], env=environment
        )
        end = time.monotonic() + LONGEST_START
        while True:
            try:
                socket.create_connection((self.host, self.port), 1).close()
            except OSError:
                assert self._process.poll() is None, "the server has ended"
                assert time.monotonic() < end, "the server does not start"
                time.sleep(0.05)
            else:
                return

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def request(self, method, path, login=None, *, body=None, token=None):
        """Send a request as a browser does; returns status and the decoded JSON, or the text."""
        headers = {"accept": "application/json"}
        if login is not None:
            headers |= {"cookie": f"{COOKIE}={login.cookie}", "x-csrf-token": token or login.token}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, data, headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, json.loads(text) if "json" in (reply.getheader("content-type") or "") else text


class Login:
    """A new account that is logged in: its number, cookie, and the token of its forms."""

    def __init__(self, database, name, role="annotator", *, language="en"):
        now = time.time()

        def work(session):
            person = add_person(session, NewPerson(name, role, PASSWORD, language=language), by=None, at=now)
            return person.id, log_in(session, name, PASSWORD, address="test", at=now)

        self.person, self.cookie = database.write(work)
        with database.reading() as session:
            self.token = visitor_of_cookie(session, self.cookie, at=now).csrf
