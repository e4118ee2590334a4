"""A chat server on loopback that speaks the real protocol over kept connections, and fails in every way that one can.

Each reply is a function of the question alone, so that a run through faults can be compared with one without them.
Faults are drawn in an order fixed by the seed.
"""

import asyncio
import base64
import hashlib
import json
import random
import socket
import struct
import threading
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import quote

TEXTS = ("第一个回答更好，理由充分。[[A]]", "The second one is better. [[B]]", "两个回答一样好。[[C]]")
DONE = object()
"""Ends a fault: the connection closes."""


def text_of(question):
    """Return the reply to a question: one of the texts, by the hash of its last message."""
    content = question["messages"][-1]["content"]
    return TEXTS[hashlib.sha256(content.encode()).digest()[0] % len(TEXTS)]


def body_of(number, question, **changed):
    message = {"role": "assistant", "content": text_of(question), **changed}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 64}}
    body = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": question["model"]}
    return json.dumps(body | {"choices": [choice], "usage": usage}, ensure_ascii=False).encode()


def response(body, status="200 OK", *, headers=(), length=None, content_type="application/json"):
    """Return the bytes of a response; ``length`` is the announced one, where it is not the body's."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", *headers]
    lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _with_key(body, head):
    """Return the body with the key of the request in its texts, its names and in escapes of JSON."""
    key = head.partition(b"Bearer ")[2].split(b"\r\n", 1)[0].decode()
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in key)
    encoded = base64.b64encode(f"Bearer {key}".encode()).decode()
    echo = f"{key} {escaped} {quote(key, safe='')} {encoded} "
    return body.replace(b'"content": "', b'"content": "' + echo.encode()).replace(
        b'"finish_reason": "stop"', f'"finish_reason": "{key}", "{escaped}": 1'.encode()
    )


def _chunked(body, size):
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _date(seconds):
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


def _in_character(body):
    return body.index("理由".encode()) + 1 if "理由".encode() in body else len(body) - 40


# Each fault gets the whole body, and yields bytes to send, numbers of seconds to wait, or DONE to hang up.
FAULTS = {
    "429": lambda body: [response(b'{"error": {"message": ' + body + b"}}", "429 Too Many Requests")],
    "429 with seconds": lambda body: [response(b"", "429 Too Many Requests", headers=["Retry-After: 0"])],
    "429 with milliseconds": lambda body: [response(b"", "429 Too Many", headers=["retry-after-ms: 20"])],
    "429 with a date": lambda body: [response(b"", "429 Too Many", headers=[f"Retry-After: {_date(0)}"])],
    "500": lambda body: [response(b"internal error " + body, "500 Internal Server Error", content_type="text/plain")],
    "503": lambda body: [response(b"<html>busy" + body, "503 Service Unavailable", content_type="text/html")],
    "hang": lambda body: [30.0],
    "hang in the body": lambda body: [response(body)[:-20], 30.0],
    "slow stream": lambda body: [response(body)[:300], 0.05, response(body)[300:400], 0.05, response(body)[400:]],
    "broken stream": lambda body: [response(body)[:-30], DONE],
    "truncated JSON": lambda body: [response(body[:-25])],
    "empty body": lambda body: [response(b"")],
    "empty choices": lambda body: [response(b'{"object": "chat.completion", "choices": []}')],
    "empty text": lambda body: [response(b'{"choices": [{"message": {"role": "assistant", "content": " "}}]}')],
    "no text": lambda body: [response(b'{"choices": [{"message": {"content": null}, "finish_reason": "stop"}]}')],
    "page of a proxy": lambda body: [response(b"<html>[[A]]" + body + b"</html>", content_type="text/html")],
    "event stream": lambda body: [response(b"data: " + body + b"\n\n", content_type="text/event-stream")],
    "reset": lambda body: ["reset"],
    "reset in the body": lambda body: [response(body)[:-30], 0.01, "reset"],
    "closed": lambda body: [DONE],
    "sent twice": lambda body: [response(body) * 2],
    "sent again later": lambda body: [response(body), 0.03, response(body)],
    "cut in a character": lambda body: [response(body[: _in_character(body)])],
    "broken in a character": lambda body: [response(body)[: -(len(body) - _in_character(body))], DONE],
    "chunks that cut characters": lambda body: [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + _chunked(body, 5)
    ],
    "chunks without an end": lambda body: [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + _chunked(body, 50)[:-30], DONE
    ],
    "no HTTP": lambda body: [b"garbage\r\n\r\n", DONE],
}  # fmt: skip


class FaultServer:
    """The requests that a server saw. ``share`` of them meet a fault of ``kinds``; it may repeat the key."""

    def __init__(self, *, share=0.0, seed=0, kinds=tuple(FAULTS), echoes_key=False):
        self.echoes_key = echoes_key
        self.share = share
        self.kinds = kinds
        self.draw = random.Random(seed)
        self.num_requests = 0
        self.asked = Counter()
        self.faults = Counter()
        self.num_connections = 0
        self.url = ""

    async def serve(self, reader, writer):
        self.num_connections += 1
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")) and await self._answer(head, reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, head, reader, writer):
        """Answer a request. Returns whether the connection is kept."""
        if head.startswith(b"GET "):
            writer.write(response(b"{}", "404 Not Found"))
            await writer.drain()
            return True
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        question = json.loads(await reader.readexactly(length))
        self.num_requests += 1
        self.asked[question["messages"][-1]["content"]] += 1
        body = body_of(self.num_requests, question)
        if self.echoes_key:
            body = _with_key(body, head)
        if self.draw.random() >= self.share:
            writer.write(response(body))
            await writer.drain()
            return True
        kind = self.draw.choice(self.kinds)
        self.faults[kind] += 1
        for part in FAULTS[kind](body):
            if part is DONE:
                return False
            if part == "reset":
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            if isinstance(part, float):
                await asyncio.sleep(part)
            else:
                writer.write(part)
                await writer.drain()
        return True


@contextmanager
def faulting(**settings):
    """Serve in a thread of this process."""
    server = FaultServer(**settings)
    loop = asyncio.new_event_loop()
    listening = loop.run_until_complete(asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=512))
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def end():
        listening.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
