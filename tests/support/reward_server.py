"""A real HTTP server in the test process with the dialects of reward servers and failures on request.

Nothing here sleeps: a test that needs a silent server holds its answers until it has seen what it wants to see.
"""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Asked:
    """The requests of a server in order of arrival, and its action before it answers."""

    url = ""

    def __init__(self, answer):
        self.answer = answer
        self.failures = []  # a status, or "drop" to hang up, once each
        self.questions = []
        self.paths = []
        self.headers = []
        self.lock = threading.Lock()
        self._num_answered = None
        self._is_free = threading.Event()

    @contextmanager
    def silent(self, *, after=0):
        """Answer so many more requests in the block, and those that follow when it ends."""
        self._is_free.clear()
        self._num_answered = len(self.questions) + after
        try:
            yield
        finally:
            self._num_answered = None
            self._is_free.set()

    def wait_for_turn(self, place):
        """Wait while the request of this number, from 1, is to have no answer."""
        number = self._num_answered
        if number is not None and place > number:
            self._is_free.wait()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


@contextmanager
def nobody():
    """Yield an address at which no server listens, and none of another test can."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@contextmanager
def serving(answer):
    """Serve ``answer(path, question)``: a JSON value, or (status, body)."""
    asked = Asked(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with asked.lock:
                asked.paths.append(self.path)
                asked.questions.append(question)
                asked.headers.append(dict(self.headers))
                failure = asked.failures.pop(0) if asked.failures else None
                place = len(asked.questions)
            asked.wait_for_turn(place)
            if failure == "drop":
                self.close_connection = True
                return
            found = (failure, b"failed") if failure else asked.answer(self.path, question)
            status, body = found if isinstance(found, tuple) else (200, json.dumps(found).encode())
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    asked.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def worth(content):
    """Return the served model's reward of a request; it differs for all texts of the tests."""
    if isinstance(content, list) and content and isinstance(content[0], dict):
        content = "".join(one["role"] + one["content"] for one in content)
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], str):
        content = content[0]
    values = content if isinstance(content, list) else list(content.encode())
    return sum((place + 1) * value for place, value in enumerate(values)) / 1000 - 3
