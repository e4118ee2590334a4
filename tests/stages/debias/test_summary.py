import numpy as np

from steelyard.stages.debias.settings import Config
from steelyard.stages.debias.summary import count, summarise
from steelyard.stages.debias.surveying import Survey

FOUND = Survey(
    side=np.array([1, 1, -1, 0]),
    group=np.array([0, 0, 1, 0]),
    priority=np.arange(4).astype(np.uint64),
    prompt=np.array([0, 0, 1, 2]),
    is_matched=np.array([False, True, False, True]),
    is_longer=np.array([True, True, False, False]),
    margin=np.array([1.0, -1.0, np.nan, 0.0]),
    groups=(("zh",), ("en",)),
    pairs_of_case=np.array([2, 1, 1, 0]),
)
KEPT = np.array([True, False, True, True])


def test_counts_are_of_pairs():
    counts = count(FOUND, KEPT, 0)
    assert (counts.num_in, counts.num_used, counts.dropped) == (4, 3, {"downsampled": 1})
    assert counts.noted == {"cases": 4, "cases without a pair": 1, "pairs on neither side": 1}
    assert count(FOUND, KEPT | True, 0).dropped == {}


def test_both_sides_and_the_model_before_and_after():
    found = summarise(FOUND, KEPT, Config(within="language"), with_scores=True)
    assert found["overall"]["before"] == {"num_more": 2, "num_less": 1, "num_equal": 1, "share_more": 2 / 3}
    assert found["overall"]["after"] == {"num_more": 1, "num_less": 1, "num_equal": 1, "share_more": 0.5}
    assert [(row["group"], row["after"]["num_more"]) for row in found["groups"]] == [(["zh"], 1), (["en"], 0)]
    accuracy = found["accuracy"]
    assert accuracy["num_unscored"] == 1
    # Scored: right, wrong, and a tie that is wrong; the second is the one that goes.
    assert (accuracy["all"]["before"]["value"], accuracy["all"]["before"]["n"]) == (1 / 3, 3)
    assert (accuracy["all"]["after"]["value"], accuracy["all"]["after"]["n"]) == (0.5, 2)
    assert (accuracy["length_matched"]["before"]["n"], accuracy["length_matched"]["after"]["n"]) == (2, 1)
    assert summarise(FOUND, KEPT, Config(), with_scores=False)["accuracy"] is None
