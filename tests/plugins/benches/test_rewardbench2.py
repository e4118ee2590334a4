import math

import msgspec
import numpy as np
import pytest

from bench_items import bench_summary
from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.core.types import Message, Scores
from steelyard.plugins.benches.column_benches import SUBSETS
from steelyard.statistics.groups import units_of
from strategies import case


def one_of_four(name, subset, scores):
    return case(name, "abcd", text=name, subset=subset, ranking=(("a",), tuple("bcd"))), line(name, scores)


def replaced(one, text):
    message = Message(role="user", content=text)
    return msgspec.structs.replace(one, prompt=msgspec.structs.replace(one.prompt, messages=(message,)))


def line(name, scores):
    return Scores(prompt=name, scores=dict(zip("abcdefgh", map(float, scores), strict=False)))


def tie(kind, number, right, wrong):
    letters = "abcdefgh"[: len(right) + len(wrong)]
    tiers = (tuple(letters[: len(right)]), tuple(letters[len(right) :]))
    name = f"Ties/{kind}:{number}"
    return case(name, letters, text=name, subset="Ties", ranking=tiers), line(name, [*right, *wrong])


def summary(pairs):
    cases, lines = zip(*pairs, strict=True)
    return bench_summary("rewardbench2", cases, lines)


def test_a_prompt_scores_its_share_of_the_top():
    # Alone at the top 1, with one other 1/2, with all four 1/4, below the top 0: 1.75 / 4.
    found = summary(
        one_of_four(f"p{index}", "Math", scores)
        for index, scores in enumerate([(3, 1, 2, 0), (3, 3, 2, 0), (1, 1, 1, 1), (2, 3, 0, 0)])
    )
    assert found["sections"]["Math"]["value"] == pytest.approx(1.75 / 4)
    assert found["sections"]["Math"]["n"] == 4
    assert "overall" not in found
    assert found["missing"]["Math"] == "4 prompts, expected 183"


def published_ties(pairs):
    """The formula in plain Python: pairs of (ref scores, tied scores), each (right ones, wrong ones)."""

    def margins(right, wrong):
        return max(right) - min(right), min(right) - max(wrong)

    found = [(margins(*ref), margins(*tied)) for ref, tied in pairs]
    number = len(found)
    total = 0.30 * sum(tied[1] > 0 for _, tied in found) + 0.30 * sum(ref[1] > 0 for ref, _ in found)
    total += 0.20 * sum(tied[1] > tied[0] for _, tied in found)
    total += 0.20 * sum(min(ref[1], tied[1]) > tied[0] for ref, tied in found)
    total += 0.01 * sum(math.tanh(min(ref[1], tied[1]) / tied[0] - 1) for ref, tied in found)
    return total / number


def test_ties_follow_the_published_formula():
    pairs = [
        (([5], [1, 2]), ([4, 4.5], [1])),  # all right, spread 0.5, margins 3
        (([1], [2]), ([3, 1], [2])),  # both wrong
        (([2.5], [2]), ([6, 3], [1])),  # right, but the right ones lie further apart than from the wrong
    ]
    rows = [
        tie(kind, index, *side)
        for index, pair in enumerate(pairs)
        for kind, side in zip(("ref", "tied"), pair, strict=True)
    ]
    value = summary(rows)["sections"]["Ties"]["value"]
    assert value == pytest.approx(published_ties(pairs), abs=1e-10)
    # By hand: 0.3 * 2/3 (tied) + 0.3 * 2/3 (ref) + 0.2 * 1/3 + 0.2 * 1/3 = 0.5333, and the small margin term.
    assert value == pytest.approx(0.53333, abs=0.01)


def test_equal_right_answers_have_no_spread_to_divide_by():
    right = [tie("ref", 1, [2], [1]), tie("tied", 1, [3, 3], [1])]
    wrong = [tie("ref", 1, [1], [2]), tie("tied", 1, [1, 1], [3])]
    even = [tie("ref", 1, [1], [1]), tie("tied", 1, [1, 1], [1])]
    values = [summary(rows)["sections"]["Ties"]["value"] for rows in (right, wrong, even)]
    assert values == [pytest.approx(1.01), pytest.approx(-0.01), pytest.approx(0.0)]


def test_the_whole_bench_has_the_plain_mean_of_six_subsets_and_an_interval():
    rng = np.random.default_rng(0)
    rows, values = [], {}
    for subset, number in SUBSETS.items():
        if subset == "Ties":
            continue
        right = number // 3
        rows += [one_of_four(f"{subset}{index}", subset, (index < right, 0.5, 0, 0)) for index in range(number)]
        values[subset] = right / number
    pairs = [
        ((list(rng.normal(1, 1, 1)), list(rng.normal(0, 1, 3))), (list(rng.normal(1, 1, 3)), list(rng.normal(0, 1, 2))))
        for _ in range(51)
    ]
    rows += [
        tie(kind, index, *side)
        for index, pair in enumerate(pairs)
        for kind, side in zip(("ref", "tied"), pair, strict=True)
    ]
    values["Ties"] = published_ties(pairs)
    found = summary(rows)
    assert {name: own["value"] for name, own in found["sections"].items()} == pytest.approx(values, abs=1e-9)
    overall = found["overall"]
    assert overall["value"] == pytest.approx(sum(values.values()) / 6, abs=1e-9)
    assert overall["low"] < overall["value"] < overall["high"]
    assert overall["n"] == 1865


def test_the_two_prompts_of_a_tie_are_drawn_together():
    bench = build("benches", "rewardbench2")
    (ref, _), (tied, _), (other, _) = tie("ref", 7, [1], [0]), tie("tied", 7, [1, 1], [0]), tie("tied", 8, [1, 1], [0])
    assert bench.resample_ids(ref)[0] == bench.resample_ids(tied)[0] != bench.resample_ids(other)[0]
    different = [replaced(one, f"What, {place}?") for place, one in enumerate((ref, tied, other))]
    one, two, three = units_of([bench.resample_ids(one) for one in different])
    assert one == two != three


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"subset": "Maths"}, "did you mean 'Math'"),
        ({"ranking": (("a",), ("b",), ("c",))}, "has not two tiers"),
        ({"ranking": None}, "has not two tiers"),
        ({"subset": "Ties"}, "allowed: ids ref:NUMBER and tied:NUMBER"),
    ],
)
def test_what_does_not_fit_is_refused(change, found):
    one = case(responses="abcd", **{"subset": "Math", "ranking": (("a",), tuple("bcd")), **change})
    with pytest.raises(EvidenceError, match=found):
        build("benches", "rewardbench2").normalize(one, "f.jsonl")
