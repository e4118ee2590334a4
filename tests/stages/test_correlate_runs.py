"""What `correlate` reads from runs of other verbs: evaluations beside best-of-n, leaderboards, tables of languages."""

import json
import shutil

import msgspec
import numpy as np
import pytest
from scipy import stats

from each_value import each
from evaluated_languages import evaluated_languages
from steelyard.core.errors import ConfigError, EvidenceError, FileError
from steelyard.core.types import Rating, Response
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import read_run
from steelyard.stages.best_of_n import Config as BestOfNConfig
from steelyard.stages.best_of_n import best_of_n
from steelyard.stages.correlate import Config, correlate
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.languages import Config as LanguagesConfig
from steelyard.stages.languages import languages
from steelyard.stages.leaderboard import Config as LeaderboardConfig
from steelyard.stages.leaderboard import leaderboard
from steelyard.stages.resolve import resolve
from steelyard.stages.score import score
from strategies import case

FEW = Config(num_resamples=40)
MODELS = ("longer", "shorter", "first", "random")


def rated_case(name, rng):
    """A case of four responses of random lengths: a ranking of people, and ratings that follow the length loosely."""
    lengths = rng.permutation([3, 9, 15, 40])
    made = case(name, "abcd", judgments=["a>b", "b>c", "c>d"], ranking=(("a",), ("b",), ("c",), ("d",)))
    responses = tuple(Response(id=one, text="词 " * int(size)) for one, size in zip("abcd", lengths, strict=True))
    ratings = tuple(
        Rating(response=one, rater="r", kind="human", dimension="quality", value=float(size + rng.normal(0, 20)))
        for one, size in zip("abcd", lengths, strict=True)
    )
    return msgspec.structs.replace(made, responses=responses, ratings=ratings)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Four models, evaluated on one file and scored on another; their scores are selected by, among four answers."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    for name in ("bench", "policy"):
        write_cases(folder / f"{name}.jsonl", [rated_case(f"{name}{index}", rng) for index in range(30)])
    config = EvaluateConfig(num_resamples=10, baselines=())
    for model in MODELS:
        evaluate([folder / "bench.jsonl"], folder / "evaluated" / model, config, model=model)
        score(folder / "policy.jsonl", folder / "scored" / model, model=model)
        best_of_n(
            folder / "policy.jsonl",
            folder / "scored" / model / "scores.jsonl",
            folder / "best" / f"run-{model}",
            BestOfNConfig(num_resamples=20, gold="ratings"),
        )
    return folder


def test_folders_of_evaluations_and_of_best_of_n_are_matched_by_the_model_that_scored(tmp_path, made):
    run = correlate([made / "evaluated"], outcomes=[made / "best"], out=tmp_path / "out", config=FEW)
    assert run.summary.outcomes == ("best of 4: ratings (quality, human)",)
    assert {model.name for model in run.summary.models} == set(MODELS)
    (correlation,) = run.summary.correlations
    sides = [], []
    for model in MODELS:
        sides[0].append(read_run(made / "evaluated" / model).summary["accuracy"]["value"])
        sides[1].append(read_run(made / "best" / f"run-{model}").summary["curve"]["points"][-1]["chosen"]["value"])
    assert correlation.spearman.value == pytest.approx(stats.spearmanr(*sides).statistic)
    assert correlation.pearson.value == pytest.approx(stats.pearsonr(*sides).statistic)
    assert correlation.over_items == ("benches",)


def test_the_n_of_best_of_n_is_chosen_and_an_unknown_one_refused(tmp_path, made):
    config = Config(num_resamples=40, n=2)
    run = correlate([made / "evaluated"], outcomes=[made / "best"], out=tmp_path / "two", config=config)
    expected = read_run(made / "best" / "run-longer").summary["curve"]["points"][1]
    assert expected["n"] == 2
    by_name = {model.name: model.outcomes for model in run.summary.models}
    assert by_name["longer"] == {"best of 2: ratings (quality, human)": expected["chosen"]["value"]}
    with pytest.raises(EvidenceError, match="no point at N = 9"):
        correlate([made / "evaluated"], outcomes=[made / "best"], out=tmp_path / "no", config=Config(n=9))
    assert not (tmp_path / "no").exists() or not any((tmp_path / "no").iterdir())


def test_scores_that_were_overwritten_do_not_name_the_model(tmp_path, made):
    """The folder of a run says which model it is, where the scores beside the record are no longer those it used."""
    best = []
    for model in MODELS:
        shutil.copytree(made / "scored" / model, tmp_path / "scored" / model)
        scores = tmp_path / "scored" / model / "scores.jsonl"
        best_of_n(made / "policy.jsonl", scores, tmp_path / "best" / f"of-{model}", BestOfNConfig(gold="ratings"))
        best.append(tmp_path / "best" / f"of-{model}")
    changed = tmp_path / "scored" / "longer" / "scores.jsonl"
    changed.write_text(changed.read_text("utf-8") + "\n", "utf-8")
    run = correlate([made / "evaluated"], outcomes=best, out=tmp_path / "out", config=FEW)
    assert run.summary.unmatched_benches == ("longer",)
    assert run.summary.unmatched_outcomes == ("of-longer",)
    assert run.counts.dropped == {"in benches alone": 1, "in outcomes alone": 1}


def test_curves_to_different_largest_n_are_refused_with_the_smaller_one(tmp_path, made):
    shutil.copytree(made / "best", tmp_path / "best")
    best_of_n(
        made / "policy.jsonl",
        made / "scored" / "random" / "scores.jsonl",
        tmp_path / "best" / "run-random",
        BestOfNConfig(gold="ratings", largest=3),
        force=True,
    )
    with pytest.raises(EvidenceError, match=r"the largest N is 3, and 4 in .*run-first") as caught:
        correlate([made / "evaluated"], outcomes=[tmp_path / "best"], out=tmp_path / "out", config=FEW)
    assert "steelyard best-of-n with largest=3" in str(caught.value)


def test_a_curve_on_fewer_prompts_is_counted(tmp_path, made):
    """One model has no score for the answers of one prompt: its mean is over the others."""
    shutil.copytree(made / "best", tmp_path / "best")
    lines = (made / "scored" / "random" / "scores.jsonl").read_text("utf-8").splitlines()
    first = json.loads(lines[0])
    unscored = {"scores": dict.fromkeys(first["scores"]), "unscored": dict.fromkeys(first["scores"], "too long")}
    scores = tmp_path / "random.jsonl"
    scores.write_text("\n".join([json.dumps({**first, **unscored}), *lines[1:]]) + "\n", "utf-8")
    config = BestOfNConfig(gold="ratings", largest=4)
    shutil.rmtree(tmp_path / "best" / "run-random")
    best_of_n(made / "policy.jsonl", scores, tmp_path / "best" / "random", config)
    run = correlate([made / "evaluated"], outcomes=[tmp_path / "best"], out=tmp_path / "out", config=FEW)
    assert run.counts.noted == {"best-of-n on fewer prompts": 1}
    assert run.counts.num_used == 4


def test_runs_without_a_value_of_a_model_are_refused_with_the_verb_that_has_one(tmp_path, made):
    scores = made / "scored" / "longer" / "scores.jsonl"
    best_of_n(made / "policy.jsonl", scores, tmp_path / "chosen", BestOfNConfig(gold="none"))
    resolve(made / "policy.jsonl", tmp_path / "resolved")
    for folder, error, message in (
        (tmp_path / "chosen", EvidenceError, "without gold values.*steelyard best-of-n"),
        (made / "scored" / "longer", FileError, "a run of score has no value.*steelyard evaluate"),
        (tmp_path / "resolved", FileError, "a run of resolve has no value.*steelyard evaluate"),
        (tmp_path / "absent", FileError, "there is no such file"),
    ):
        with pytest.raises(error, match=f"(?s){message}"):
            correlate([made / "evaluated"], outcomes=[folder], out=tmp_path / "out", config=FEW)
    with pytest.raises(FileError, match="no finished run of `steelyard evaluate` or `steelyard best-of-n`"):
        correlate([made / "scored"], outcomes=[made / "best"], out=tmp_path / "out", config=FEW)


def test_a_leaderboard_is_a_table_with_the_values_of_its_evaluations(tmp_path, made):
    folders = [made / "evaluated" / model for model in MODELS]
    leaderboard(folders, out=tmp_path / "board", config=LeaderboardConfig(num_resamples=50))
    by_board = correlate([tmp_path / "board"], outcomes=[made / "best"], out=tmp_path / "out", config=FEW).summary
    by_runs = correlate(folders, outcomes=[made / "best"], out=tmp_path / "runs", config=FEW).summary
    values = [{model.name: model.benches for model in each.models} for each in (by_board, by_runs)]
    assert values[0] == {name: pytest.approx(numbers) for name, numbers in values[1].items()}
    assert by_board.correlations[0].over_items == ()


def test_a_leaderboard_of_two_benches_is_benches_and_outcomes_by_its_columns(tmp_path, made):
    rng = np.random.default_rng(1)
    write_cases(tmp_path / "other.jsonl", [rated_case(f"o{index}", rng) for index in range(20)])
    config = EvaluateConfig(num_resamples=10, baselines=())
    folders = [made / "evaluated" / model for model in MODELS]
    for model in MODELS[:3]:
        evaluate([tmp_path / "other.jsonl"], tmp_path / model, config, model=model)
        folders.append(tmp_path / model)
    board = tmp_path / "board"
    leaderboard(folders, out=board, config=LeaderboardConfig(num_resamples=50))
    benches = [column["bench"] for column in read_run(board).summary["columns"] if column.get("is_headline")]
    assert len(benches) == 2
    run = correlate([board], outcomes=[board], out=tmp_path / "out", config=Config(columns=(benches[0],)))
    assert (run.summary.benches, run.summary.outcomes) == ((benches[0],), (benches[1],))
    assert run.summary.unmatched_benches == ("random",)
    assert run.summary.empty == (f"{board}/run.json random {benches[1]}",)
    with pytest.raises(ConfigError, match="the same table"):
        correlate([board], outcomes=[board], out=tmp_path / "same")
    with pytest.raises(ConfigError, match=rf"(?s)no table has the column 'nothing'.*{benches[0]}"):
        correlate([board], outcomes=[board], out=tmp_path / "no", config=Config(columns=("nothing",)))


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """Evaluations of four models in three languages, whose shares of right answers differ."""
    folder = tmp_path_factory.mktemp("languages")
    shares = {"a": (2, 1, 3), "b": (4, 2, 2), "c": (6, 4, 5), "d": (8, 6, 4)}
    return [
        evaluated_languages(
            folder,
            name,
            {lang: "r" * n + "w" * (8 - n) for lang, n in zip(("en", "he", "zh"), numbers, strict=True)},
        )
        for name, numbers in shares.items()
    ]


def test_a_table_of_languages_has_a_column_a_language_and_the_mean(tmp_path, spoken):
    languages(spoken, out=tmp_path / "table", config=LanguagesConfig(num_resamples=20))
    table = tmp_path / "table"
    run = correlate([table], outcomes=[table], out=tmp_path / "out", config=Config(columns=("en",)))
    assert run.summary.outcomes == ("he", "zh", "mean over languages")
    by_outcome = {each.outcome: each.pearson.value for each in run.summary.correlations}
    assert by_outcome["he"] == pytest.approx(stats.pearsonr([2, 4, 6, 8], [1, 2, 4, 6]).statistic)
    assert by_outcome["zh"] == pytest.approx(stats.pearsonr([2, 4, 6, 8], [3, 2, 5, 4]).statistic)
    # As `languages` itself correlates English with the mean.
    own = read_run(table).summary["pearson"]["value"]
    assert by_outcome["mean over languages"] == pytest.approx(own)


def test_languages_of_one_model_are_refused_with_the_table_of_several(tmp_path, spoken):
    languages(spoken[:1], out=tmp_path / "one", config=LanguagesConfig(num_resamples=20))
    with pytest.raises(FileError, match=r"(?s)a run of languages has no value.*several evaluations together"):
        correlate([tmp_path / "one"], outcomes=spoken, out=tmp_path / "out", config=FEW)


@each("name", ["board", "table"])
def test_a_record_that_is_cut_is_refused(tmp_path, spoken, name):
    if name == "board":
        leaderboard(spoken, out=tmp_path / name, config=LeaderboardConfig(num_resamples=20))
    else:
        languages(spoken, out=tmp_path / name, config=LanguagesConfig(num_resamples=20))
    record = tmp_path / name / "run.json"
    kept = json.loads(record.read_text("utf-8"))
    del kept["summary"]["bench"]
    record.write_text(json.dumps(kept), "utf-8")
    with pytest.raises(FileError, match="not the record of a run"):
        correlate([tmp_path / name], outcomes=spoken, out=tmp_path / "out", config=FEW)


def test_benches_in_files_of_stages_have_the_names_of_their_folders(tmp_path, made):
    rng = np.random.default_rng(2)
    config = EvaluateConfig(num_resamples=10, baselines=())
    for labels in ("people", "判官"):
        (tmp_path / labels).mkdir()
        (tmp_path / labels / "run.json").touch()
        write_cases(tmp_path / labels / "cases.jsonl", [rated_case(f"p{index}", rng) for index in range(9)])
        for model in MODELS:
            evaluate([tmp_path / labels / "cases.jsonl"], tmp_path / "on" / labels / model, config, model=model)
    sides = [tmp_path / "on" / labels for labels in ("people", "判官")]
    run = correlate(sides, outcomes=[made / "best"], out=tmp_path / "out", config=FEW)
    assert run.summary.benches == ("people", "判官")
    assert {model.name for model in run.summary.models} == set(MODELS)
