"""A translation killed twenty times: the bytes of an undisturbed one, and nothing that was answered asked again."""

import os
import random
import signal
import sys
import time

import pytest

import warm_process
from chat_server import chatting
from steelyard.core.types import Case, Message, Prompt, Response, Run
from steelyard.io.cases import write_cases
from steelyard.io.ledger import LEDGER_FILE, read_ledger
from steelyard.io.run_folder import read_run
from steelyard.judging.translation_run import FAILED_FILE, FINDINGS_FILE, KEPT_FILE, REVIEW_FILES
from steelyard.judging.translation_summary import TranslateSummary
from steelyard.stages.translate import Config, translate
from translators import ANSWERS, QUESTION, as_asked

pytestmark = pytest.mark.slow
KILLS, IN_CHAIN, SEED = 20, 5, 11
FILES = ("cases.jsonl", FINDINGS_FILE, FAILED_FILE, KEPT_FILE, *REVIEW_FILES.values())
NAMES = [f"{first}{second}" for first in "bdfghklm" for second in "aeiou"]


def write(path, texts):
    """Write an item for each question with its two answers."""
    write_cases(
        path,
        (
            Case(
                prompt=Prompt(id=f"p{number}", messages=(Message(role="user", content=question),), language="en"),
                responses=(Response(id="a", text=first), Response(id="b", text=second)),
                ranking=(("a",), ("b",)),
            )
            for number, (question, first, second) in enumerate(texts)
        ),
    )


def start(cases, out, config, kill_after=None, seconds=0.0):
    """Start a translation; it kills itself some time after it has stored a number of replies, if one is given."""
    words = f"""
import os
import signal
import threading
from pathlib import Path
from steelyard.io.ledger import Ledger
from steelyard.judging.translation_summary import TranslateSummary
from steelyard.stages.translate import Config, translate
add, stored = Ledger.add, []
def add_until_killed(self, reply):
    if len(stored) == {kill_after!r}:
        threading.Timer({seconds!r}, os.kill, (os.getpid(), signal.SIGKILL)).start()
    stored.append(reply)
    add(self, reply)
Ledger.add = add_until_killed
translate(Path({str(cases)!r}), Path({str(out)!r}), Config(to={config.to!r}, chat={config.chat!r}, \
allow_failed={config.allow_failed}))
"""
    return warm_process.Process(["-c", words])


def num_replies(out):
    with read_ledger(out / LEDGER_FILE) as ledger:
        return 0 if ledger is None else len(ledger)


def kill_at_random_moments(cases, out, config):
    """Kill runs at random moments, five for each folder, until the last goes through. Returns the replies left.

    A moment follows a number of replies, not of seconds: on a busy machine it would fall before or after the work. The
    ledger of a run that writes cannot be read.
    """
    draw = random.Random(SEED)
    started = time.monotonic()
    assert start(cases, out("straight"), config).wait().returncode == 0
    number = num_replies(out("straight"))
    seconds = (time.monotonic() - started) / number
    left = []
    for chain in range(KILLS // IN_CHAIN):
        numbers = [0]
        for _ in range(IN_CHAIN):
            stored = draw.randint(0, 2 * number // (IN_CHAIN + 1))
            running = start(cases, out(f"{chain}"), config, stored, draw.uniform(0, seconds))
            ended = running.wait().returncode
            numbers.append(num_replies(out(f"{chain}")))
            assert ended == -signal.SIGKILL or numbers[-1] == number
        assert numbers == sorted(numbers), "a reply was lost"
        left += numbers[1:]
        assert start(cases, out(f"{chain}"), config).wait().returncode == 0
        assert_same(out(f"{chain}"), out("straight"))
    return left


def assert_same(killed, straight):
    for name in FILES:
        assert (killed / name).read_bytes() == (straight / name).read_bytes(), name
    assert num_replies(killed) == num_replies(straight)


@pytest.mark.parametrize("engine", ["seq2seq", "apertium"])
def test_an_engine_that_was_killed_twenty_times_translates_each_text_once(engine, tmp_path):
    texts = [(f"where is {name}", f"the {name} is so", f"a long {name} 3") for name in NAMES]
    cases, log = tmp_path / "cases.jsonl", tmp_path / "log"
    write(cases, texts)
    tiny = pytest.importorskip("tiny_translators", reason="transformers is not installed")
    if engine == "seq2seq":
        tiny.save_opus_mt(tmp_path / "opus")
        tiny.teach(tmp_path / "opus", [text for item in texts for text in item])
        chat = {"kind": "seq2seq", "path": str(tmp_path / "opus"), "num_beams": 2}
    else:
        chat = {"kind": "apertium", "program": tiny.save_program(tmp_path / "program", log=log), "workers": 2}
    config = Config(to=("de",), chat=chat, allow_failed=len(texts) - 1)
    left = kill_at_random_moments(cases, tmp_path.joinpath, config)
    straight = read_run(tmp_path / "straight", Run[TranslateSummary])
    number = num_replies(tmp_path / "straight")
    assert straight.summary.languages["de"].num_translated > len(texts) // 2
    assert sum(0 < replies < number for replies in left) > KILLS // 4, "the kills fell before or after the work"
    # What was under way at a kill is asked again: at most a text for each worker.
    asked = len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0
    assert not asked or 5 * number <= asked <= 5 * number + 2 * KILLS
    sys.stdout.write(f"{engine}: replies left by the kills {left} of {number}, asked {asked}\n")


def test_after_twenty_kills_of_a_server_run_nothing_is_asked_twice(tmp_path):
    cases = tmp_path / "cases.jsonl"
    write(cases, [(QUESTION.format(number), *ANSWERS) for number in range(24)])
    with chatting(as_asked) as server:
        config = Config(to=("ru",), chat={"base_url": server.url, "model": "m", "num_tries": 1, "workers": 1})
        for number in range(KILLS):
            before = len(server.questions)
            with server.silent(after=1):
                running = start(cases, tmp_path / "killed", config)
                while len(server.questions) < before + 2:
                    assert not running.ends_within(0.01), number
                os.kill(running.pid, signal.SIGKILL)
                running.wait()
        killed = translate(cases, tmp_path / "killed", config)
        asked = len(server.questions)
        straight = translate(cases, tmp_path / "straight", config)
    # Each kill leaves one request without its answer: that one alone is asked again.
    assert asked == 24 + KILLS
    assert killed.summary == straight.summary
    assert_same(tmp_path / "killed", tmp_path / "straight")


def test_kills_of_a_server_run_at_random_moments_ask_again_what_was_under_way_alone(tmp_path):
    cases = tmp_path / "cases.jsonl"
    write(cases, [(QUESTION.format(number), *ANSWERS) for number in range(150)])

    def answer(question):
        time.sleep(0.02)
        return as_asked(question)

    with chatting(answer) as server:
        config = Config(to=("ru",), chat={"base_url": server.url, "model": "m", "num_tries": 1, "workers": 3})
        left = kill_at_random_moments(cases, tmp_path.joinpath, config)
        asked = len(server.questions)
    assert sum(0 < replies < 150 for replies in left) > KILLS // 4, "the kills fell before or after the work"
    assert 5 * 150 <= asked <= 5 * 150 + 3 * KILLS
    sys.stdout.write(f"server: replies left by the kills {left} of 150, asked {asked}\n")
