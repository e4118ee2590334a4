"""HalluQA from the package as case files: people's answers in pairs, and GPT-4's labels of models' answers.

HalluQA (OpenMOSS, Apache-2.0) has 450 Chinese questions. People wrote best and wrong answers to each; GPT-4 said of the
answers of 24 models whether they hallucinate. The folder of the data has the licence and a notice of what was taken.
"""

import json
import lzma
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from steelyard.annotation.derived_judgments import with_derived
from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.numerics import generator
from steelyard.core.types import Case, Counts, Judgment, Message, Prompt, Rating, Record, Response, Run
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import Result, run_stage

FOLDER = files("steelyard") / "data" / "halluqa"


class Config(BaseConfig, frozen=True):
    """The part that is taken from the packaged file."""

    num_questions: Positive | None = None
    """The number of questions, from the first on. Default: all 450."""
    num_answers: Positive = 8
    """The number of models' answers to a question, drawn by the seed; equal answers count once."""
    seed: int = 0
    """The seed of the draw."""


class HalluqaSummary(Record, frozen=True, kw_only=True):
    """The numbers of questions, of people's judgments, and of models' answers by GPT-4's label."""

    num_questions: int
    num_judgments: int
    num_answers: dict[str, int]


class HalluqaRow(Record, frozen=True, kw_only=True):
    """One line of the packaged file. ``answers``: the model's number, its answer, and whether it hallucinates."""

    id: str
    question: str
    category: tuple[str, ...]
    best: tuple[str, ...]
    wrong: tuple[str, ...]
    answers: tuple[tuple[int, str, bool], ...]


_DEFAULT = Config()


def halluqa(out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run[HalluqaSummary]:
    """Write ``people.jsonl``: judgments that prefer each best answer to each wrong one; and ``gpt4.jsonl``: judgments
    that prefer each model's answer without a hallucination to each with one. LICENSE and NOTICE are written too.
    """

    def write(result: Result) -> None:
        models, questions = read_questions()
        chosen = questions[: config.num_questions]
        people = [people_case(question) for question in chosen]
        labelled = [gpt4_case(question, models, config) for question in chosen]
        write_cases(result.path("people.jsonl"), people)
        write_cases(result.path("gpt4.jsonl"), labelled)
        for name in ("LICENSE", "NOTICE"):
            result.path(name).write_bytes((FOLDER / name).read_bytes())
        labels = Counter("truthful" if rating.value else "hallucinated" for case in labelled for rating in case.ratings)
        result.counts = Counts(num_in=len(questions), num_used=len(chosen), dropped=_left_out(questions, chosen))
        result.summary = HalluqaSummary(
            num_questions=len(chosen),
            num_judgments=sum(len(case.judgments) for case in people),
            num_answers=dict(sorted(labels.items())),
        )

    return run_stage(out, "halluqa", Run[HalluqaSummary], write, config=config, inputs={}, force=force)


def _left_out(questions: Sequence[HalluqaRow], chosen: Sequence[HalluqaRow]) -> dict[str, int]:
    number = len(questions) - len(chosen)
    return {"beyond num_questions": number} if number else {}


def read_questions() -> tuple[tuple[str, ...], tuple[HalluqaRow, ...]]:
    """Return the models' names and every question of the packaged file."""
    first, *lines = lzma.decompress((FOLDER / "questions.jsonl.xz").read_bytes()).decode("utf-8").splitlines()
    header: dict[str, Any] = json.loads(first)
    return tuple(header["models"]), tuple(msgspec.json.decode(line, type=HalluqaRow) for line in lines)


def people_case(question: HalluqaRow) -> Case:
    """Return the question with people's answers. A text that is both best and wrong stands once, as best."""
    best = tuple(dict.fromkeys(question.best))
    wrong = tuple(text for text in dict.fromkeys(question.wrong) if text not in best)
    texts = {f"best-{number}": text for number, text in enumerate(best, 1)}
    texts |= {f"wrong-{number}": text for number, text in enumerate(wrong, 1)}
    return Case(
        prompt=_prompt(question),
        responses=tuple(Response(id=name, text=text, author="human") for name, text in texts.items()),
        judgments=tuple(
            Judgment(left=f"best-{left}", right=f"wrong-{right}", verdict="left", judge="authors", kind="human")
            for left in range(1, len(best) + 1)
            for right in range(1, len(wrong) + 1)
        ),
    )


def gpt4_case(question: HalluqaRow, models: Sequence[str], config: Config) -> Case:
    """Return the question with drawn answers of models, GPT-4's ratings, and the judgments that follow from them."""
    order = generator(config.seed, "halluqa", question.id).permutation(len(question.answers))
    # One answer of many models is one response: its first by the draw; contradicting labels of one text are left out.
    labels: dict[str, set[bool]] = {}
    for _, text, label in question.answers:
        labels.setdefault(text, set()).add(label)
    drawn: dict[str, tuple[str, bool]] = {}
    for number, text, label in (question.answers[int(place)] for place in order):
        if len(labels[text]) == 1 and text not in drawn and text.strip():
            drawn[text] = models[number], label
    answers = list(drawn.items())[: config.num_answers]
    case = Case(
        prompt=_prompt(question),
        responses=tuple(Response(id=model, text=text, author=model) for text, (model, _) in answers),
        ratings=tuple(
            Rating(
                response=model,
                rater="gpt-4",
                kind="llm",
                dimension="truthful",
                value=0.0 if is_hallucination else 1.0,
                range=(0.0, 1.0),
            )
            for _, (model, is_hallucination) in answers
        ),
    )
    return with_derived(case)


def _prompt(question: HalluqaRow) -> Prompt:
    return Prompt(
        id=f"halluqa-{question.id}",
        messages=(Message(role="user", content=question.question),),
        language="zh",
        category=question.category,
        source="halluqa",
    )
