"""A row that a file repeats changes no figure of any function that counts votes."""

import random

import msgspec
import pytest

import steelyard as sy
from strategies import case, judgment

_JUDGES = (("甲", "human", 0.9), ("乙", "human", 0.8), ("丙", "human", 0.7), ("gpt", "llm", 0.8), ("q", "llm", 0.6))


def _panel():
    """Forty ranked pairs, each judged by three people and two models, each right with a probability of its own."""
    rng = random.Random(4)
    cases = []
    for number in range(40):
        better = rng.random() < 0.5
        votes = [
            judgment("a>b" if better == (rng.random() < right) else "b>a", judge=name, kind=kind)
            for name, kind, right in _JUDGES
        ]
        texts = {name: "字" * rng.randint(1, 30) for name in "ab"}
        ranking = (("a",), ("b",)) if better else (("b",), ("a",))
        one = case(f"p{number}", "", votes, category=("chat" if number % 2 else "数学",), ranking=ranking)
        responses = tuple(sy.Response(id=name, text=text) for name, text in texts.items())
        cases.append(msgspec.structs.replace(one, responses=responses))
    return cases


def _with_repeats(cases):
    """Repeat the first person's row twice in every case, and in every second case a model's row once."""
    for number, one in enumerate(cases):
        first, *others = one.judgments
        again = others[2:3] if number % 2 else []
        yield msgspec.structs.replace(one, judgments=(first, first, *others, first, *again))


ONCE = _panel()
AGAIN = list(_with_repeats(ONCE))
_FUNCTIONS = {
    "resolve": lambda cases: sy.resolve(cases).summary,
    "resolve by majority": lambda cases: sy.resolve(cases, aggregate="majority").summary,
    "resolve by reliability": lambda cases: sy.resolve(cases, aggregate="dawid-skene").summary,
    "supervise": lambda cases: sy.supervise(cases, model="longer").summary,
    "raters": lambda cases: sy.audit(cases).summary.raters,
    "judge cards": sy.judge_cards,
    "filter study": lambda cases: sy.filter_study(cases, judge="gpt").summary,
    "audit": lambda cases: sy.audit(cases).summary,
    "evaluate": lambda cases: sy.evaluate("longer", cases).summary,
    "debias": lambda cases: sy.debias(cases, pairs="judged").summary,
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_repeated_rows_change_no_figure(name):
    once, again = (msgspec.json.encode(_FUNCTIONS[name](cases)) for cases in (ONCE, AGAIN))
    assert again == once


def test_samples_that_are_told_apart_are_votes():
    votes = [judgment("a>b", judge="gpt", kind="llm", id=str(number)) for number in range(3)]
    votes += [judgment("b>a", judge=name) for name in "甲乙"]
    resolved = sy.resolve([case(responses="ab", judgments=votes)], aggregate="majority")
    assert resolved.cases[0].ranking == (("a",), ("b",))
