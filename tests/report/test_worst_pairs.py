import pytest
from msgspec.structs import replace

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.types import Judgment, Rating, Response
from steelyard.evaluation.config import Config
from steelyard.io.cases import write_cases
from steelyard.io.terminal_text import plain, width_of
from steelyard.report.worst_pairs import label_evidence, worst_lines, worst_record
from steelyard.stages.evaluate import evaluate
from steelyard.stages.inspect import inspect_worst
from strategies import case

RANKING = (("a",), ("b",))
REASON = Judgment(left="b", right="a", verdict="right", judge="标注员甲", kind="human", reason="第二个回答有错误。")
RATING = Rating(response="a", rater="bob", kind="human", dimension="helpfulness", value=4.0)


def texts(better, worse):
    return (Response(id="a", text=better), Response(id="b", text=worse))


@pytest.fixture
def evaluated(tmp_path):
    """The longer answer wins: wrong by 8 characters in p, by 2 in q, and right in r."""
    cases = [
        case("p", (), [REASON], ranking=RANKING, language="zh", text="为什么？"),
        case("q", (), ranking=RANKING, language="he", text="למה?"),
        case("r", (), ranking=RANKING),
    ]
    pairs = [("好", "不好不好不好不好不"), ("כן", "לא\x1b[31m"), ("yes, of course", "no")]
    cases = [replace(one, responses=texts(*pair)) for one, pair in zip(cases, pairs, strict=True)]
    write_cases(tmp_path / "bench.jsonl", cases)
    config = Config(num_resamples=20, self_test=False)
    evaluate([tmp_path / "bench.jsonl"], tmp_path / "run", config, model="longer")
    return tmp_path / "run"


def test_the_most_confident_errors_come_first_with_texts_and_the_evidence(evaluated):
    worst = inspect_worst(evaluated, 5)
    assert [(error.item.prompt, error.pair.margin) for error in worst.pairs] == [("p", -8.0), ("q", -5.0)]
    shown = [plain(line) for line in worst_lines(worst, 60)]
    assert shown[0].startswith("2 of 3 pairs are wrong (66.7%); too few for groups")
    text = "\n".join(plain(line) for line in worst_lines(worst, 100))
    assert text.index("不好不好") < text.index("כן")
    assert "label: worse < better, 标注员甲 (human): 第二个回答有错误。" in text
    assert "label: tier 1 above tier 2 (published ranking, without judgments)" in text
    assert "\x1b" not in text + "".join(shown)
    assert max(map(width_of, shown)) <= 60
    assert plain(worst_lines(worst, 1000)[-1]) == f"open one: steelyard inspect {evaluated} with id=ID"


def test_the_number_limits_the_errors_and_the_record_has_them(evaluated):
    record = worst_record(inspect_worst(evaluated, 1))
    (pair,) = record["pairs"]
    assert (record["num_wrong"], record["num_scored"]) == (2, 3)
    assert (pair["id"], pair["better"], pair["worse"], pair["lengths"]) == ("p", "a", "b", "shorter")
    assert pair["confidence"] == pytest.approx(8 / ((8**2 + 5**2 + 12**2) / 3) ** 0.5)


def test_errors_are_shown_without_texts_where_the_bench_is_gone(evaluated):
    scores = (evaluated.parent / "bench.jsonl").read_text(encoding="utf-8")
    (evaluated.parent / "bench.jsonl").write_text(scores.replace('"id":"p"', '"id":"other"'), encoding="utf-8")
    shown = "\n".join(plain(line) for line in worst_lines(inspect_worst(evaluated, 1), 80))
    assert "the text is not known here" in shown


def test_only_an_evaluation_has_worst_pairs(evaluated):
    with pytest.raises(EvidenceError, match="worst needs an evaluation"):
        inspect_worst(evaluated.parent / "bench.jsonl", 3)
    with pytest.raises(ConfigError, match="worst=0"):
        inspect_worst(evaluated, 0)


def test_ratings_and_tiers_are_evidence_where_nobody_judged_the_pair():
    tiers = (("a",), ("b",), ("c",))
    rated = case("p", "abc", ranking=tiers, ratings=(RATING,))
    assert label_evidence(rated, "a", "b") == ("better rated helpfulness 4, bob (human)",)
    assert label_evidence(rated, "b", "c") == ("tier 2 above tier 3 (published ranking, without judgments)",)
    judged = case("p", "abc", ["a>b", "b>c"], ranking=tiers)
    assert label_evidence(judged, "a", "c") == ("tier 1 above tier 3 (not judged directly)",)
    assert label_evidence(judged, "a", "b") == ("better > worse, j (human)",)
