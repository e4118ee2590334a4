"""Several evaluations by language: values by hand, what all models share, two translations, and what is refused."""

import json
import shutil

import pytest
from msgspec.structs import replace

from evaluated_languages import evaluated_languages
from steelyard.core.errors import ConfigError, EvidenceError, FileError
from steelyard.evaluation.evaluations import read_evaluation
from steelyard.evaluation.parallel_runs import kind_of_model
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.languages import Config, languages
from steelyard.views.language_table import VIEW
from steelyard.views.view import NO_SOURCES, StageRun

# Even items are of section a, odd ones of section b.
X = {"en": "rrrrrrrw", "he": "rwrwrrww", "ar": "rrrrwwww"}
Y = {"en": "rrrrrrrr", "he": "rrrrrrrr", "ar": "rrrrrrrr"}
Z = {"en": "rrrrwwww", "he": "wwwwwwww", "ar": "rwrwrwrw"}
FEW = Config(num_resamples=40)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [evaluated_languages(folder, name, outcomes) for name, outcomes in (("x", X), ("y", Y), ("z", Z))]


@pytest.fixture(scope="module")
def table(runs, tmp_path_factory):
    return languages(runs, out=tmp_path_factory.mktemp("table") / "out", config=FEW).summary


def rows_of(table):
    return {row.model: row for row in table.models}


def test_three_models_in_three_languages_and_two_sections_by_hand(table):
    assert [row.model for row in table.models] == ["y", "x", "z"]
    assert (table.num_shared, table.baseline_language) == (8, "en")
    x, z = rows_of(table)["x"], rows_of(table)["z"]
    # x has 4/4 and 3/4 right in English, 3/4 and 1/4 in Hebrew, 2/4 and 2/4 in Arabic.
    assert (x.english.value, x.values["he"].value, x.values["ar"].value, x.mean.value) == (0.875, 0.5, 0.5, 0.5)
    assert x.variance == 0
    assert x.drop.absolute.value == pytest.approx(0.375)
    assert x.drop.relative.value == pytest.approx(3 / 7)
    assert {name: drop.absolute.value for name, drop in x.drop.sections.items()} == {"a": 0.375, "b": 0.375}
    # z has 1/2 right in English, none in Hebrew, 4/4 and 0/4 in Arabic; 0 and 50 points have the variance 25² + 25².
    assert (z.english.value, z.values["he"].value, z.values["ar"].value, z.mean.value) == (0.5, 0.0, 0.5, 0.25)
    assert z.variance == pytest.approx(1250.0)
    assert (z.best, z.worst) == (("ar",), ("he",))
    assert (x.best, x.worst) == ((), ()), "all languages are equal"
    assert {name: drop.absolute.value for name, drop in z.drop.sections.items()} == {"a": 0.0, "b": 0.5}
    assert table.sections["a"].value == pytest.approx(0.375 / 3)
    assert table.sections["b"].value == pytest.approx(0.875 / 3)
    for row in table.models:
        for estimate in (row.english, row.mean, *row.values.values()):
            assert estimate.low <= estimate.value <= estimate.high


def test_the_page_has_relative_drops_by_section_too(table):
    """Table 3 of the paper is relative to English, and the page had the drops in points alone."""
    panels = {panel.note: panel for panel in VIEW.panels(StageRun("out", None, table), NO_SOURCES)}
    # x falls from 4/4 to 5/8 in section a, and from 3/4 to 3/8 in section b: from 7/8 to 4/8 on average.
    for note, drops in (
        ("note_drops_by_section", ("+37.5", "+37.5")),
        ("note_relative_drops", ("42.9%", "37.5%", "50.0%")),
    ):
        (numbers,) = panels[note].tables
        assert [row[1:] for row in numbers.table.rows if row[0] == "x"] == [drops]


def test_means_over_models_by_language_and_group_by_hand(table):
    assert table.columns["he"].mean.value == pytest.approx((0.5 + 1 + 0) / 3)
    assert table.columns["ar"].mean.value == pytest.approx((0.5 + 1 + 0.5) / 3)
    assert table.columns["he"].standard_deviation == pytest.approx(0.5)
    assert table.columns["he"].drop.value == pytest.approx((0.875 + 1 + 0.5) / 3 - 0.5)
    semitic = table.kin["subgroup"]["Semitic"]
    assert semitic.languages == ("ar", "he")
    assert semitic.mean.value == table.kin["family"]["Afro-Asiatic"].mean.value == pytest.approx((0.5 + 2 / 3) / 2)
    assert {name: group.mean.value for name, group in table.kin["script"].items()} == pytest.approx(
        {"Hebrew": 0.5, "Arabic": 2 / 3}
    )
    assert table.kinds == {}, "a score file has no kind of model"


def test_kappa_has_its_spread_level_and_majority_and_is_undefined_for_one_label(table):
    x, y = (rows_of(table)[name].kappa for name in "xy")
    # x agrees in five of eight items; by chance 7/8 · 1/2 + 1/8 · 1/2 = 1/2: (5/8 - 1/2) / (1/2).
    assert x.by_language == pytest.approx({"he": 0.25, "ar": 0.25})
    assert (x.mean.value, x.spread, x.agreement) == (0.25, 0.0, 0.625)
    assert x.mean.n == 2
    # Of sixteen labels of English and a language eleven are right.
    assert x.majority_share == 11 / 16
    assert {name: number for name, number in x.levels.items() if number} == {"minimal": 2}
    assert y.by_language == {"he": None, "ar": None}
    assert (y.mean.value, y.spread) == (None, None)
    assert y.mean.why == "one label is that of all items"
    assert sum(y.levels.values()) == 0
    assert (y.agreement, y.majority_share) == (1.0, 1.0)
    assert table.columns["he"].kappa is None, "a mean that leaves a model out would be another one"


def test_few_models_are_no_evidence_of_a_correlation(table):
    assert table.pearson.why == table.spearman.why == "fewer than 8 models"
    assert table.spearman.value == pytest.approx(1.0)
    assert table.pearson.low is None


def test_the_order_of_the_runs_has_no_influence(runs, table, tmp_path):
    assert languages(runs[::-1], out=tmp_path / "out", config=FEW).summary == table


def test_a_row_has_the_values_of_the_run_alone(runs, table, tmp_path):
    for folder in runs:
        alone = languages([folder], out=tmp_path / folder.name, config=FEW).summary
        row = rows_of(table)[folder.name]
        assert row.english.value == alone.languages["en"].overall.value
        for name in ("he", "ar"):
            assert row.values[name].value == alone.languages[name].overall.value
            assert row.kappa.by_language[name] == alone.languages[name].kappa.value
        assert (row.mean.value, row.mean.n) == (alone.mean.value, alone.mean.n)
        assert row.variance == pytest.approx(1e4 * alone.standard_deviation.value**2)
        assert row.drop.absolute.value == pytest.approx(alone.drop.absolute.value)
        assert row.drop.relative.value == pytest.approx(alone.drop.relative.value)
        assert {name: each.absolute.value for name, each in row.drop.sections.items()} == pytest.approx(
            {name: each.absolute.value for name, each in alone.drop.sections.items()}
        )
        assert row.kappa.mean.value == alone.kappa.value


def test_chinese_in_two_scripts_is_one_column_of_the_mean_and_two_languages_of_kappa(tmp_path):
    said = {"eng_Latn": "rrrrrrww", "zho_Hans": "rrrrrrrr", "zho_Hant": "rrrrwwww", "heb_Hebr": "rrwwwwww"}
    runs = [evaluated_languages(tmp_path, name, said, sections=("a",)) for name in ("x", "y")]
    (tmp_path / "y" / "items.jsonl").write_text((tmp_path / "x" / "items.jsonl").read_text("utf-8"), "utf-8")
    row, _ = languages(runs, out=tmp_path / "out", config=FEW).summary.models
    assert row.mean.value == pytest.approx((0.75 + 0.25) / 2)
    assert row.variance == pytest.approx(1250.0)
    assert (row.mean.n, row.kappa.mean.n) == (2, 3)


def test_items_and_languages_that_a_model_lacks_are_left_out_and_named(tmp_path):
    runs = [
        evaluated_languages(tmp_path, "x", X | {"zh": "rrrrrrrr"}),
        evaluated_languages(tmp_path, "short", {"en": "rrrrrr..", "he": "rrrrrrrr", "ar": ".rrrrrrr"}),
    ]
    found = languages(runs, out=tmp_path / "out", config=FEW)
    table = found.summary
    # Prompts 1 to 5 are there in all three languages of both.
    assert table.num_shared == 5
    assert set(table.columns) == {"he", "ar"}
    assert (table.lacking["short"].languages, table.lacking["short"].num_items) == (("zh",), 3)
    assert set(table.lacking) == {"short"}
    assert found.counts.noted["items that not every model has in every language, left out"] == 9
    # x in English: a: items 2 and 4, b: items 1, 3 and 5, all right.
    assert rows_of(table)["x"].english.value == 1.0


def test_one_language_may_be_spelled_in_two_ways(tmp_path):
    runs = [
        evaluated_languages(tmp_path, "x", X),
        evaluated_languages(tmp_path, "y", {"eng_Latn": Y["en"], "heb_Hebr": Y["he"]}),
    ]
    table = languages(runs, out=tmp_path / "out", config=FEW).summary
    assert table.num_shared == 8
    assert len(table.columns) == 1
    assert table.lacking["y"].languages == ("ar",)


def test_two_translations_are_compared_model_by_model(tmp_path):
    google = [evaluated_languages(tmp_path / "google", name, said) for name, said in (("x", X), ("y", Y))]
    # Another text, without English, and worse in Arabic alone.
    worse = {"he": X["he"], "ar": "wwwwwwww"}
    for name in ("x", "w"):
        evaluated_languages(tmp_path / "nllb", name, worse, better="a longer answer")
    run = languages(google, out=tmp_path / "out", config=FEW, other_translation=[tmp_path / "nllb"])
    found = run.summary.translation
    assert (found.first, found.second) == ("google", "nllb")
    assert found.unmatched == ("w", "y")
    sentences = {each.key: each.values for each in VIEW.sentences(StageRun("out", None, run.summary))}
    assert sentences["say_unmatched_models"]["models"].startswith("w")
    x = found.models["x"]
    assert (x.first.value, x.second.value, x.difference.value) == (0.5, 0.25, 0.25)
    assert {name: each.value for name, each in x.languages.items()} == {"ar": 0.5, "he": 0.0}
    assert x.difference.low < 0.25 < x.difference.high
    # Equal outcomes of the same items: paired resamples differ nowhere, and eight items leave room for much.
    assert x.languages["he"].low == -x.languages["he"].high


def test_models_of_one_translation_alone_cannot_be_compared(tmp_path):
    runs = [evaluated_languages(tmp_path / "google", "x", X)]
    evaluated_languages(tmp_path / "nllb", "y", Y, better="other")
    with pytest.raises(
        EvidenceError, match="no model is evaluated in both translations\n  allowed: google: x; nllb: y"
    ):
        languages(runs, out=tmp_path / "out", config=FEW, other_translation=[tmp_path / "nllb"])


def test_an_evaluation_that_is_named_twice_is_refused(runs, tmp_path):
    with pytest.raises(EvidenceError, match="a folder is named twice"):
        languages([runs[0], runs[1], runs[0]], out=tmp_path / "out", config=FEW)
    shutil.copytree(runs[0], tmp_path / "copy")
    with pytest.raises(EvidenceError, match="copy: the same run as "):
        languages([runs[0], tmp_path / "copy"], out=tmp_path / "out", config=FEW)
    assert not (tmp_path / "out").exists()


def test_other_benches_and_other_items_under_one_id_are_refused(runs, tmp_path):
    other = evaluated_languages(tmp_path, "other", X, bench="rmb", sections=("Helpfulness",), subset="Pairwise_set")
    with pytest.raises(EvidenceError, match='bench_kind is "rmb" here and "cases" in'):
        languages([runs[0], other], out=tmp_path / "out", config=FEW)
    text = evaluated_languages(tmp_path, "text", X, better="another text")
    with pytest.raises(
        EvidenceError, match=r"prompt 'p0' in en is another item than in .*: the lengths of the responses"
    ):
        languages([runs[0], text], out=tmp_path / "out", config=FEW)
    section = evaluated_languages(tmp_path, "section", X, sections=("a", "c"))
    with pytest.raises(EvidenceError, match=r"prompt 'p1' .*the category: .* here, .* there"):
        languages([runs[0], section], out=tmp_path / "out", config=FEW)


def test_the_setting_of_a_bench_that_differs_is_named_before_equal_items(runs, tmp_path):
    """The benches stood there as a whole, twice, and of equal items a run was called the other one."""
    shutil.copytree(runs[0], tmp_path / "copy")
    record = tmp_path / "copy" / "run.json"
    changed = json.loads(record.read_text("utf-8"))
    changed["config"]["bench"] = {**changed["config"]["bench"], "sections": {"A": {"a": 2.0}}}
    record.write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(EvidenceError, match=r'copy: bench\.sections is \{"A":\{"a":2\.0\}\} here and null in'):
        languages([runs[0], tmp_path / "copy"], out=tmp_path / "out", config=FEW)
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "copy", other)
    changed["config"]["bench"]["sections"] = {"A": {"a": 3.0}}
    (other / "run.json").write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(EvidenceError, match=r"other: bench\.sections\.A\.a is 3\.0 here and 2\.0 in"):
        languages([tmp_path / "copy", other], out=tmp_path / "out", config=FEW)


def test_models_without_a_common_item_language_or_english_are_refused(runs, tmp_path):
    later = evaluated_languages(tmp_path, "later", dict.fromkeys(X, "." * 8 + "rw"))
    with pytest.raises(EvidenceError, match="no item is in all of 3 languages of 2 evaluations"):
        languages([runs[0], later], out=tmp_path / "out", config=FEW)
    chinese = evaluated_languages(tmp_path, "chinese", {"en": Y["en"], "zh": Y["en"]})
    with pytest.raises(EvidenceError, match=r"share no language besides en\n  allowed: chinese: en, zh; x: ar, en, he"):
        languages([runs[0], chinese], out=tmp_path / "out", config=FEW)
    foreign = evaluated_languages(tmp_path, "foreign", {"he": Y["he"], "ar": Y["ar"]})
    with pytest.raises(EvidenceError, match=r"foreign has no item in en, [^\0]*that all have: .*baseline_language.*ar"):
        languages([runs[0], foreign], out=tmp_path / "out", config=FEW)
    arabic = languages([runs[0], foreign], out=tmp_path / "ar", config=Config(baseline_language="ar", num_resamples=20))
    assert (set(arabic.summary.columns), set(arabic.summary.lacking)) == ({"he"}, {"foreign"})
    third = evaluated_languages(tmp_path, "third", {"he": X["he"], "ar": X["ar"]})
    chosen = languages([foreign, third], out=tmp_path / "chosen", config=FEW)
    # Arabic and Hebrew have equal numbers and one class of resources: the code decides.
    assert (chosen.summary.baseline_language, set(chosen.summary.columns)) == ("ar", {"he"})
    named = languages([foreign, third], out=tmp_path / "out", config=Config(baseline_language="he", num_resamples=20))
    assert set(named.summary.columns) == {"ar"}
    single = [evaluated_languages(tmp_path, name, {"en": Y["en"]}) for name in ("one", "two")]
    with pytest.raises(EvidenceError, match="the only language is en"):
        languages(single, out=tmp_path / "none", config=FEW)


def test_a_table_and_runs_or_neither_are_refused(runs, tmp_path):
    with pytest.raises(EvidenceError, match="no evaluation is named"):
        languages(out=tmp_path / "out")
    with pytest.raises(ConfigError, match="evaluations and a table are given"):
        languages(runs, out=tmp_path / "out", table=tmp_path / "table.csv")
    with pytest.raises(FileError):
        languages(out=tmp_path / "out", table=tmp_path / "missing.csv")


def test_kinds_of_models_are_those_of_the_papers_or_what_the_run_says(tmp_path):
    runs = [evaluated_languages(tmp_path, name, X) for name in ("GPT-4 Turbo", "Zephyr 7B Beta", "mine")]
    bench = tmp_path / "mine-files" / "bench.jsonl"
    for model in ("longer", "first"):
        evaluate([bench], tmp_path / model, EvaluateConfig(num_resamples=5, baselines=()), model=model)
        runs.append(tmp_path / model)
    table = languages(runs, out=tmp_path / "out", config=FEW).summary
    kinds = {row.model: row.kind for row in table.models}
    assert kinds == {
        "GPT-4 Turbo": "generative",
        "Zephyr 7B Beta": "implicit",
        "mine": None,
        "longer": "baseline",
        "first": "baseline",
    }
    fitted = read_evaluation(runs[-1])
    assert kind_of_model(replace(fitted, config=fitted.config | {"model_kind": "ngram"})) == "baseline"
    assert table.kinds["generative"].models == ("GPT-4 Turbo",)
    assert table.kinds["generative"].drop.value == pytest.approx(0.375)
    assert table.kinds["implicit"].largest_drop == pytest.approx(0.375)
