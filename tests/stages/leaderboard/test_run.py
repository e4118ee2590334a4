import json

import numpy as np
import pytest

from steelyard.core.errors import EvidenceError, FileError
from steelyard.files.cases import write_cases
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.leaderboard import Config, leaderboard
from steelyard.stages.score import score
from strategies import case

CONFIG = Config(num_resamples=500)
SHARES = {"نموذج": 0.9, "好模型": 0.88, "coin": 0.5}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Score files in three scripts over 200 pairs of two languages: right in 90 %, in 88 % and in 50 % of them."""
    folder = tmp_path_factory.mktemp("leaderboard")
    rng = np.random.default_rng(0)
    cases = [
        case(f"p{index}", "ab", ranking=(("a",), ("b",)), language="ar" if index % 2 else "zh") for index in range(200)
    ]
    write_cases(folder / "bench.jsonl", cases)
    found = {}
    for name, share in SHARES.items():
        lines = [
            {"prompt": one.prompt.id, "language": one.prompt.language,
             "scores": {"a": float(rng.random() < share), "b": 0.5}}
            for one in cases
        ]  # fmt: skip
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
        config = EvaluateConfig(num_resamples=10, baselines=())
        evaluate([folder / "bench.jsonl"], folder / name, config, scores=folder / f"{name}.jsonl")
        found[name] = folder / name
    return found


def test_one_table_with_ranks_groups_and_languages(folders, tmp_path):
    run = leaderboard([folders["coin"], folders["نموذج"], folders["好模型"]], tmp_path / "out", CONFIG)
    rows = {row["name"]: row for row in run.summary["rows"]}
    assert [row["name"] for row in run.summary["rows"]][-1] == "coin"
    assert {name: (row["best_rank"], row["worst_rank"], row["group"]) for name, row in rows.items()} == {
        "نموذج": (1, 2, "a"), "好模型": (1, 2, "a"), "coin": (3, 3, "b")
    }  # fmt: skip
    assert rows["coin"]["rank_shares"] == [0.0, 0.0, 1.0]
    evaluated = json.loads((folders["coin"] / "run.json").read_text("utf-8"))["summary"]
    assert rows["coin"]["accuracy"] == pytest.approx(evaluated["accuracy"]["value"])
    assert {"group": "by_language", "name": "ar"} in run.summary["columns"]
    assert len(run.summary["comparisons"]) == 3
    assert set(run.outputs) == {"leaderboard.html", "leaderboard.csv", "leaderboard.md"}
    for name in SHARES:
        assert all(name in (tmp_path / "out" / one).read_text("utf-8") for one in run.outputs)
    assert leaderboard([folders["coin"], folders["نموذج"], folders["好模型"]], tmp_path / "out", CONFIG) == run


def test_a_run_without_a_headline_is_listed_apart(folders, tmp_path):
    bench = folders["coin"].parent / "bench.jsonl"
    score(bench, tmp_path / "scored", model="longer")
    lines = [json.loads(one) for one in (tmp_path / "scored" / "scores.jsonl").read_text("utf-8").splitlines()]
    lines[0] |= {"scores": {"a": None, "b": 1.0}, "unscored": {"a": "refused"}}
    (tmp_path / "half.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    config = EvaluateConfig(num_resamples=5, baselines=(), allow_unscored=True)
    evaluate([bench], tmp_path / "half", config, scores=tmp_path / "half.jsonl")
    run = leaderboard([*folders.values(), tmp_path / "half"], tmp_path / "out", CONFIG)
    assert run.summary["partial"] == [{"name": "half", "why": "some answers have no score or verdict"}]
    assert (run.counts.num_in, run.counts.num_used, run.counts.dropped) == (4, 3, {"no headline": 1})
    with pytest.raises(EvidenceError, match=r"1 of 2 evaluations have a headline \(half: some answers"):
        leaderboard([folders["coin"], tmp_path / "half"], tmp_path / "two", CONFIG)


def test_unlike_evaluations_leave_nothing_behind(folders, tmp_path):
    bench = folders["coin"].parent / "bench.jsonl"
    config = EvaluateConfig(num_resamples=5, baselines=(), self_test=False)
    evaluate([bench], tmp_path / "untested", config, model="longer")
    with pytest.raises(EvidenceError, match='self_test: "on" in coin, "off" in longer'):
        leaderboard([folders["coin"], tmp_path / "untested"], tmp_path / "out", CONFIG)
    assert not (tmp_path / "out").exists()
    allowed = Config(num_resamples=100, allow_differing=("self_test",))
    run = leaderboard([folders["coin"], tmp_path / "untested"], tmp_path / "out", allowed)
    assert run.summary["differing"] == {"self_test": {'"on"': ["coin"], '"off"': ["longer"]}}


def test_what_is_no_evaluation_is_named(folders, tmp_path):
    with pytest.raises(EvidenceError, match="one folder is named twice"):
        leaderboard([folders["coin"], folders["coin"]], tmp_path / "out")
    with pytest.raises(FileError):
        leaderboard([folders["coin"], tmp_path / "nothing"], tmp_path / "out")
