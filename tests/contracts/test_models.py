"""The contract of every reward model: one answer a case, in order, whole, finite or null with its reason."""

import json
import math
from contextlib import ExitStack

import msgspec
import pytest

import tiny
import tiny_families
from chat_server import record
from reward_server import serving, worth
from steelyard.core.plugins import kinds
from steelyard.core.types import Case, Message, Response
from steelyard.io.cases import write_cases
from steelyard.plugins.reward_models import FOLDER_KIND, build_model, choose_model
from strategies import case, prompt

TEXTS = [
    "",
    " ",
    "数学：√2 ≈ 1.414",
    "مرحبا بالعالم",
    "שלום",
    "नमस्ते",
    "日本語です",
    "👩‍👩‍👧‍👦",
    "\\frac{a}{b}",
    "def f(x):\n\treturn x\n",
]
KINDS = kinds("models")


def odd_case(id="odd", language=None):
    return Case(
        prompt=prompt(id, "看图 👀", language=language),
        responses=tuple(Response(id=f"r{index}", text=text) for index, text in enumerate(TEXTS)),
    )


def cases():
    turns = (Message(role="assistant", content="שלום"), Message(role="user", content="?"))
    talk = Case(prompt=prompt("talk"), responses=(Response(id="a", messages=turns), Response(id="b", text="x")))
    many = [case(f"p{index}", "abcde"[: index % 6]) for index in range(30)]
    return [odd_case(language="zh"), odd_case(language="he"), talk, case("none", ""), *many]


def settings_of(kind, folder):
    """What the kind needs to be built: a folder in its own layout, a reference, cases to learn from, other models."""
    if kind in ("ngram", "features"):
        training = [
            msgspec.structs.replace(case(f"t{index}", "ab", text=f"train {index}"), ranking=(("a",), ("b",)))
            for index in range(8)
        ]
        write_cases(folder / "train.jsonl", training)
        own = {"path": tiny.save_base(folder / "model"), "cache": str(folder / "cache")} if kind == "features" else {}
        return own | {"train": str(folder / "train.jsonl")}
    if kind == FOLDER_KIND:
        return {"path": tiny.save_classifier(folder / "model")}
    if kind == "implicit":
        return {"path": tiny.save_base(folder / "policy"), "reference": tiny.save_base(folder / "reference", seed=1)}
    if kind == "llm_judge":
        return {"chat": record(folder / "replies.jsonl", {"contains": ["answer a"], "text": "[[A]]"}, {"text": "hm"})}
    if kind == "panel":
        return {"members": ["markup", tiny.save_classifier(folder / "member")]}
    return {"path": tiny_families.FAMILIES[kind](folder / "model")} if kind in tiny_families.FAMILIES else {}


@pytest.fixture(params=KINDS, scope="module")
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    with ExitStack() as open_while_testing:
        if request.param == "remote":
            tiny.tokenizer().save_pretrained(folder / "tokenizer")
            asked = open_while_testing.enter_context(serving(rewarded))
            settings = {"url": asked.url, "dialect": "openrlhf", "tokenizer": str(folder / "tokenizer")}
        else:
            settings = settings_of(request.param, folder)
        yield build_model(choose_model(request.param, settings))


def rewarded(path, question):
    return {"rewards": [worth(one) for one in question["query"]]}


@pytest.fixture(scope="module")
def answers(model):
    return list(model.score(iter(cases())))


def test_one_answer_a_case_in_order_with_every_response(answers):
    given = cases()
    assert [(line.prompt, line.language) for line in answers] == [one.key for one in given]
    for one, line in zip(given, answers, strict=True):
        assert list(line.scores) == [response.id for response in one.responses]
        assert all(score is None or math.isfinite(score) for score in line.scores.values())
        assert set(line.unscored) == {name for name, score in line.scores.items() if score is None}


def test_scores_are_the_same_again_and_leave_the_cases_as_they_were(model, answers):
    given = cases()
    before = msgspec.json.encode(given)
    assert list(model.score(given)) == answers
    assert msgspec.json.encode(given) == before


def test_scores_of_a_case_depend_on_no_other_case(model):
    given = cases()
    together = {line.prompt + str(line.language): line for line in model.score(given[::-1])}
    for one in given:
        (alone,) = model.score([one])
        beside = together[one.prompt.id + str(one.prompt.language)]
        assert beside.unscored == alone.unscored
        assert beside.scores == pytest.approx(alone.scores, abs=1e-5)  # batches of another shape round differently


def test_no_cases_give_no_answers(model):
    assert list(model.score([])) == []


def test_the_protocol_is_plain_json_and_names_the_model(model):
    protocol = model.protocol()
    assert json.loads(json.dumps(protocol)) == protocol
    assert protocol["model"]
