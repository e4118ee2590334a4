"""Errors that are raised in Python name keywords: every string of the source with an option is translated."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.api.remedies import with_keywords

SOURCE = Path(sy.__file__).parent
OTHER_TEXTS = {"api", "cli", "report", "viewing", "workbench"}
"""Packages whose options are those of a terminal: lists of items, servers, pages, the workbench."""
OPTION = re.compile(r"(?<![\w(-])--[a-z]")
COMMAND = re.compile(r"`[a-z]+ [^`]*`|\bsteelyard [a-z-]+(?: [^;,()`]+)?")
FUNCTIONS = [getattr(sy, name) for name in sy.__all__ if inspect.isfunction(getattr(sy, name))]
KEYWORDS = {name for function in FUNCTIONS for name in inspect.signature(function).parameters}
OF_OTHERS = {"id", "nproc_per_node", "prompt_key"}
"""Options of the verb `inspect` in a terminal and of torchrun, and a setting of a format, which is in ``settings``."""


def strings():
    """Every string of the source with an option, docstrings excepted; what is formatted into it is 7."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in OTHER_TEXTS:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        inner = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        inner |= {id(value) for node in nodes if isinstance(node, ast.JoinedStr) for value in node.values}
        for node in nodes:
            if id(node) not in inner and isinstance(node, ast.JoinedStr | ast.Constant):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)
                found |= {text} if OPTION.search(text) and " " in text.strip() else set()
    return sorted(found)


def parameters(name):
    return inspect.signature(getattr(sy, name)).parameters


def test_every_option_of_the_source_is_a_keyword():
    texts = strings()
    assert len(texts) > 100
    for text in texts:
        for function in ("train", "evaluate", "resolve"):
            translated = re.sub(
                r"`[a-z]+ [^`]*`|\bsteelyard [a-z-]+(?: [^;,()`]+)?", "", with_keywords(text, parameters(function))
            )
            assert not re.search(r"(?<![\w-])--[a-z]", translated), text
            named = set(re.findall(r"(?<![\w.{\"'(])([a-z_]+)=", translated))
            assert named <= KEYWORDS | OF_OTHERS, (text, translated)


@pytest.mark.parametrize(
    ("function", "text", "expected"),
    [
        ("evaluate", "permit them: --set allow_overlap=true", "permit them: allow_overlap=True"),
        ("evaluate", "give --set model.path=FOLDER", 'give model_settings={"path": FOLDER}'),
        (
            "score",
            "use --set model.reduction=sum --set model.protocol=template",
            'use model_settings={"reduction": "sum", "protocol": "template"}',
        ),
        ("evaluate", "--model implicit --set model.path=a/b", 'model="implicit" model_settings={"path": "a/b"}'),
        ("train", "raise --max-length, or --over-length left", 'raise max_length=…, or over_length="left"'),
        ("score", "use --max-length 512", 'use model_settings={"max_length": 512}'),
        ("evaluate", "--no-self-test goes on", "self_test=False goes on"),
        ("resolve", "write --only kind=NAME", 'write only=["kind=NAME"]'),
        ("judge", "take fewer, or say --set allow_even=true: a draw", "take fewer, or say allow_even=True: a draw"),
        ("evaluate", "or --bench KIND=FILE", 'or bench_kind="KIND"'),
        (
            "train",
            '--set \'trackers=[{kind="wandb",mode="offline"}]\'',
            'trackers=[{"kind": "wandb","mode": "offline"}]',
        ),
        (
            "train",
            "split (`steelyard split A --out B`), or say --allow-overlap",
            "split (`steelyard split A --out B`), or say allow_overlap=True",
        ),
    ],
)
def test_an_option_is_written_as_python_does(function, text, expected):
    assert with_keywords(text, parameters(function)) == expected


def test_the_remedy_of_an_error_works_as_it_is_named(tmp_path):
    good, worse = (sy.Response(id=name, text=text) for name, text in (("a", "long answer"), ("b", "short")))
    prompt = sy.Prompt(id="p", messages=(sy.Message(role="user", content="?"),))
    cases = [sy.Case(prompt=prompt, responses=(good, worse), ranking=(("a",), ("b",)))]
    with pytest.raises(sy.errors.EvidenceError, match=r'say pairs="tiers"') as raised:
        sy.evaluate("longer", cases, pairs="judged")
    assert "--" not in str(raised.value)
    assert float(sy.evaluate("longer", cases, pairs="tiers").accuracy) == 1.0
