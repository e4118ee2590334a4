import json

import numpy as np
import pytest
from msgspec.structs import asdict

from steelyard.core.errors import ConfigError, EvidenceError, FileError, OutputError, RecordError
from steelyard.core.types import Case, Pair, Response
from steelyard.evaluation.failures import error_groups, pair_columns
from steelyard.evaluation.items import ScoredItem, read_items
from steelyard.evaluation.measures.accuracy import Range
from steelyard.io.cases import write_cases
from steelyard.io.hashing import file_hash
from steelyard.stages.evaluate import Config, evaluate
from steelyard.stages.score import score
from strategies import case, prompt

CASES = [
    case(
        f"{name}{index}",
        order,
        text=f"问题 {name}{index}",
        category=(category,),
        language="zh",
        ranking=tuple((one,) for one in "abc"),
    )
    for index, (order, category) in enumerate([("abc", "code"), ("cba", "code"), ("bac", "chat"), ("abc", "chat")])
    for name in "pq"
]
CONFIG = Config(num_resamples=50)


@pytest.fixture
def bench(tmp_path):
    write_cases(tmp_path / "bench.jsonl", [*CASES, case("alone", "ab", ranking=(("a", "b"),))])
    return tmp_path / "bench.jsonl"


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_model_and_its_own_scores_give_the_same(bench, tmp_path):
    by_model = evaluate([bench], tmp_path / "model", CONFIG, model="first")
    score(bench, tmp_path / "scored", model="first")
    by_scores = evaluate([bench], tmp_path / "scores", CONFIG, scores=tmp_path / "scored" / "scores.jsonl")
    different = ("model", "protocol", "self_test")
    by_model, by_scores = (asdict(run.summary) for run in (by_model, by_scores))
    assert {key: value for key, value in by_model.items() if key not in different} == {
        key: value for key, value in by_scores.items() if key not in different
    }
    for name in ("items.jsonl", "scores.jsonl"):
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "scores" / name).read_bytes()


def test_the_order_of_the_responses_is_what_the_first_baseline_sees(bench, tmp_path):
    # first scores by position. code: abc has all 3 pairs right, cba none; chat: bac 2 of 3, abc 3
    summary = evaluate([bench], tmp_path / "out", CONFIG, model="first").summary
    assert summary.by_category["code"].accuracy.value == pytest.approx(1 / 2)
    assert summary.by_category["chat"].accuracy.value == pytest.approx(5 / 6)
    assert summary.accuracy.value == pytest.approx(2 / 3)
    assert summary.baselines["first"].difference.value == 0.0
    # The model is its own baseline: no sample of prompts can make them differ.
    difference = summary.baselines["first"].difference
    assert (difference.low, difference.high, difference.method) == (0.0, 0.0, "equal scores")
    assert summary.baselines["random"].difference.low < summary.baselines["random"].difference.high
    assert set(summary.baselines) == {"longer", "shorter", "random", "first"}
    assert (summary.model, summary.bench, summary.protocol) == ("first", "bench", {"model": "first"})


def test_what_went_in_is_counted_and_the_items_add_up(bench, tmp_path):
    run = evaluate([bench], tmp_path / "out", CONFIG, model="first")
    assert (run.counts.num_in, run.counts.num_used, run.counts.dropped) == (9, 8, {"no comparable pair": 1})
    assert run.counts.noted == {"pairs": 24}
    items = rows(tmp_path / "out" / "items.jsonl")
    assert [row["prompt"] for row in items] == [one.prompt.id for one in CASES] + ["alone"]
    assert sum(row["num_pairs"] for row in items) == run.summary.accuracy_micro.n == 24
    correct = sum(row["num_correct"] for row in items)
    assert correct / 24 == pytest.approx(run.summary.accuracy_micro.value)
    assert items[-1]["exact_match"] is None
    # Trap: per-item files whose ids belong to other items. Each row carries the ranking and scores of its own case.
    by_id = {one.prompt.id: one for one in CASES}
    for row in items[:-1]:
        own = by_id[row["prompt"]]
        position = {response.id: place for place, response in enumerate(own.responses)}
        assert row["scores"] == {name: -float(place) for name, place in position.items()}
        assert tuple(map(tuple, row["ranking"])) == own.ranking


def test_a_bench_of_listed_pairs_without_any_ranking_is_evaluated(tmp_path):
    # Best-of-N regret has no N there: its curve is empty, and it was a crash.
    texts = (Response(id="a", text="a longer answer"), Response(id="b", text="short"), Response(id="c", text="so"))
    pairs = (Pair(better="a", worse="b"), Pair(better="c", worse="b"))
    cases = [Case(prompt=prompt(f"p{number}", "q"), responses=texts, pairs=pairs) for number in range(12)]
    write_cases(tmp_path / "pairs.jsonl", cases)
    summary = evaluate([tmp_path / "pairs.jsonl"], tmp_path / "out", CONFIG, model="longer").summary
    assert summary.accuracy_micro.value == pytest.approx(1 / 2)
    assert summary.measures.regret.tiers.curve == ()


def test_the_published_rule_counts_a_prompt_without_pairs(bench, tmp_path):
    run = evaluate([bench], tmp_path / "out", Config(metric_compat="cheems", num_resamples=5), model="first")
    assert run.summary.exact_match.n == 9
    assert run.summary.metric == "cheems"
    assert run.counts.dropped == {}


def test_the_ngram_baseline_comes_with_training_cases_and_is_an_input(bench, tmp_path):
    write_cases(tmp_path / "train.jsonl", [one for one in CASES if one.prompt.id != "p0"])
    run = evaluate([bench], tmp_path / "out", CONFIG, model="longer", train_cases=tmp_path / "train.jsonl")
    assert "ngram" in run.summary.baselines
    assert run.inputs["train_cases"].sha256 == file_hash(tmp_path / "train.jsonl")


def test_training_cases_that_are_broken_are_found_before_the_model_has_scored(bench, tmp_path):
    (tmp_path / "train.jsonl").write_text("{}\n")
    with pytest.raises(RecordError, match=r"train\.jsonl:1: Object missing required field"):
        evaluate([bench], tmp_path / "out", model="longer", train_cases=tmp_path / "train.jsonl")
    assert not (tmp_path / "out").exists()


def test_unscored_responses_are_refused_unless_asked_for(bench, tmp_path):
    lines = [{"prompt": one.prompt.id, "scores": dict.fromkeys("abc", 1.0)} for one in CASES]
    lines.append({"prompt": "alone", "scores": {"a": None, "b": 1.0}, "unscored": {"a": "refused"}})
    (tmp_path / "scores.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(EvidenceError, match=r"1 response has no score \(refused 1\)"):
        evaluate([bench], tmp_path / "out", CONFIG, scores=tmp_path / "scores.jsonl")
    assert not (tmp_path / "out" / "run.json").exists()
    allowed = Config(allow_unscored=True, num_resamples=5)
    run = evaluate([bench], tmp_path / "bounds", allowed, scores=tmp_path / "scores.jsonl")
    # The unscored response is in no pair, so the bounds meet.
    assert run.summary.accuracy.value == 0.0
    assert run.summary.bounds.accuracy == Range(low=0.0, high=0.0)
    assert run.summary.unscored.by_reason == {"refused": 1}


def test_what_is_too_long_is_unscored_without_leave_and_counted_everywhere(bench, tmp_path):
    lines = [{"prompt": one.prompt.id, "scores": dict(zip("abc", (3.0, 2.0, 1.0), strict=True))} for one in CASES]
    lines[0] |= {"scores": {"a": None, "b": 2.0, "c": 1.0}, "unscored": {"a": "too long"}}
    lines[1] |= {"cut": ["a", "c"]}
    lines.append({"prompt": "alone", "scores": {"a": 2.0, "b": 1.0}})
    (tmp_path / "scores.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run = evaluate([bench], tmp_path / "out", CONFIG, scores=tmp_path / "scores.jsonl")
    own = run.summary.coverage
    total = 3 * len(CASES) + 2
    assert (own.num_responses, own.num_cut, own.num_unscored) == (total, 2, 1)
    assert run.counts.noted["cut responses"] == 2
    assert run.counts.noted["unscored responses"] == 1
    assert run.summary.bounds.accuracy.low == run.summary.accuracy.value
    assert run.summary.bounds.accuracy.high > run.summary.accuracy.value
    items = [json.loads(line) for line in (tmp_path / "out" / "items.jsonl").read_text().splitlines()]
    assert items[0]["exact_match"] is False
    assert items[0]["num_unscored"] > 0


def test_an_equal_run_is_not_repeated_and_another_one_is_refused(bench, tmp_path):
    first = evaluate([bench], tmp_path / "out", CONFIG, model="first")
    assert evaluate([bench], tmp_path / "out", CONFIG, model="first") == first
    for config, model in ((Config(num_resamples=50, seed=1), "first"), (CONFIG, "longer")):
        with pytest.raises(OutputError):
            evaluate([bench], tmp_path / "out", config, model=model)


def test_a_renamed_file_that_thereby_changes_its_subset_is_another_run(bench, tmp_path):
    config = Config(bench_kind="cheemsbench", num_resamples=5)
    for name in ("open.jsonl", "human.jsonl"):
        (tmp_path / name).write_bytes(bench.read_bytes())
    run = evaluate([tmp_path / "open.jsonl"], tmp_path / "out", config, model="first")
    assert run.summary.missing["human_instruction"] == "0 prompts, expected 1,346"
    with pytest.raises(OutputError):
        evaluate([tmp_path / "human.jsonl"], tmp_path / "out", config, model="first")


def test_a_model_that_cannot_be_built_is_refused_before_anything_is_read_or_scored(tmp_path, capsys):
    (tmp_path / "base").mkdir()
    for settings, said in (({}, "needs a backbone"), ({"path": str(tmp_path / "base")}, "needs training cases")):
        with pytest.raises(ConfigError, match=said):
            # The bench does not even exist: nothing of it was opened.
            evaluate([tmp_path / "absent.jsonl"], tmp_path / "out", Config(model=settings), model="features")
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_is_refused(bench, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match="exactly one of model and scores"):
        evaluate([bench], out, CONFIG)
    with pytest.raises(ConfigError, match="exactly one of model and scores"):
        evaluate([bench], out, CONFIG, model="first", scores=bench)
    with pytest.raises(ConfigError, match=r"a file of lines is no model\n.*\n.*without a model: scores=得点\.jsonl"):
        evaluate([bench], out, CONFIG, model="得点.jsonl")
    with pytest.raises(ConfigError, match="no benchmark"):
        evaluate([], out, CONFIG, model="first")
    with pytest.raises(FileError, match="no such file"):
        evaluate([tmp_path / "absent.jsonl"], out, CONFIG, model="first")
    assert not out.exists()
    with pytest.raises(RecordError, match=r"bench\.jsonl:1"):
        evaluate([bench], out, CONFIG, scores=bench)
    with pytest.raises(EvidenceError, match="has no judgments"):
        evaluate([bench], tmp_path / "other", Config(pairs="judged"), model="first")


def test_a_model_that_is_taught_learns_from_the_training_cases(tmp_path):
    texts = [("a clear and kind answer", "no"), ("a clear answer to this", "no way"), ("kind and clear", "go away")] * 4
    path = tmp_path / "cases.jsonl"
    write_cases(
        path,
        [
            Case(
                prompt=prompt(f"p{index}", f"question {index}?"),
                responses=(Response(id="a", text=better), Response(id="b", text=worse)),
                ranking=(("a",), ("b",)),
            )
            for index, (better, worse) in enumerate(texts)
        ],
    )
    config = Config(num_resamples=5)
    summary = evaluate([path], tmp_path / "out", config, model="ngram", train_cases=path).summary
    assert summary.accuracy.value == summary.baselines["ngram"].accuracy.value > 0.5
    with pytest.raises(ConfigError, match="needs training cases"):
        evaluate([path], tmp_path / "untaught", config, model="ngram")


@pytest.mark.parametrize("categories", [("chat",), ("chat", "code", "math")])
def test_the_error_map_has_the_intervals_of_the_accuracy(categories, tmp_path):
    """Of prompts with 1 to 28 pairs: overall, by category and by language, one share has one interval on a page."""
    random = np.random.default_rng(5)
    cases, lines = [], []
    for index in range(60):
        letters = "abcdefgh"[: 2 + int(random.integers(7))]
        one = case(
            f"p{index}",
            letters,
            category=(categories[int(random.integers(len(categories)))],),
            language=("zh", "ar")[int(random.random() < 0.3)],
            ranking=tuple((letter,) for letter in letters),
        )
        cases.append(one)
        luck = random.normal(scale=0.5)
        scores = {letter: (0.7 + luck) * -place + 2 * random.normal() for place, letter in enumerate(letters)}
        lines.append({"prompt": one.prompt.id, "language": one.prompt.language, "scores": scores})
    write_cases(tmp_path / "cases.jsonl", cases)
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    run = evaluate([tmp_path / "cases.jsonl"], tmp_path / "out", Config(), scores=tmp_path / "scores.jsonl")
    errors = error_groups(pair_columns(enumerate(read_items(tmp_path / "out", ScoredItem))))
    rates = {group.key: group.rate for group in errors.groups} | {(None, None, None): errors.overall}
    shares = {(None, None, None): run.summary.accuracy_micro}
    if len(categories) > 1:
        shares |= {(name, None, None): group.accuracy for name, group in run.summary.by_category.items()}
    shares |= {(None, None, name): group.accuracy for name, group in run.summary.by_language.items()}
    assert set(shares) <= set(rates)
    for key, accuracy in shares.items():
        rate = rates[key]
        assert accuracy.value == pytest.approx(1 - rate.value)
        # 1,000 resamples know a standard error within 2.2%: of a half width of 0.1, 0.005 are two standard errors.
        assert (accuracy.low, accuracy.high) == pytest.approx((1 - rate.high, 1 - rate.low), abs=0.005)
