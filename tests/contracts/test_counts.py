"""Grammar of counts in what the verbs print: one case is `1 case`, never `1 cases`."""

import re

import pytest
from typer.testing import CliRunner

from package_source import sources
from steelyard.cli.main import build_app
from steelyard.core.text import number_of, verb_for
from steelyard.io.cases import write_cases
from steelyard.io.rows import write_rows
from strategies import case

NOUNS = (
    "prompts|cases|pairs|rows|files|responses|judgments|runs|models|stages|languages|steps|requests|verdicts|items|"
    "replies|answers|groups|parts|labels|checks|seeds|differences|comparisons|questions|epochs"
)
# Grammar of "1 cases"; "1 of 3 cases" is right, and so is "11 cases".
PLURAL_OF_ONE = re.compile(rf"(?<![\d.,/])1 (?:\w+ )?(?:{NOUNS})\b|\b1 \w+ (?:have|are|were)\b")
VERBS = {
    "convert": ["convert", "rows.jsonl", "out"],
    "best-of-n": ["best-of-n", "one.jsonl", "--scores", "scored/scores.jsonl", "--out", "out"],
    "audit": ["audit", "one.jsonl", "--out", "out"],
    "resolve": ["resolve", "judged.jsonl", "--out", "out"],
    "merge": ["merge", "one.jsonl", "same.jsonl", "--out", "out"],
    "score": ["score", "one.jsonl", "--model", "longer", "--out", "out"],
    "evaluate": ["evaluate", "--bench", "one.jsonl", "--model", "longer", "--out", "out"],
    "supervise": ["supervise", "llm.jsonl", "--model", "longer", "--out", "out"],
    "debias": ["debias", "one.jsonl", "--out", "out"],
    "split": ["split", "one.jsonl", "--out", "out", "--set", "parts.train=0.5", "--set", "parts.test=0.5"],
    "inspect": ["inspect", "judged.jsonl"],
    "report": ["report", "scored", "--out", "out.html"],
    "run": ["run", "recipe.toml", "--out", "out"],
}


@pytest.fixture
def one_case(tmp_path, monkeypatch):
    """A folder with files of one case: one pair, one judgment."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.jsonl", [{"prompt": "q", "chosen": "good", "rejected": "no"}])
    write_cases(tmp_path / "one.jsonl", [case("p", "ab", ranking=(("a",), ("b",)))])
    write_cases(tmp_path / "same.jsonl", [case("p", "ab", ranking=(("a",), ("b",)))])
    write_cases(tmp_path / "judged.jsonl", [case("p", "ab", judgments=["a>b"])])
    write_cases(tmp_path / "llm.jsonl", [case("p", "ab", judgments=["a>b"])])
    recipe = '[stages.merged]\nverb = "score"\ncases = "one.jsonl"\nmodel = "longer"\n'
    (tmp_path / "recipe.toml").write_text(recipe, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_one_of_anything_is_singular(one_case, verb):
    words = ["out.jsonl" if verb == "convert" and word == "out" else word for word in VERBS[verb]]
    app = build_app()
    if verb in ("report", "best-of-n"):
        scored = ["score", "one.jsonl", "--model", "longer", "--out", "scored"]
        assert CliRunner().invoke(app, scored, catch_exceptions=False).exit_code == 0
    more = [] if verb in ("report", "run", "inspect") else ["--verbose"]
    done = CliRunner().invoke(app, [*words, *more])
    text = f"{done.output}\n{done.exception or ''}"
    assert text.strip()
    assert [match[0] for match in PLURAL_OF_ONE.finditer(text)] == []


def test_counts_of_the_command_line_are_formatted_by_the_one_helper():
    plural = re.compile(rf"(?<!of )\{{[^{{}}\"']*:,\}} (?:{NOUNS})\b")
    wrong = [
        f"{source.path}: {match[0]}"
        for source in sources()
        if source.parts and source.parts[0] == "cli"
        for match in plural.finditer("\n".join(source.lines))
    ]
    assert wrong == []


@pytest.mark.parametrize(("number", "text"), [(0, "0 cases have"), (1, "1 case has"), (1200, "1,200 cases have")])
def test_a_count_agrees_with_its_noun_and_verb(number, text):
    assert f"{number_of(number, 'case')} {verb_for(number, 'has', 'have')}" == text


def test_a_plural_without_a_plain_s_is_named():
    assert [number_of(n, "reply", "replies") for n in (1, 2)] == ["1 reply", "2 replies"]
