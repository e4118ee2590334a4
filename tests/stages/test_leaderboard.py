import json
import shutil

import msgspec
import numpy as np
import pytest

from headline_fixtures import FIRST, MISSING_OTHERS, OTHERS, OVERALL, translation_runs
from steelyard.core.errors import EvidenceError, FileError
from steelyard.core.types import Response
from steelyard.evaluation.leaderboard import NumberColumn, Unranked
from steelyard.io.cases import write_cases
from steelyard.plugins.benches.column_benches import PUBLISHED
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.leaderboard import Config, leaderboard
from steelyard.stages.score import score
from strategies import case

CONFIG = Config(num_resamples=500)
WHY_PART = ", ".join(f"{name} ({why})" for name, why in list(MISSING_OTHERS.items())[:3]) + " and 4 more"
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
    run = leaderboard([folders["coin"], folders["نموذج"], folders["好模型"]], out=tmp_path / "out", config=CONFIG)
    rows = {row.name: row for row in run.summary.rows}
    assert [row.name for row in run.summary.rows][-1] == "coin"
    assert {name: (row.best_rank, row.worst_rank, row.group) for name, row in rows.items()} == {
        "نموذج": (1, 2, "a"), "好模型": (1, 2, "a"), "coin": (3, 3, "b")
    }  # fmt: skip
    assert rows["coin"].rank_shares == (0.0, 0.0, 1.0)
    evaluated = json.loads((folders["coin"] / "run.json").read_text("utf-8"))["summary"]
    assert rows["coin"].value == pytest.approx(evaluated["accuracy"]["value"])
    assert NumberColumn(group="by_language", name="ar") in run.summary.columns
    assert len(run.summary.comparisons) == 3
    assert set(run.outputs) == {"leaderboard.html", "leaderboard.csv", "leaderboard.md"}
    for name in SHARES:
        assert all(name in (tmp_path / "out" / one).read_text("utf-8") for one in run.outputs)
    assert (
        leaderboard([folders["coin"], folders["نموذج"], folders["好模型"]], out=tmp_path / "out", config=CONFIG) == run
    )


def test_a_run_without_a_headline_is_listed_apart(folders, tmp_path):
    bench = folders["coin"].parent / "bench.jsonl"
    score(bench, tmp_path / "scored", model="longer")
    lines = [json.loads(one) for one in (tmp_path / "scored" / "scores.jsonl").read_text("utf-8").splitlines()]
    for line in lines:
        line |= {"scores": {"a": None, "b": 1.0}, "unscored": {"a": "refused"}}
    (tmp_path / "half.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    config = EvaluateConfig(num_resamples=5, baselines=(), allow_unscored=True)
    evaluate([bench], tmp_path / "half", config, scores=tmp_path / "half.jsonl")
    run = leaderboard([*folders.values(), tmp_path / "half"], out=tmp_path / "out", config=CONFIG)
    assert run.summary.partial == (Unranked(name="half", why="most pairs have no score or verdict"),)
    assert (run.counts.num_in, run.counts.num_used, run.counts.dropped) == (4, 3, {"no headline": 1})
    with pytest.raises(EvidenceError, match=r"two evaluations with a headline, got 1 of 2 \(half: most pairs"):
        leaderboard([folders["coin"], tmp_path / "half"], out=tmp_path / "two", config=CONFIG)


def test_unlike_evaluations_leave_nothing_behind(folders, tmp_path):
    bench = folders["coin"].parent / "bench.jsonl"
    config = EvaluateConfig(num_resamples=5, baselines=(), self_test=False)
    evaluate([bench], tmp_path / "untested", config, model="longer")
    with pytest.raises(EvidenceError, match='self_test: "on" in coin, "off" in longer'):
        leaderboard([folders["coin"], tmp_path / "untested"], out=tmp_path / "out", config=CONFIG)
    assert not (tmp_path / "out").exists()
    allowed = Config(num_resamples=100, allow_differing=("self_test",))
    run = leaderboard([folders["coin"], tmp_path / "untested"], out=tmp_path / "out", config=allowed)
    assert run.summary.differing == {"self_test": {'"on"': ("coin",), '"off"': ("longer",)}}


def test_what_is_no_evaluation_is_named(folders, tmp_path):
    with pytest.raises(EvidenceError, match="a folder is named twice"):
        leaderboard([folders["coin"], folders["coin"]], out=tmp_path / "out")
    with pytest.raises(FileError):
        leaderboard([folders["coin"], tmp_path / "nothing"], out=tmp_path / "out")


@pytest.mark.parametrize("record", [None, '{"broken"'])
def test_a_folder_next_to_the_evaluations_that_is_no_report_changes_nothing(folders, tmp_path, record):
    beside = folders["coin"].parent / "beside"
    beside.mkdir()
    (beside / "report.html").write_text("a page", encoding="utf-8")
    if record is not None:
        (beside / "run.json").write_text(record, encoding="utf-8")
    try:
        assert leaderboard(list(folders.values()), out=tmp_path / "out", config=CONFIG).summary.rows
    finally:
        shutil.rmtree(beside)


def test_the_headline_of_the_bench_ranks_and_not_accuracy(tmp_path):
    folders = translation_runs(tmp_path)
    run = leaderboard(list(folders.values()), out=tmp_path / "out", config=CONFIG)
    assert run.summary.ranked_by == "overall"
    assert [row.name for row in run.summary.rows] == ["broad", "narrow"]
    for row in run.summary.rows:
        evaluated = json.loads((folders[row.name] / "run.json").read_text("utf-8"))["summary"]
        assert evaluated["headline"] == "overall"
        assert row.value == pytest.approx(OVERALL[row.name])
        assert row.value == pytest.approx(evaluated["overall"]["value"])
    accuracy = {row.name: next(one.value for one in row.numbers if one.name == "accuracy") for row in run.summary.rows}
    assert accuracy["narrow"] > accuracy["broad"]
    assert "half_points" not in {one.group for one in run.summary.columns}, "no tie anywhere"
    assert "ranked by overall (the plain mean of the eight subsets)" in (tmp_path / "out/leaderboard.md").read_text()


def test_the_same_part_of_a_bench_has_no_headline_and_ranks_by_accuracy(tmp_path):
    folders = translation_runs(tmp_path, subsets=(FIRST,))
    run = leaderboard(list(folders.values()), out=tmp_path / "out", config=CONFIG)
    assert (run.summary.ranked_by, run.summary.missing) == ("accuracy", MISSING_OTHERS)
    for row in run.summary.rows:
        evaluated = json.loads((folders[row.name] / "run.json").read_text("utf-8"))["summary"]
        assert evaluated["headline"] is None
        assert row.value == pytest.approx(evaluated["accuracy"]["value"])
    for name in ("leaderboard.html", "leaderboard.md"):
        # Markdown escapes the underscores of a name.
        assert OTHERS[0] in (tmp_path / "out" / name).read_text("utf-8").replace("\\_", "_")


def test_an_evaluation_of_a_part_is_listed_apart_from_those_of_the_whole(tmp_path):
    for name in ("whole", "part"):
        (tmp_path / name).mkdir()
    folders = list(translation_runs(tmp_path / "whole").values())
    part = translation_runs(tmp_path / "part", subsets=(FIRST,))["broad"]
    run = leaderboard([*folders, part], out=tmp_path / "out", config=CONFIG)
    assert [row.name for row in run.summary.rows] == [f"broad ({folders[1]})", "narrow"]
    assert run.summary.partial == (Unranked(name=f"broad ({part})", why=WHY_PART),)
    assert WHY_PART in (tmp_path / "out/leaderboard.html").read_text("utf-8")


def test_a_bench_with_columns_of_its_own_ranks_by_them(tmp_path):
    rng = np.random.default_rng(1)
    responses = tuple(
        Response(id=name, text=name, meta={"style": style})
        for name, style in zip("abcdef", ("concise", "detailed", "markdown") * 2, strict=True)
    )
    cases = [
        msgspec.structs.replace(
            case(f"{domain}{index}", text=f"{domain} {index}", subset=domain, ranking=(tuple("abc"), tuple("def"))),
            responses=responses,
        )
        for domain, number in PUBLISHED.items()
        for index in range(number)
    ]
    write_cases(tmp_path / "bench.jsonl", cases)
    folders = []
    for name, ability in (("weak", 0.3), ("strong", 3.0)):
        lines = [
            {"prompt": one.prompt.id,
             "scores": dict(zip("abcdef", [*rng.normal(ability, 1, 3), *rng.normal(0, 1, 3)], strict=True))}
            for one in cases
        ]  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
        config = EvaluateConfig(bench_kind="rm_bench", num_resamples=50, baselines=())
        evaluate([tmp_path / "bench.jsonl"], tmp_path / name, config, scores=tmp_path / f"{name}.jsonl")
        folders.append(tmp_path / name)
    run = leaderboard(folders, out=tmp_path / "out", config=CONFIG)
    assert [(row.name, row.best_rank, row.worst_rank) for row in run.summary.rows] == [
        ("strong", 1, 1), ("weak", 2, 2)
    ]  # fmt: skip
    items = [json.loads(line) for line in (folders[0] / "items.jsonl").read_text("utf-8").splitlines()]
    own = {one["prompt"]: np.array(one["own"][:9]) for one in items}
    expected = np.mean(
        [
            np.mean([right for name, right in own.items() if name.startswith(domain)])
            for domain in ("chat", "math", "code", "safety")
        ]
    )
    assert run.summary.rows[1].value == pytest.approx(expected)


def test_a_folder_of_runs_and_a_pattern_stand_for_the_evaluations_there(folders, tmp_path, capsys):
    root = next(iter(folders.values())).parent
    score(root / "bench.jsonl", root / "scored", model="longer")
    named = leaderboard([folders[name] for name in sorted(SHARES)], out=tmp_path / "named", config=CONFIG)
    for out, place in (("folder", root), ("pattern", root / "*")):
        run = leaderboard([place], out=tmp_path / out, config=CONFIG)
        assert {row.name for row in run.summary.rows} == set(SHARES)
        assert [row.value for row in run.summary.rows] == [row.value for row in named.summary.rows]
        assert f"{place}: runs of evaluate: 3; other runs, left out: 1" in capsys.readouterr().err
    with pytest.raises(EvidenceError, match="named twice"):
        leaderboard([root, folders["coin"]], out=tmp_path / "out", config=CONFIG)
    for absent in (root / "scored*", root / "none*"):
        with pytest.raises(FileError, match="no finished run of `steelyard evaluate` is found by this pattern"):
            leaderboard([absent], out=tmp_path / "out", config=CONFIG)
