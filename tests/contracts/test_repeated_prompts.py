"""Prompts that repeat under new ids, written in other ways, are one draw: no interval is narrower for the repeats."""

import shlex

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from reference_measures import as_written
from steelyard.cli.main import build_app
from steelyard.core.types import Case, Judgment, Message, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.judging.judge_card import judge_cards

TEXTS = ("How far is town {}?", "从这里到{}镇有多远？", "كم تبعد المدينة {}؟", "नगर {} कितनी दूर है?")
WAYS = ("{}", "\ufeff{}", "{} ", "\u200b{}", " {}\n", "{}\u200d", "\u00a0{}", "{}\u2060", "\t{}", "{}\u200e")
NUM_PROMPTS = 30
INTERVALS = ("low", "high", "ratio_low", "ratio_high", "ratio_of_strict_low", "ratio_of_strict_high")


def repeated(*, one_id):
    """Thirty prompts ten times each: all copies of a prompt under one id in ten languages, or under new ids."""
    random = np.random.default_rng(5)
    for number in range(NUM_PROMPTS):
        text = TEXTS[number % len(TEXTS)].format(number)
        # All copies share the hardness of their prompt: as independent prompts they would narrow every interval.
        is_hard = random.random() < 0.4
        for copy, way in enumerate(WAYS):
            language = f"l{copy}" if one_id else "en"
            yield Case(
                prompt=Prompt(
                    id=f"p{number}" if one_id else f"p{number}-{copy}",
                    language=language,
                    messages=(Message(role="user", content=way.format(text)),),
                ),
                responses=tuple(
                    Response(id=name, text=f"{name * (place + 2)} {number}", author=f"model {name}")
                    for place, name in enumerate("abc")
                ),
                judgments=tuple(
                    Judgment(
                        left=left,
                        right=right,
                        verdict="tie" if random.random() < 0.1 else "right" if is_hard and judge != "ann" else "left",
                        judge=judge,
                        kind="llm" if judge == "gpt" else "human",
                        shown=(left, right) if random.random() < 0.5 else (right, left),
                    )
                    for judge in ("ann", "bob", "eve", "gpt")
                    for left, right in (("a", "b"), ("b", "c"), ("c", "a"))
                ),
                ranking=(("a",), ("b",), ("c",)),
            )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("repeated")
    for name, one_id in (("new", False), ("one", True)):
        write_cases(path / f"{name}.jsonl", repeated(one_id=one_id))
    return path


def summary(folder, name, words):
    out = folder / name
    ended = CliRunner().invoke(
        build_app(), shlex.split(f"{words.format(folder / f'{name}.jsonl')} --out {out} --force")
    )
    assert ended.exit_code == 0, ended.output
    return msgspec.json.decode((out / "run.json").read_bytes())["summary"]


def intervals(value, path=""):
    """Return every interval of a record by its place in it; places by language differ between the two files."""
    if isinstance(value, list):
        value = {str(place): part for place, part in enumerate(value)}
    if not isinstance(value, dict):
        return {}
    found = {}
    for name, part in value.items():
        if name in INTERVALS and part is not None:
            found[f"{path}/{name}"] = part
        elif name not in ("by_language", "by_category", "contradictions", "conflicted", "listed"):
            found |= intervals(part, f"{path}/{name}")
    return found


@pytest.mark.parametrize(
    ("words", "fewest"),
    [
        ("resolve {}", 120),
        ("resolve {} --aggregate majority", 120),
        ("resolve {} --workers 2", 120),
        ("supervise {} --model longer --set min_margin=0", 2),
        pytest.param("audit {}", 2, marks=pytest.mark.slow),
    ],
)
def test_intervals_are_those_of_prompts_with_one_id(folder, words, fewest):
    new, one = (intervals(summary(folder, name, words)) for name in ("new", "one"))
    assert len(new) >= fewest
    assert new == pytest.approx(one, abs=1e-9)


def test_cards_of_judges_are_those_of_prompts_with_one_id():
    new, one = (judge_cards(cases, cases) for cases in (list(repeated(one_id=each)) for each in (False, True)))
    new, one = (intervals(as_written(cards)) for cards in (new, one))
    assert len(new) >= 10
    assert new == pytest.approx(one, abs=1e-9)
