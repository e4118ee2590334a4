"""Remedies of errors that are raised in Python are keywords, and the call with them works."""

import inspect
import re

import pytest

import steelyard as sy
from steelyard.api.wording import python_words
from steelyard.core.remedies import ANY, FILE, NUMBER, Advice, Command, Placeholder, Remedy, worded

CONVERSION = Command("convert", ("/tmp/rows.jsonl", "cases.jsonl"), (Remedy("prompt_column", "问"),))


@pytest.mark.parametrize(
    ("function", "part", "expected"),
    [
        ("evaluate", Remedy("allow_overlap", value=True), "allow_overlap=True"),
        ("evaluate", Remedy("model.path", FILE), 'model_settings={"path": FILE}'),
        ("evaluate", Remedy("judge.max_tokens", NUMBER), 'model_settings={"judge": {"max_tokens": N}}'),
        ("judge", Remedy("judge.max_tokens", NUMBER), 'judge={"max_tokens": N}'),
        (
            "score",
            Remedy("model.reduction", "sum", (Remedy("model.protocol", "template"),)),
            'model_settings={"reduction": "sum", "protocol": "template"}',
        ),
        ("evaluate", Remedy("model", "implicit", (Remedy("model.path", "a/b"),)),
         'model="implicit", model_settings={"path": "a/b"}'),
        ("train", Remedy("max_length"), "max_length"),
        ("train", Remedy("over_length", "left"), 'over_length="left"'),
        ("score", Remedy("max_length", 512), 'model_settings={"max_length": 512}'),
        ("evaluate", Remedy("self_test", value=False), "self_test=False"),
        ("resolve", Remedy("only", ("kind=NAME",)), 'only=["kind=NAME"]'),
        ("evaluate", Remedy("bench", Placeholder("KIND=FILE")), 'bench_kind="KIND"'),
        ("train", Remedy("trackers", [{"kind": "wandb"}]), 'trackers=[{"kind": "wandb"}]'),
        ("convert", Remedy("prompt_key", "q"), 'settings={"prompt_key": "q"}'),
        ("convert", Remedy("labels.0", "tie", (Remedy("labels.1", "left"),)), 'labels={"0": "tie", "1": "left"}'),
        ("train", Command("resolve", ("a b.jsonl",), (Remedy("out", "resolved"),)),
         'sy.resolve("a b.jsonl", out="resolved")'),
        ("train", Command("evaluate", (ANY,), (Remedy("max_length", NUMBER),)),
         'sy.evaluate(…, model_settings={"max_length": N})'),
        ("train", Command("inspect", (FILE,), (Remedy("id", "p"),)), 'sy.inspect(FILE, prompt="p")'),
        ("train", Command("workbench add-person", ("A B",), (Remedy("role", "reviewer"),)),
         "steelyard workbench add-person 'A B' --role reviewer"),
        ("convert", CONVERSION, 'sy.convert("/tmp/rows.jsonl", "cases.jsonl", prompt_column="问")'),
    ],
)  # fmt: skip
def test_a_remedy_is_written_as_python_does(function, part, expected):
    assert python_words(inspect.signature(getattr(sy, function)).parameters)(part) == expected


def test_a_file_of_values_in_memory_has_their_name():
    words = python_words(inspect.signature(sy.convert).parameters, {"/tmp/rows.jsonl": "rows in memory"})
    assert words(CONVERSION) == 'sy.convert(rows, prompt_column="问")'


def test_a_sentence_is_neutral_until_an_interface_words_it():
    advice = Advice("raise ", Remedy("max_length"), Advice(", or say ", Remedy("over_length", "left")), " {} %s")
    assert advice == "raise max_length, or say over_length=left {} %s"
    words = python_words(inspect.signature(sy.train).parameters)
    assert worded(advice, words) == 'raise max_length, or say over_length="left" {} %s'
    assert worded("--plain {text}", words) == "--plain {text}"


def cases(**fields):
    good, worse = (sy.Response(id=name, text=text) for name, text in (("a", "long answer"), ("b", "short")))
    prompt = sy.Prompt(id="p", language=fields.pop("language", None), messages=(sy.Message(role="user", content="?"),))
    return [sy.Case(prompt=prompt, responses=(good, worse), **({"ranking": (("a",), ("b",))} | fields))]


VERDICT = sy.Judgment(left="a", right="b", verdict="left", judge="j", kind="llm")
FAILING = [
    (lambda **more: sy.evaluate("longer", cases(), **more), {"pairs": "judged"}, r"say (pairs=\"tiers\")"),
    (lambda **more: sy.evaluate("longer", cases(), **more), {"pairs": "listed"}, r"say (pairs=\"tiers\")"),
    (lambda **more: sy.resolve(cases(ranking=None, judgments=(VERDICT,)), **more), {"only": ["kind"]},
     r"write (only=\[\"kind=NAME\"\])"),
    (lambda **more: sy.convert([{"text": "q"}], **more), {}, r"sy\.convert\(rows, (prompt_column=\"text\")\)"),
    (lambda **more: sy.convert([{"问": "q", "A": "x", "B": "y", "winner": "0"}], **more),
     {"prompt_column": "问", "first_column": "A", "second_column": "B", "label_column": "winner"},
     r"others: (labels=\{.*\})"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "settings", "remedy"), FAILING)
def test_the_remedy_of_an_error_works_as_it_is_named(call, settings, remedy):
    with pytest.raises(sy.errors.UserError, match=remedy) as raised:
        call(**settings)
    assert "--" not in str(raised.value)
    found = re.search(remedy, str(raised.value))
    assert found is not None
    changed = eval(f"dict({found[1].replace('NAME', 'llm')})")
    call(**settings | changed)
