"""Runs of `judge` against a server with faults, killed at moments that the server's count of requests decides."""

import json
import signal
from collections import Counter
from typing import NamedTuple

from fault_server import faulting
from steelyard.io.cases import write_cases
from steelyard.io.ledger import open_ledger
from strategies import case
from warm_process import command

_SECONDS = 900
_MOST_RUNS = 20


class Outcome(NamedTuple):
    """What runs with faults and kills left, and what one without them did (``expected``).

    ``num_stored`` counts the replies in the ledger after each kill, ``num_asked_after`` the different questions that
    the server saw from then on.
    """

    num_questions: int
    num_requests: int
    num_faults: int
    num_kills: int
    num_runs: int
    num_stored: list[int]
    num_asked_after: list[int]
    left: dict[str, object]
    expected: dict[str, object]


def judge_through_faults(folder, *, num_cases, share, num_kills, seed):
    """Judge the same cases without faults, and with faults and kills until a run ends well."""
    write_cases(folder / "cases.jsonl", [case(f"p{place}", "ab", text=f"问题 {place}？") for place in range(num_cases)])
    with faulting() as server:
        assert _started(folder, server, "whole").wait(_SECONDS).returncode == 0
        num_questions = len(server.asked)
    num_stored, asked = [], []
    with faulting(share=share, seed=seed) as server:
        for _ in range(num_kills):
            asked.append(Counter())
            server.asked = asked[-1]
            _kill_after(_started(folder, server, "killed"), server, num_questions // (num_kills + 1))
            num_stored.append(_num_stored(folder))
        asked.append(Counter())
        server.asked = asked[-1]
        ended, num_runs = None, num_kills
        while num_runs < num_kills + _MOST_RUNS and (ended is None or ended.returncode):
            ended = _started(folder, server, "killed").wait(_SECONDS)
            num_runs += 1
            assert "Traceback" not in ended.stderr
        assert ended.returncode == 0, ended
    later = [set().union(*asked[place + 1 :]) for place in range(num_kills)]
    return Outcome(
        num_questions,
        server.num_requests,
        server.faults.total(),
        num_kills,
        num_runs,
        num_stored,
        [len(questions) for questions in later],
        _results(folder / "killed"),
        _results(folder / "whole"),
    )


def _started(folder, server, out):
    settings = {"base_url": server.url, "model": "m", "timeout_seconds": 0.3, "num_tries": 6}
    settings |= {"wait_seconds": 0.01, "longest_wait_seconds": 0.1}
    words = " ".join(f"--set chat.{name}={value}" for name, value in settings.items())
    return command(f"judge cases.jsonl --out {out} --chat openai_compatible {words} --set num_resamples=10", folder)


def _kill_after(process, server, number):
    """Kill the process when it has sent so many requests."""
    goal = server.num_requests + number
    while server.num_requests < goal:
        assert not process.ends_within(0.002), process.wait()
    process.kill(signal.SIGKILL)
    assert process.wait(_SECONDS).returncode == -signal.SIGKILL


def _num_stored(folder):
    path = folder / "killed" / "replies.sqlite"
    if not path.exists():
        return 0
    with open_ledger(path) as ledger:
        replies = list(ledger.replies())
        assert len({reply.request for reply in replies}) == len(replies) == len(ledger)
        assert all(reply.failure is None and reply.text for reply in replies)
        return len(replies)


def _results(out):
    """The cases, the replies without a verdict, and the counts of tokens; tries without an answer are the faults."""
    run = json.loads((out / "run.json").read_bytes())
    summary = {name: run["summary"][name] for name in ("judges", "tokens", "failed")}
    for tokens in summary["tokens"].values():
        tokens.pop("unanswered_tries", None)
    return {path.name: path.read_bytes() for path in out.glob("*.jsonl")} | {"summary": summary}
