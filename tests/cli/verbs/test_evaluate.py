import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from example_folder import ROOT
from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError, FileError, UserError
from steelyard.evaluation.pair_verdicts import PairOutcomes
from steelyard.io.cases import write_cases
from steelyard.statistics.intervals import Estimate
from strategies import case


def ranked(id, order):
    return case(id, order, text=f"问题 {id}", category=("数学",), ranking=(("a",), ("b",), ("c",)))


@pytest.fixture
def files(tmp_path):
    for name in ("open", "human"):
        write_cases(tmp_path / f"{name}.jsonl", [ranked(f"{name}{order}", order) for order in ("abc", "bca", "cab")])
    lines = [
        {"prompt": f"{name}{order}", "scores": {"a": 3, "b": 2, "c": None}, "unscored": {"c": "cut"}}
        for name in ("open", "human")
        for order in ("abc", "bca", "cab")
    ]
    (tmp_path / "scores.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def run(files, *arguments):
    given = ["evaluate", "--out", str(files / "out"), "--set", "num_resamples=20", *arguments]
    found = CliRunner().invoke(build_app(), given, catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


def both(files):
    return [part for name in ("open", "human") for part in ("--bench", f"cheemsbench={files / f'{name}.jsonl'}")]


def test_printed_summary(files):
    shown = run(files, *both(files), "--model", "first")
    # abc: 3 of 3 right; bca: b before a, c before a, b > c holds: 1 of 3; cab: a > b holds: 1 of 3. Mean 5/9; exact 1/3
    sentence, *rest = shown.splitlines()
    assert sentence.startswith("first scores the better answer higher in 55.6% of pairs (95% interval ")
    assert rest[0].startswith("For 33.3% of prompts, all pairs of answers are in the right order")
    assert any(line.startswith("The best baseline, “") for line in rest)
    assert rest[-2].startswith("6 in, 6 used")
    assert rest[-1].startswith("next: steelyard report ")


def test_verbose_prints_every_figure(files):
    shown = run(files, *both(files), "--model", "first", "--verbose")
    assert "no overall score; incomplete: open_prompt (3 prompts, expected 1,146), human_instruction (3" in shown
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert any(row.startswith("open_prompt subset 9 55.6% [") for row in rows)
    assert any(row.startswith("longer answer 0.0% [") for row in rows)
    assert "数学" in rows
    assert "Tied scores: wrong, half, right" in rows
    assert "6 in, 6 used" in shown


def test_json_run_records_every_option(files):
    write_cases(files / "train.jsonl", [ranked(f"train{index}", "abc") for index in range(4)])
    shown = run(
        files, "--bench", str(files / "open.jsonl"), "--model", "random", "--set", "model.seed=2", "--set", "seed=5",
        "--set", "matched_ratio=1.25",
        "--train-cases", str(files / "train.jsonl"), "--baselines", "ngram,first", "--pairs", "tiers",
        "--metric-compat", "cheems", "--json",
    )  # fmt: skip
    found = json.loads(shown)
    assert found["config"] | {"bench_kind": "cases"} == {
        "bench_kind": "cases",
        "bench": {},
        "model_kind": "random",
        "model": {"seed": 2},
        "baselines": ["ngram", "first"],
        "pairs": "tiers",
        "metric_compat": "cheems",
        "allow_unscored": False,
        "allow_overlap": False,
        "self_test": True,
        "matched_ratio": 1.25,
        "width": None,
        "num_resamples": 20,
        "seed": 5,
    }
    assert list(found["summary"]["baselines"]) == ["ngram", "first"]


def test_unscored_pairs_give_bounds(files):
    shown = run(files, *both(files), "--scores", str(files / "scores.jsonl"), "--allow-unscored", "--baselines", "none",
                "--verbose")  # fmt: skip
    # a > b is right and the two pairs with c are open: 1/3 to 1
    assert shown.startswith("scores has no headline: 6 answers have no score (cut 6).")
    assert "With unscored pairs counted as wrong and as right, accuracy lies between 33.3% and 100.0%." in shown
    assert "baseline" not in shown


def test_self_test_is_recorded(files):
    tested = json.loads(run(files, *both(files), "--model", "longer", "--json"))["summary"]["self_test"]
    assert tested["state"] == "passed"
    assert tested["tests"]["alone"]["figures"]["largest_difference"] == 0.0
    skipped = json.loads(run(files, *both(files), "--model", "longer", "--no-self-test", "--json", "--force"))
    assert (skipped["summary"]["self_test"], skipped["config"]["self_test"]) == ({"state": "off"}, False)


def test_missing_subset_is_named(files):
    shown = run(files, "--bench", f"cheemsbench={files / 'open.jsonl'}", "--model", "first")
    assert "human_instruction (0 prompts, expected 1,346)" in shown


def test_two_bench_kinds_are_refused(files):
    with pytest.raises(ConfigError, match="two kinds of bench"):
        run(files, "--bench", str(files / "human.jsonl"), *both(files), "--model", "first")


def test_file_name_may_have_an_equals_sign(files):
    (files / "a=b.jsonl").write_bytes((files / "open.jsonl").read_bytes())
    assert "first scores the better answer higher" in run(
        files, "--bench", str(files / "a=b.jsonl"), "--model", "first"
    )


def rmb_folder(files):
    """Write the first three rows of RMB's golden file as files of one name in the folders of their scenarios."""
    rows = json.loads((ROOT / "tests/golden/formats/rmb.json").read_text(encoding="utf-8"))[:3]
    for row in rows:
        (files / "评测 RMB" / row["category_path"]).mkdir(parents=True)
        (files / "评测 RMB" / row["category_path"] / "rows.json").write_text(json.dumps([row]), encoding="utf-8")
    return files / "评测 RMB"


def test_folder_and_pattern_are_all_their_files(files, monkeypatch):
    rmb = rmb_folder(files)
    monkeypatch.chdir(files)
    shown = json.loads(run(files, "--bench", f"rmb={rmb}", "--model", "longer", "--json"))
    benches = {role: file["path"] for role, file in shown["inputs"].items() if role.startswith("bench.")}
    paths = ["BoN_set/Harmlessness/S1", "BoN_set/Helpfulness/Code/Documentation", "Pairwise_set/Helpfulness/Open QA"]
    assert [path.startswith(str(rmb / start)) for path, start in zip(benches.values(), paths, strict=True)] == [
        True
    ] * 3
    assert list(benches) == ["bench.1", "bench.2", "bench.3"]
    again = run(files, "--bench", "rmb=评测 RMB/**/*.json", "--model", "longer", "--json")
    assert json.loads(again)["summary"] == shown["summary"]  # finished already: equal content in equal order
    two = json.loads(run(files, "--bench", "rmb=*/BoN*/**", "--model", "longer", "--json", "--force"))
    assert two["counts"]["num_in"] == 2


def test_out_below_the_folder_of_the_bench_is_not_read(files):
    folder = files / "cases"
    folder.mkdir()
    (files / "open.jsonl").rename(folder / "open.jsonl")
    for _ in range(2):
        words = ["evaluate", "--bench", str(folder), "--out", str(folder / "out"), "--model", "first", "--json"]
        found = CliRunner().invoke(build_app(), words, catch_exceptions=False)
        assert json.loads(found.stdout)["counts"]["num_in"] == 3


def test_broken_file_of_a_folder_is_named(files):
    rmb = rmb_folder(files)
    broken = rmb / "BoN_set" / "Harmlessness" / "S1" / "rows.json"
    content = broken.read_text(encoding="utf-8")
    for text, error in ((content[:-9], "cut off"), (content.replace("BoN_set/", "Third/"), "of subset 'Third'")):
        broken.write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=error) as caught:
            run(files, "--bench", f"rmb={rmb}", "--model", "longer")
        assert str(caught.value).startswith(str(broken))


def test_folder_without_data_names_what_counts(files):
    rmb = rmb_folder(files)
    with pytest.raises(FileError, match=r"no data file is found .* other files: \.json 3") as caught:
        run(files, "--bench", str(rmb), "--model", "longer")
    assert caught.value.allowed == "names in .jsonl, .parquet"
    assert "--bench KIND=FOLDER" in caught.value.do
    with pytest.raises(FileError, match="no file is found by this pattern") as caught:
        run(files, "--bench", f"rmb={rmb}/*.json", "--model", "longer")
    assert caught.value.allowed == "names in .jsonl, .json, .parquet, .tsv, .csv"


def test_file_named_twice_is_refused(files):
    rmb = rmb_folder(files)
    with pytest.raises(ConfigError, match=r"S1.rows\.json: the benchmark file is found twice: by .* and by "):
        run(files, "--bench", f"rmb={rmb}/BoN_set", "--bench", f"rmb={rmb}", "--model", "longer")


def test_misspelt_choices_are_refused(files):
    for option, value in (("--pairs", "tier"), ("--metric-compat", "cheem")):
        with pytest.raises(ConfigError):
            run(files, "--bench", str(files / "open.jsonl"), "--model", "first", option, value)


NOTHING = Estimate(None, None, None, 0)


def estimate(number):
    return Estimate(number, number - 0.1, number + 0.1, 10)


def policy(accuracy, exact_match=None):
    share = None if exact_match is None else estimate(exact_match)
    return SimpleNamespace(overall=None, accuracy=estimate(accuracy), exact_match=share)


def judged_summary(accuracy):
    """The fields of a summary that tell how ties and missing verdicts count."""
    return SimpleNamespace(
        outcomes=PairOutcomes(
            num_pairs=5, win=3, loss=0, tie=0, unparsed=0, refused=0, cut_off=2, failed=0, by_language={}
        ),
        accuracy=accuracy,
        policies={
            "wrong": policy(0.6, 0.5),
            "half": policy(0.8),
            "right": policy(1.0, 1.0),
        },
        judges={},
    )
