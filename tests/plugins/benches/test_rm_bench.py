import msgspec
import numpy as np
import pytest

from bench_items import bench_summary
from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.core.types import Response, Scores
from steelyard.plugins.benches.column_benches import PUBLISHED
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from strategies import case

STYLES = ("concise", "detailed", "markdown")


def styled(name, domain, right, wrong):
    one = case(name, "abcdef", subset=domain, ranking=(tuple("abc"), tuple("def")))
    responses = tuple(
        Response(id=letter, text=letter, meta={"style": style})
        for letter, style in zip("abcdef", STYLES * 2, strict=True)
    )
    scores = dict(zip("abcdef", map(float, (*right, *wrong)), strict=True))
    return msgspec.structs.replace(one, responses=responses), Scores(prompt=name, scores=scores)


def summary(rows):
    cases, lines = zip(*rows, strict=True)
    return bench_summary("rm_bench", cases, lines)


def whole(rows):
    """The summary where each row stands for an equal part of its subset's published number of prompts."""
    bench = build("benches", "rm_bench")
    cases, lines = zip(*rows, strict=True)
    own = bench.columns(cases, lines, unscored_is_right=False)
    subsets = [one.prompt.subset for one in cases]
    weight = [PUBLISHED[subset] // subsets.count(subset) for subset in subsets]
    for subset, number in PUBLISHED.items():
        weight[subsets.index(subset)] += number - number // subsets.count(subset) * subsets.count(subset)
    base = [[0, 0, 1, 0]] * len(cases)
    labels = [Label(one.prompt.id, Cell("uncategorised", one.prompt.subset)) for one in cases]
    table = np.concatenate([base, own], axis=1) * np.array(weight)[:, None]
    return bench.summarise(resample(Items(layout_of(labels), table, 20), seed=0))


PERFECT, REVERSED = ((4, 5, 6), (1, 2, 3)), ((1, 2, 3), (4, 5, 6))


def test_a_model_that_scores_by_style_alone_is_right_where_the_right_answer_is_the_finer():
    # Markdown 3, detailed 2, concise 1, right or wrong: below the diagonal right, on it tied (wrong), above wrong.
    found = whole([styled(name, name, (1, 2, 3), (1, 2, 3)) for name in PUBLISHED])
    values = {name: own["value"] for name, own in found["sections"].items()}
    assert values == {
        **dict.fromkeys(("chat", "math", "code", "safety"), pytest.approx(1 / 3)),
        "easy": 1.0,
        "normal": 0.0,
        "hard": 0.0,
    }
    assert found["overall"]["value"] == pytest.approx(1 / 3)
    assert found["overall"]["n"] == 1327


def test_safety_pools_its_subsets_by_prompt_and_overall_is_the_mean_of_domains():
    rows = [styled("c", "chat", *PERFECT), styled("m", "math", *REVERSED), styled("k", "code", *REVERSED)]
    rows += [styled("r", "safety-refuse", *PERFECT), styled("s", "safety-response", *REVERSED)]
    found = whole(rows)
    # All 284 refusals and none of 157 responses: 284 / 441, and not the mean of 1 and 0.
    assert found["sections"]["safety"]["value"] == pytest.approx(284 / 441)
    assert found["sections"]["safety"]["n"] == 441
    assert found["overall"]["value"] == pytest.approx((1 + 0 + 0 + 284 / 441) / 4)


def test_two_prompts_a_domain_have_no_headline_and_safety_no_value():
    rows = [styled(f"{name}{index}", name, *PERFECT) for name in PUBLISHED for index in range(2)]
    found = summary(rows)
    assert found["headline"] is None
    assert found["missing"] == {name: f"2 prompts, expected {number}" for name, number in PUBLISHED.items()}
    assert list(found["sections"]) == ["chat", "math", "code"]
    assert found["sections"]["chat"]["n"] == 2


def test_the_place_in_the_file_does_not_matter_but_the_style_does():
    one, line = styled("c", "chat", (1, 2, 3), (1, 2, 3))
    turned = msgspec.structs.replace(one, ranking=(tuple("cab"), tuple("fde")))
    assert summary([(turned, line)])["sections"] == summary([(one, line)])["sections"]


def test_a_domain_that_is_absent_leaves_no_headline():
    found = summary([styled("c", "chat", (1, 2, 3), (1, 2, 3)), styled("r", "safety-refuse", (1, 2, 3), (1, 2, 3))])
    assert set(found["sections"]) == {"chat"}
    assert set(found["missing"]) == set(PUBLISHED)
    assert "overall" not in found


def test_what_does_not_fit_is_refused():
    one, _ = styled("c", "chat", (1, 2, 3), (1, 2, 3))
    bench = build("benches", "rm_bench")
    doubled = (msgspec.structs.replace(one.responses[0], meta={"style": "detailed"}), *one.responses[1:])
    with pytest.raises(EvidenceError, match="not one right and one wrong answer of each style"):
        bench.normalize(msgspec.structs.replace(one, responses=doubled), "f")
    with pytest.raises(EvidenceError, match="did you mean 'chat'"):
        bench.normalize(styled("c", "chats", (1, 2, 3), (1, 2, 3))[0], "f")


def test_verdicts_on_the_nine_pairs_are_what_scores_say_of_them():
    one, line = styled("p", "chat", (3, 1, 2), (2, 0, 5))
    bench = build("benches", "rm_bench")
    better, worse = one.ranking
    right = {(good, bad): line.scores[good] > line.scores[bad] for good in better for bad in worse}
    own = bench.pair_columns([one], [right])
    assert own.tolist() == bench.columns([one], [line], unscored_is_right=False).tolist()
    assert own.sum() == 1 + sum(right.values())
