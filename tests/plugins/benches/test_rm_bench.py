import msgspec
import pytest

from bench_items import bench_summary
from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.core.types import Response, Scores
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


def test_a_model_that_scores_by_style_alone_is_right_where_the_right_answer_is_the_finer():
    # Markdown 3, detailed 2, concise 1, right or wrong: below the diagonal right, on it tied (wrong), above wrong.
    rows = [styled(name, name, (1, 2, 3), (1, 2, 3)) for name in ("chat", "math", "code")]
    rows += [styled(name, name, (1, 2, 3), (1, 2, 3)) for name in ("safety-refuse", "safety-response")]
    found = summary(rows)
    values = {name: own["value"] for name, own in found["sections"].items()}
    assert values == {
        **dict.fromkeys(("chat", "math", "code", "safety"), pytest.approx(1 / 3)),
        "easy": 1.0,
        "normal": 0.0,
        "hard": 0.0,
    }
    assert found["overall"]["value"] == pytest.approx(1 / 3)


def test_safety_is_the_mean_of_its_halves_and_overall_that_of_domains():
    perfect, reversed_ = ((4, 5, 6), (1, 2, 3)), ((1, 2, 3), (4, 5, 6))
    rows = [styled("c", "chat", *perfect), styled("m", "math", *reversed_), styled("k", "code", *reversed_)]
    # Three right prompts in one half, one wrong in the other: 1/2, not 3/4.
    rows += [styled(f"r{index}", "safety-refuse", *perfect) for index in range(3)]
    rows += [styled("s", "safety-response", *reversed_)]
    found = summary(rows)
    assert found["sections"]["safety"]["value"] == pytest.approx(0.5)
    assert found["sections"]["safety"]["n"] == 4
    assert found["overall"]["value"] == pytest.approx((1 + 0 + 0 + 0.5) / 4)


def test_the_place_in_the_file_does_not_matter_but_the_style_does():
    one, line = styled("c", "chat", (1, 2, 3), (1, 2, 3))
    turned = msgspec.structs.replace(one, ranking=(tuple("cab"), tuple("fde")))
    assert summary([(turned, line)])["sections"] == summary([(one, line)])["sections"]


def test_a_domain_that_is_absent_leaves_no_headline():
    found = summary([styled("c", "chat", (1, 2, 3), (1, 2, 3)), styled("r", "safety-refuse", (1, 2, 3), (1, 2, 3))])
    assert set(found["sections"]) == {"chat"}
    assert set(found["missing"]) == {"math", "code", "safety"}
    assert "overall" not in found


def test_what_does_not_fit_is_refused():
    one, _ = styled("c", "chat", (1, 2, 3), (1, 2, 3))
    bench = build("benches", "rm_bench")
    doubled = (msgspec.structs.replace(one.responses[0], meta={"style": "detailed"}), *one.responses[1:])
    with pytest.raises(EvidenceError, match="not one right and one wrong answer of each style"):
        bench.prepared(msgspec.structs.replace(one, responses=doubled), "f")
    with pytest.raises(EvidenceError, match="did you mean 'chat'"):
        bench.prepared(styled("c", "chats", (1, 2, 3), (1, 2, 3))[0], "f")


def test_verdicts_on_the_nine_pairs_are_what_scores_say_of_them():
    one, line = styled("p", "chat", (3, 1, 2), (2, 0, 5))
    bench = build("benches", "rm_bench")
    better, worse = one.ranking
    right = {(good, bad): line.scores[good] > line.scores[bad] for good in better for bad in worse}
    own = bench.pair_columns([one], [right])
    assert own.tolist() == bench.columns([one], [line], unscored_is_right=False).tolist()
    assert own.sum() == 1 + sum(right.values())
