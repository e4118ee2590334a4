"""A kind of tasks is one source file, its name, and its words: plan, questions, pages and export follow from it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.io.cases import write_cases
from strategies import case

PACKAGE = Path(__file__).parents[2] / "src" / "steelyard"
KIND = '''
"""Native writing: people say whether a response reads as a native speaker writes."""

from collections.abc import Sequence

from steelyard.annotation.answers import Origin, TaskAnswer
from steelyard.annotation.questions import TaskQuestion
from steelyard.annotation.task_kinds import Catalogues, Design, QuestionTasks, TaskRules
from steelyard.core.types import Case, Rating

_VALUES = {"native": 1.0, "partly": 0.0, "foreign": -1.0}


def _each_response(case: Case, rules: TaskRules) -> Design | None:
    return tuple((response.id,) for response in case.responses) or None


def _ask(shown: Sequence[str], catalogues: Catalogues) -> tuple[TaskQuestion, ...]:
    return (TaskQuestion(name="fluency", input="choice", responses=tuple(shown), choices=tuple(_VALUES)),)


def _rate(answer: TaskAnswer, origin: Origin) -> tuple[Rating, ...]:
    (response,) = origin.shown
    if answer.entries.get("fluency") is None:
        return ()
    value = _VALUES[answer.entries["fluency"]]
    return (
        Rating(
            response=response, rater=origin.judge, kind="human", dimension="fluency", value=value, range=(-1.0, 1.0),
            id=f"{origin.task}:{origin.judge}:{response}", task=origin.task, meta=origin.meta,
        ),
    )


KIND = QuestionTasks(
    name="native_writing", needs="a response or more", plan=_each_response, ask=_ask, rate=_rate,
)
'''
WORDS = {
    "words.toml": '"choice native_writing" = { en = "native_writing", zh = "语言是否地道" }\n',
    "results/paper.toml": '"kind native_writing" = { en = "A task showed a text.", zh = "每个任务展示一段文字。" }\n',
}


@pytest.mark.slow
def test_a_kind_of_tasks_is_one_source_file_its_name_and_its_words(tmp_path):
    package = tmp_path / "src" / "steelyard"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "annotation" / "kinds" / "native_writing.py").write_text(KIND.lstrip(), encoding="utf-8")
    kinds = package / "annotation" / "task_kinds.py"
    names = kinds.read_text(encoding="utf-8")
    assert names.count('"native_check", "span_marking"') == 1
    kinds.write_text(names.replace('"span_marking"\n', '"span_marking", "native_writing"\n'), encoding="utf-8")
    for name, line in WORDS.items():
        beside = '"choice native_check"' if name == "words.toml" else '"kind native_check"'
        text = (package / "workbench" / name).read_text(encoding="utf-8")
        assert text.count(beside) == 1
        (package / "workbench" / name).write_text(text.replace(beside, line + beside), encoding="utf-8")
    write_cases(tmp_path / "cases.jsonl", [case(f"p{number}", "abc") for number in range(8)])

    words = ["workbench", "simulate", "cases.jsonl", "--out", "rehearsal", "--set", "tasks.kind=native_writing"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", *words], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "rehearsal" / "bench.jsonl").read_text(encoding="utf-8").splitlines()
    ratings = [rating for line in lines for rating in json.loads(line)["ratings"]]
    assert {rating["dimension"] for rating in ratings} == {"fluency"}
    assert {rating["response"] for rating in ratings} == {"a", "b", "c"}
