"""Every public function with wrong values for every argument: a value, or an error of ours, and never another."""

import inspect
import math
import warnings
from pathlib import Path

import polars
import pytest

import steelyard as sy
from parallel_cases import parallel_cases
from steelyard.integrations.reward_function import RewardFunction

FUNCTIONS = [name for name in sy.__all__ if inspect.isfunction(getattr(sy, name))]
WRONG = {
    "none": lambda: None,
    "empty": lambda: "",
    "white space": lambda: "  ",
    "missing path": lambda: "missing/file.jsonl",
    "NUL": lambda: "a\0b",
    "very long": lambda: "x" * 5000,
    "Path": lambda: Path("missing/folder"),
    "this folder": Path,
    "bytes": lambda: b"cases.jsonl",
    "int": lambda: -7,
    "bool": lambda: True,
    "nan": lambda: math.nan,
    "infinite": lambda: math.inf,
    "complex": lambda: 1j,
    "empty list": list,
    "list of None": lambda: [None],
    "list of lists": lambda: [["a"]],
    "messages": lambda: [{"role": "user", "content": "Hi"}],
    "dict": lambda: {"a": 1},
    "keys of numbers": lambda: {1: {2: 3}},
    "set": lambda: {"a"},
    "generator": lambda: (item for item in ("a", None)),
    "object": object,
    "class": lambda: dict,
    "function": lambda: lambda: None,
    "table": lambda: polars.DataFrame({"wrong": [1, 2], "columns": ["a", None]}),
}
SMALL = {"num_resamples": 20}
BASES = {
    "best_of_n": {"cases": "missing.jsonl", "scores": "missing.jsonl"},
    "compare": {"evaluations": ["missing", "missing-2"]},
    "correlate": {"benches": ["missing"], "outcomes": ["missing"]},
    "convert": {"data": "cases.jsonl"},
    "demo": {"model": "of the real demo", "redo_from": "no stage"},
    "evaluate": {"model": "longer", "bench": "cases.jsonl", **SMALL},
    "inspect": {"target": "cases.jsonl", "prompt": "p1"},
    "judge": {"cases": "cases.jsonl", "dry_run": True},
    "languages": {"runs": ["missing"]},
    "leaderboard": {"evaluations": ["missing", "missing-2"]},
    "load_model": {"model": "longer"},
    "merge": {"files": ("cases.jsonl",)},
    "prompts": {"cases": "cases.jsonl", "dry_run": True},
    "read_cases": {"path": "cases.jsonl"},
    "report": {"runs": ["missing"]},
    "run": {"recipe": "missing.toml"},
    "sample": {"cases": "cases.jsonl", "plan": "missing.toml", "dry_run": True},
    "score": {"model": "longer", "cases": "cases.jsonl"},
    "simulate": {"num_prompts": 1},
    "train": {"cases": "missing.jsonl", "model": "missing"},
    "translate": {"cases": "cases.jsonl", "check_only": True},
    "view": {"folder": "missing"},
    "write_cases": {"path": "written.jsonl", "cases": parallel_cases()[:2]},
    **{name: {"cases": "cases.jsonl"} for name in ("clean", "describe", "resolve", "split")},
    **{name: {"cases": "missing.jsonl"} for name in ("audit", "backbone", "debias", "filter_study", "judge_cards")},
    "supervise": {"cases": "missing.jsonl", "model": "longer"},
}
"""Arguments with which a function works, or fails at once where its work takes long."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parallel_cases()[:4].save("cases.jsonl")
    return tmp_path


def called(function, arguments):
    """Call a function with these arguments; the positional ones are those of its signature."""
    values, positional = dict(arguments), []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            files = values.pop(name, ())
            positional += files if isinstance(files, tuple) else [files]
        elif parameter.kind is parameter.POSITIONAL_ONLY and name in values:
            positional.append(values.pop(name))
    return function(*positional, **values)


def faults(function, base, names):
    """The calls that fail with an error that is not ours."""
    wrong = []
    for name in names:
        for kind, make in WRONG.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    called(function, {**base, name: make()})
            except sy.errors.UserError:
                pass
            except Exception as error:
                wrong.append(f"{function.__name__}({name}={kind}): {type(error).__name__}: {error}"[:200])
    return wrong


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.usefixtures("folder")
def test_wrong_arguments_are_errors_of_ours(name):
    function = getattr(sy, name)
    names = [
        one
        for one, parameter in inspect.signature(function).parameters.items()
        if parameter.kind != parameter.VAR_KEYWORD
    ]
    assert faults(function, BASES[name], names) == []


def chat(text, role="user"):
    return [{"role": role, "content": text}]


def test_prompts_and_responses_are_texts_or_messages():
    prompt, answers = "Why?", ["Because.", "So."]
    messages = [chat(answer, "assistant") for answer in answers]
    for model in ("longer", sy.load_model("longer")):
        for asked in (prompt, chat(prompt), [sy.Message(role="system", content="s"), *chat(prompt)]):
            for given in (answers, messages, tuple(answers), [answers[0], messages[1]]):
                assert sy.score(model, prompt=asked, responses=given) == [8.0, 3.0]
    loaded = sy.load_model("longer")
    assert loaded.score(chat(prompt), messages) == [8.0, 3.0]
    assert RewardFunction("longer")([chat(prompt), prompt], [messages[0], answers[1]]) == [8.0, 3.0]


WRONG_PROMPTS = [None, b"Why?", 3, {"role": "user", "content": "Why?"}, [], [None], ["Why?"], chat(None), chat(3), [{}]]
WRONG_RESPONSES = [
    None, "Air", b"Air", 3, {"a": "Air"}, [None], [3], [b"Air"], [[]], [[None]], [["Air"]], [chat(None)], chat("Air"),
    [{"text": "Air"}], (text for text in ["Air"]),
]  # fmt: skip


@pytest.mark.parametrize("prompt", WRONG_PROMPTS)
def test_a_wrong_prompt_is_named(prompt):
    with pytest.raises(sy.errors.UserError, match=r"prompt|cases, or"):
        sy.score("longer", prompt=prompt, responses=["Air"])
    with pytest.raises(sy.errors.ConfigError, match="prompt"):
        sy.load_model("longer").score(prompt, ["Air"])
    with pytest.raises(sy.errors.ConfigError, match=r"prompts\[0\]"):
        RewardFunction("longer")([prompt], ["Air"])


@pytest.mark.parametrize("responses", WRONG_RESPONSES)
def test_wrong_responses_are_named(responses):
    with pytest.raises(sy.errors.ConfigError, match="responses"):
        sy.score("longer", prompt="Why?", responses=responses)
    with pytest.raises(sy.errors.ConfigError, match="responses"):
        sy.load_model("longer").score("Why?", responses)
    with pytest.raises(sy.errors.ConfigError, match="completions"):
        RewardFunction("longer")(["Why?"], responses)


@pytest.mark.parametrize("cases", [None, "Why?", chat("Why?"), b"x", 3, [None], ["Why?"], [3], {"a": 1}])
def test_wrong_cases_are_refused_before_they_are_read(cases):
    with pytest.raises(sy.errors.UserError):
        sy.load_model("longer").score(cases)
