"""The recipe of M-RewardBench: from an English bench to the page, with a translator on a server."""

from pathlib import Path

import pytest

from chat_server import chatting
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.kept import read_kept
from steelyard.recipes.recipe import read_recipe
from steelyard.recipes.run import run
from translators import ANSWERS, QUESTION, as_asked

pytestmark = pytest.mark.slow

RECIPE = Path(__file__).parents[2] / "recipes" / "mrewardbench.toml"


def item(number, text):
    return Case(
        prompt=Prompt(id=f"p{number}", messages=(Message(role="user", content=text),), language="en"),
        responses=tuple(Response(id=name, text=answer) for name, answer in zip("ab", ANSWERS, strict=True)),
        ranking=(("a",), ("b",)),
    )


def test_an_english_bench_becomes_a_page_by_language(tmp_path):
    cases = [item(number, QUESTION.format(number)) for number in range(40)]
    cases.append(item(40, "How many letters are in the English word strawberry, and which words rhyme with it?"))
    write_cases(tmp_path / "bench.jsonl", cases)
    # A baseline in the place of the folder of a reward model.
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        RECIPE.read_text(encoding="utf-8").replace('model = "model"', 'model = "longer"'), encoding="utf-8"
    )
    with chatting(as_asked) as server:
        settings = {
            "screened": {"cases": str(tmp_path / "bench.jsonl")},
            "translated": {
                "to": ["rus_Cyrl", "ukr_Cyrl"],
                "chat": {"base_url": server.url, "model": "m", "num_tries": 1},
            },
            "native_check": {"people": "simulated"},
            "translation_quality": {"people": "simulated"},
            "languages": {"num_resamples": 200},
        }
        completed = run(read_recipe(recipe, settings), tmp_path / "out")
        number = len(server.questions)
        again = run(read_recipe(recipe, settings), tmp_path / "out")
        assert len(server.questions) == number == 80
    stages = [
        "screened", "translated", "native_check", "native_answers", "translation_quality", "translation_answers",
        "evaluated", "languages", "report",
    ]  # fmt: skip
    assert [stage.name for stage in completed] == [stage.name for stage in again] == stages
    translated = list(read_cases(tmp_path / "out" / "translated" / "cases.jsonl"))
    assert len(translated) == 3 * 40, "the prompt about letters is not translated"
    assert len(read_kept(tmp_path / "out" / "translated" / "kept.json").prompts) == 40
    done = {stage.name: stage.run for stage in completed}
    assert done["native_answers"].summary.num_judgments > 0
    assert done["translation_answers"].summary.num_ratings > 0
    # What people refuse leaves all languages, and nobody edits a file.
    left = read_kept(tmp_path / "out" / "translation_answers" / "kept.json")
    assert len(left.prompts) + len(left.left_out) == 40
    assert len(left.prompts) >= 30, "simulated people refuse few prompts"
    refused = {*done["native_answers"].summary.refused, *done["translation_answers"].summary.refused}
    assert {reason for reasons in left.left_out.values() for reason in reasons} == refused
    assert done["evaluated"].counts.num_used == 3 * len(left.prompts)
    page = (tmp_path / "out" / "report" / "report.html").read_text(encoding="utf-8")
    assert "A bench in many languages" in page
