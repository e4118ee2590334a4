from evaluation_summaries import estimate, evaluation_summary, group, scored_item
from steelyard.core.types import Counts, Input, Run
from steelyard.evaluation.measures.accuracy import Named
from steelyard.evaluation.tables import word
from steelyard.report.sections import (
    accuracy_section,
    counts_line,
    protocol,
    rewards_section,
)

GROUP = group(estimate(0.6, 0.5, 0.7, 5))
ONE = Named("m", evaluation_summary(accuracy=GROUP.accuracy, by_category={"a": GROUP}, by_language={"zh": GROUP}))


def titles(section):
    return [panel.title for panel in section.panels]


def test_languages_are_shown_where_there_are_several():
    assert titles(accuracy_section([ONE], [])) == ["m", word("by_category")]
    two = ONE._replace(headline=evaluation_summary(by_category={"a": GROUP}, by_language={"zh": GROUP, "en": GROUP}))
    assert titles(accuracy_section([ONE, two], []))[-1] == word("by_language")


def test_models_share_the_figure_of_categories_and_have_a_table_each():
    panel = accuracy_section([ONE, ONE._replace(name="other")], []).panels[-1]
    assert [part.by for part in panel.tables] == ["m", "other"]
    assert [mark.name for mark in panel.figure.legend] == ["m", "other"]


def test_benches_whose_categories_differ_have_a_figure_each():
    third = Named("third", evaluation_summary(by_category={"b": GROUP}))
    panels = accuracy_section([ONE, third, ONE._replace(name="other")], []).panels[3:]
    by = word("by_category")
    assert [panel.title for panel in panels] == [f"{by} · m, other", f"{by} · third"]


def test_parts_of_a_bench_and_evaluations_without_categories():
    bench = Named("m", evaluation_summary(sections={"Chat": estimate(0.5, n=3)}))
    assert titles(accuracy_section([bench], [])) == ["m", word("bench_parts")]


def test_a_section_of_nothing_has_no_panels():
    assert rewards_section({"m": [scored_item("p", scores={"a": None}, ranking=(("a",),))]}, []).panels == ()


def test_rewards_have_margins_only_where_tiers_differ():
    one_tier = [scored_item("p", scores={"a": 1.0, "b": 2.0}, ranking=(("a", "b"),))]
    assert len(rewards_section({"m": one_tier}, []).panels) == 2
    two_tiers = [scored_item("p", scores={"a": 1.0, "b": 2.0}, ranking=(("a",), ("b",)))]
    assert len(rewards_section({"m": two_tiers}, []).panels) == 3
    assert all(
        panel.title.startswith(("m · ", "n · "))
        for panel in rewards_section({"m": two_tiers, "n": two_tiers}, []).panels
    )


def test_counts_stand_in_one_line():
    counts = Counts(num_in=1012, num_used=1010, dropped={"no_pair": 2}, noted={"given": 7})
    line = counts_line("run", counts)
    assert line.startswith(f"run: 1,012 {word('num_in')} · 1,010 {word('used')}")
    assert f"{word('dropped')}: no pair 2" in line
    assert line.endswith(f"{word('noted')}: given 7")


def test_the_protocol_shows_settings_hashes_and_of_a_path_only_its_end():
    run = Run(
        stage="train",
        config={"model": {"path": "/data/someone/models/rm", "rate": 0.1}, "only": {}, "seed": 3},
        seed=3,
        inputs={"cases": Input(path="/data/private/cases.jsonl", sha256="ab12")},
        outputs={"model.safetensors": "cd34"},
        counts=Counts(num_in=3, num_used=2, dropped={"rule": 1}),
        seconds=1.25,
    )
    shown = protocol("model", run)
    tables = {part.by: part.table.rows for part in shown.tables}
    assert ("model.path", "rm") in tables["settings"]
    assert ("model.rate", "0.1") in tables["settings"]
    assert ("only", "{}") in tables["settings"]
    assert (word("seed"), "3") in tables["settings"]
    assert tables["files"] == (("cases", "cases.jsonl", "ab12"), (word("output"), "model.safetensors", "cd34"))
    assert (f"{word('dropped')}: rule", "1") in tables["counts"]
    assert "someone" not in str(shown)
