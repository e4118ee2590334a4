"""CPU seconds and throughput of the client of chat completions, against a server on loopback in a process of its own.

    python speed/client.py [--seconds 10] [--workers 200]

Three loads: a server that queues what is beyond 64 requests at a time and takes 50 ms for each (at most 1,280 replies a
second), the same with a refusal (429) of what is beyond, and one without a limit and 200 requests under way. CPU times
are those of the client's process alone, with all its threads, per reply; the server's stand beside them.
"""

import argparse
import asyncio
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import sys
import time
from typing import ClassVar

from steelyard.core.comparison import Question, Request
from steelyard.core.plugins import build
from steelyard.core.types import Message

SECONDS_OF_A_REPLY = 0.05
BODY = {
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "usage": {"prompt_tokens": 400, "completion_tokens": 12, "total_tokens": 412},
}
PROMPT = "Which of the two answers is better?\n\n" + "The quick brown fox jumps over the lazy dog. " * 40


class Server(asyncio.Protocol):
    """Answers after a fixed time, at most ``most`` requests at once; the rest wait, or are refused."""

    most: int = 0
    refuses: bool = False
    running: int = 0
    number: int = 0
    waiting: ClassVar[list["Server"]] = []

    def connection_made(self, transport):
        self.transport = transport
        self.buffer = b""

    def data_received(self, data):
        self.buffer += data
        head, end, rest = self.buffer.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        if not Server.most or Server.running < Server.most:
            self.begin()
        elif Server.refuses:
            self.transport.write(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n")
        else:
            Server.waiting.append(self)

    def begin(self):
        Server.running += 1
        asyncio.get_running_loop().call_later(SECONDS_OF_A_REPLY, self.end)

    def end(self):
        Server.running -= 1
        Server.number += 1
        choice = {"index": 0, "message": {"role": "assistant", "content": "[[A]]"}, "finish_reason": "stop"}
        body = json.dumps(BODY | {"id": f"c{Server.number}", "choices": [choice]}).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)
        if Server.waiting:
            Server.waiting.pop(0).begin()


def serve(most: int, *, refuses: bool, pipe: multiprocessing.connection.Connection) -> None:
    """Serve until the pipe is told to stop, and send the CPU seconds spent."""

    async def run() -> None:
        Server.most, Server.refuses = most, refuses
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        pipe.send(time.process_time())
        server.close()

    asyncio.run(run())


def measure(most: int, *, refuses: bool, workers: int, seconds: float) -> dict[str, float | int]:
    """Ask for so many seconds; the first second, in which the number of requests at a time rises, does not count."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=serve, args=(most,), kwargs={"refuses": refuses, "pipe": theirs}
    )
    process.start()
    url = f"http://127.0.0.1:{ours.recv()}/v1"
    chat = build("chats", "openai_compatible", {"base_url": url, "model": "m", "workers": workers, "num_tries": 1000})
    deadline = time.monotonic() + seconds + 2

    def requests():
        number = 0
        while time.monotonic() < deadline:
            number += 1
            messages = (Message(role="user", content=f"{PROMPT}{number}"),)
            yield Request(id=str(number), question=Question(messages=messages, max_tokens=64))

    num_replies = num_failed = 0
    began = cpu = 0.0
    ended = time.monotonic()
    for reply in chat.ask(requests()):
        now = time.monotonic()
        if not began:
            if now > deadline - seconds:
                began, cpu = now, time.process_time()
            continue
        if now < deadline:
            num_replies += 1
            ended = now
        num_failed += reply.failure is not None
    cpu = time.process_time() - cpu
    ours.send("stop")
    server_cpu = ours.recv()
    process.join()
    rate = num_replies / (ended - began)
    found = {"replies a second": round(rate, 1), "client CPU ms": round(1000 * cpu / num_replies, 3)}
    found["server CPU ms"] = round(1000 * server_cpu / (num_replies * (seconds + 2) / seconds), 3)
    if most:
        found["share of the limit"] = round(rate * SECONDS_OF_A_REPLY / most, 4)
    return found | {"failed": num_failed}


def main() -> None:
    """Measure the three loads and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=200)
    chosen = parser.parse_args()
    loads = {"queues beyond 64": (64, False), "refuses beyond 64": (64, True), "no limit": (0, False)}
    for name, (most, refuses) in loads.items():
        found = measure(most, refuses=refuses, workers=chosen.workers, seconds=chosen.seconds)
        sys.stdout.write(json.dumps({"load": name, "workers": chosen.workers, "cores": os.cpu_count(), **found}) + "\n")
        sys.stdout.flush()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps({"peak MiB": round(peak, 1)}) + "\n")


if __name__ == "__main__":
    main()
