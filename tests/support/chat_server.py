"""A real server in the test process with OpenAI's chat completions, and files of recorded replies."""

import base64
import json
import socket
import socketserver
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

from reward_server import serving
from steelyard.core.comparison import Question, Request
from steelyard.core.types import Message


def completion(text, finish="stop", *, logprobs=None, model="served", usage=(7, 3), **message):
    """Return the body of a chat completion; ``logprobs`` are (token, log-probability), the written token first."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    if logprobs is not None:
        top = [{"token": token, "logprob": value, "bytes": None} for token, value in logprobs]
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}
    return body | ({"usage": dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))} if usage else {})


@contextmanager
def chatting(answer="[[A]]"):
    """Serve a fixed text as every reply, or the result of ``answer(question)``."""

    def reply(path, question):
        said = answer(question) if callable(answer) else answer
        return completion(said) if isinstance(said, str) else said

    with serving(reply) as asked:
        asked.url += "/v1"
        yield asked


def request(id="r", text="Which one?", *, system=None, **fields):
    turns = [("system", system)] if system else []
    messages = tuple(Message(role=role, content=content) for role, content in [*turns, ("user", text)])
    return Request(id=id, question=Question(messages=messages, **{"max_tokens": 16, **fields}))


def record(path, *lines):
    """Write a file of recorded replies."""
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return {"kind": "recorded", "path": str(path)}


def preferring(word):
    """Return a judge that prefers the answer with the word in either position, and neither if both have it."""

    def answer(question):
        shown = question["messages"][-1]["content"].split("answer A", 1)[1]
        first, second = shown.split("answer B", 1)
        return "[[A]]" if word in first and word not in second else "[[B]]" if word in second else "Neither."

    return answer


@contextmanager
def echoing(status):
    """Serve replies that repeat the request in headers, status line and every text."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            key = self.headers["Authorization"].removeprefix("Bearer ")
            said = f"{self.headers} {key} {quote(key)} {base64.b64encode(key.encode()).decode()} {key.upper()}"
            # Escapes of JSON spell the key in other letters: whoever looks for it in the bytes does not find it.
            body = completion(f"{said} SPELT [[A]]", model=key, finish="stop") | {"usage": {"prompt_tokens": key}}
            body |= {"rewards": said, "error": {"message": f"{said} SPELT", key: key}}
            spelt = "".join(f"\\u{ord(sign):04x}" for sign in key)
            sent = json.dumps(body).replace("SPELT", spelt).encode()
            self.send_response(status, f"status {key}")
            for name, value in {"X-Echo": said.replace("\n", " "), "Location": f"http://127.0.0.1:1/{key}"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format, *args):
            pass

    with _listening(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
        yield url


@contextmanager
def sending(parts):
    """Send the bytes of ``parts()`` one after another while there is a client."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            with suppress(OSError):
                for part in parts():
                    self.request.sendall(part)
                # A socket that is closed with unread input resets the connection, and the client loses the answer.
                self.request.shutdown(socket.SHUT_WR)
                while self.request.recv(65536):
                    pass

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    with _listening(server) as url:
        yield url


@contextmanager
def _listening(server):
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
