import pytest
import torch

from steelyard.core.errors import EvidenceError
from steelyard.methods.ranking.pairs import IndexedPair
from steelyard.stages.train.examples import Example
from steelyard.stages.train.held_out import check_apart, measure
from steelyard.stages.train.settings import Config
from strategies import case


class FirstToken(torch.nn.Module):
    """A real network whose reward is the row's first token id: what it gets right can be worked out by hand."""

    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(1, 1)

    def forward(self, ids, attended):
        return ids[:, 0].float()


def test_the_measures_by_hand():
    examples = (
        Example(((3,), (2,), (2,)), (IndexedPair(0, 1), IndexedPair(0, 2))),  # both right
        Example(((1,), (1,)), (IndexedPair(0, 1),)),  # tied: wrong
        Example(((1,), (5,), (4,)), (IndexedPair(0, 1), IndexedPair(1, 2))),  # one wrong, one right
    )
    model = FirstToken()
    model.eval()
    assert measure(model, examples, Config(kernel="padded")) == {
        "accuracy": 3 / 5, "exact_match": pytest.approx(1 / 3), "num_pairs": 5, "num_prompts": 3,
    }  # fmt: skip
    assert not model.training


def test_held_out_prompts_that_were_trained_on_are_refused_whatever_their_ids():
    check_apart([case(text="one")], [case(id="q", text="two")], where="h.jsonl")
    with pytest.raises(
        EvidenceError, match=r"h\.jsonl: 1 of 2 held-out prompts are in the training data, the first: 'q'"
    ):
        check_apart([case(text="one")], [case(id="q", text="one"), case(id="r", text="two")], where="h.jsonl")
