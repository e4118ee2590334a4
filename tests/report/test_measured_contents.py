import msgspec

from steelyard.core.plugins import build
from steelyard.core.types import Rating, Scores
from steelyard.evaluation.config import Config
from steelyard.evaluation.summary import evaluation_of, summarise
from steelyard.report.measured_contents import MoreMeasured
from strategies import case, judgment


def read(summary):
    return msgspec.convert(msgspec.json.decode(msgspec.json.encode(summary)), MoreMeasured, strict=False)


def test_what_an_evaluation_writes_is_read_whole():
    said = [judgment("a>b", judge=name) for name in ("ann", "bob")]
    ratings = tuple(Rating(response=name, rater="r", kind="human", dimension="d", value=1) for name in "ab")
    one = case("p", "ab", said, ranking=(("a",), ("b",)), ratings=ratings, language="zh", category=("数学",))
    lines = [Scores(prompt="p", scores={"a": 0.0, "b": 2.0})]
    summary = summarise(evaluation_of([one], lines, build("benches", "cases"), Config(num_resamples=5)))
    found = read(summary)
    # the file says b over a, against the ranking and against both people
    assert found.measures.kendall_tau.by_category["数学"].value == -1.0
    assert found.measures.top_1.chance.macro.value == 0.5
    assert [one.budget for one in found.measures.regret.tiers.curve] == [2]
    assert found.measures.regret.ratings["d"].of_all.model.micro.value == 0.0
    assert found.measures.length.matched.micro.n == 1
    assert (found.measures.human_ceiling.num_annotators, found.measures.human_ceiling.resolved.model.macro.value) == (
        2,
        0,
    )
    assert found.measures.calibration.curve[0].accuracy.value == 0.0
    assert found.measures.rewards.overall.mean.value == 1.0
    assert found.policies["half"].accuracy.value == 0.0
    assert found.weights["macro"] == {"数学": 1.0}


def test_an_evaluation_without_them_has_none():
    found = read({"model": "m", "accuracy": {"value": 0.5}})
    assert found == MoreMeasured()
    assert found.measures.kendall_tau is None
