import unicodedata

import msgspec
import numpy as np
import pytest
import torch

from steelyard.core.errors import EvidenceError
from steelyard.networks.scorer import Scorer
from steelyard.ranking.pairs import IndexedPair
from steelyard.training.evidence import check_disjoint
from steelyard.training.examples import Example
from steelyard.training.held_out import measure, rewards_of
from strategies import case


class FirstToken(torch.nn.Module):
    """A real network whose reward is the row's first token id: what it gets right can be worked out by hand."""

    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(1, 1)

    def forward(self, ids, attended):
        return ids[:, 0].float()


class Around:
    """Equal to every interval within [0, 1]: how wide it is has a test of its own."""

    def __eq__(self, other):
        return 0 <= other[0] < other[1] <= 1

    __hash__ = None


AROUND = Around()


def test_the_measures_by_hand():
    examples = (
        Example(((3,), (2,), (2,)), (IndexedPair(0, 1), IndexedPair(0, 2)), category="code", language="zh"),
        Example(((1,), (1,)), (IndexedPair(0, 1),), category="code"),
        Example(((1,), (5,), (4,)), (IndexedPair(0, 1), IndexedPair(1, 2)), category="数学"),
    )
    model = FirstToken()
    model.eval()
    found = measure(rewards_of(Scorer(model, kernel="padded"), examples), examples)
    assert msgspec.to_builtins(found) == {
        "accuracy": 3 / 5, "exact_match": pytest.approx(1 / 3), "num_pairs": 5, "num_prompts": 3,
        "interval": AROUND,
        "by_category": {
            "code": {"accuracy": 2 / 3, "exact_match": 0.5, "num_pairs": 3, "num_prompts": 2,
                     "interval": AROUND},
            "数学": {"accuracy": 0.5, "exact_match": 0.0, "num_pairs": 2, "num_prompts": 1},
        },
        "by_language": {"zh": {"accuracy": 1.0, "exact_match": 1.0, "num_pairs": 2, "num_prompts": 1}},
    }  # fmt: skip
    assert not model.training
    assert found.sentence() == "held-out accuracy 0.600, exact match 0.333; 数学 0.500, code 0.667"
    assert found.figures()["held_out/by_category/数学/accuracy"] == 0.5
    assert len(found.figures()) == 2 * (1 + 2 + 1)


def test_the_interval_is_that_of_a_bootstrap_over_prompts():
    generator = np.random.default_rng(0)
    number = 150
    sizes, ease = generator.integers(1, 5, number), generator.beta(4, 2, number)
    right = [generator.random(size) < share for size, share in zip(sizes, ease, strict=True)]
    pairs = [tuple(IndexedPair(0, place + 1) for place in range(size)) for size in sizes]
    examples = [Example(tuple((place,) for place in range(len(each) + 1)), each) for each in pairs]
    found = measure([np.array([0.0, *np.where(each, -1.0, 1.0)]) for each in right], examples)
    numbers = np.array([each.sum() for each in right])
    drawn = generator.integers(0, number, (20_000, number))
    accuracies = numbers[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    assert found.interval == pytest.approx(np.quantile(accuracies, [0.025, 0.975]), abs=0.01)


def test_of_many_groups_the_lowest_are_told():
    examples = tuple(Example(((3,), (2,)), (IndexedPair(0, 1),), category=name) for name in "abcd")
    found = measure([np.array([3.0, 2.0])] * 4, examples)
    assert found.sentence().endswith("lowest of 4: a 1.000, b 1.000, c 1.000")


def test_held_out_prompts_that_were_trained_on_are_refused_whatever_their_ids():
    check_disjoint([case(text="one")], [case(id="q", text="two")], where="h.jsonl")
    with pytest.raises(
        EvidenceError, match=r"h\.jsonl: 1 of 2 held-out prompts are in the training data, the first: 'q'"
    ):
        check_disjoint([case(text="one")], [case(id="q", text="one"), case(id="r", text="two")], where="h.jsonl")


@pytest.mark.parametrize(
    ("trained", "held_out"),
    [
        ("Quel âge as-tu ?", "QUEL ÂGE AS-TU ? "),
        ("Quel âge as-tu ?", unicodedata.normalize("NFD", "Quel âge as-tu ?")),
        ("ما عاصمة الأردن؟", "\ufeffمَا عَاصِمَة الاردن؟"),
        ("如何学习 Python？", "如何\u200b学习Python?"),
    ],
)
def test_a_held_out_prompt_that_is_written_in_another_way_is_refused(trained, held_out):
    with pytest.raises(EvidenceError, match="1 of 1 held-out prompts are in the training data"):
        check_disjoint([case(text=trained)], [case(id="q", text=held_out)], where="h.jsonl")


def test_held_out_translations_of_training_prompts_are_refused():
    trained = [case(id="0", text="How old are you?", language="en"), case(id="1", text="one", language="en")]
    translated = case(id="0", text="你多大了？", language="zh")
    with pytest.raises(
        EvidenceError,
        match=r"2 of 3 held-out prompts are in the training data \(1 of them by their id, in another language\), "
        "the first: '0'",
    ):
        check_disjoint(trained, [translated, case(id="q", text="one"), case(id="r", text="two")], where="h.jsonl")


@pytest.mark.parametrize("language", ["en", "ENG", None])
def test_an_equal_id_in_the_same_or_no_language_is_another_prompt(language):
    check_disjoint([case(id="0", text="one", language="en")], [case(id="0", text="two", language=language)], where="h")


def test_prompts_without_text_are_not_in_the_training_data():
    check_disjoint([case(text="")], [case(id="q", text="")], where="h.jsonl")


def test_repeats_of_a_prompt_under_new_ids_narrow_no_interval():
    right = np.random.default_rng(3).random(30) < 0.7
    once = [
        Example(((0,), (1,)), (IndexedPair(0, 1),), prompt_names=(f"p{number}", f"text {number}"))
        for number in range(len(right))
    ]
    rewards = [np.array([1.0, 0.0]) if each else np.array([0.0, 1.0]) for each in right]
    again = [example._replace(prompt_names=(f"again {at}", example.prompt_names[1])) for at, example in enumerate(once)]
    alone, doubled = measure(rewards, once), measure([*rewards, *rewards], [*once, *again])
    assert doubled.accuracy == alone.accuracy
    assert doubled.interval == pytest.approx(alone.interval)
    assert doubled.num_prompts == 2 * alone.num_prompts
