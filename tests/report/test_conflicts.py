from msgspec.structs import replace

from report_figures import accepted, rows
from report_sections import run_with
from steelyard.evaluation.tables import word
from steelyard.ranking.conflicts import Conflicts, ConflictTables
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.judgment_sections import (
    conflict_card,
    conflict_figure,
    conflict_sentences,
    conflict_tables,
)
from steelyard.views.resolve import VIEW
from steelyard.views.view import NO_SOURCES


def conflict(ratio, number=10):
    return Conflicts(
        ratio=ratio,
        ratio_of_strict=ratio and ratio * 2,
        ratio_mean_per_prompt=ratio,
        share_of_prompts=ratio,
        share_of_pairs_ordered=None,
        num_judgments=number,
        num_strict=number,
        num_conflicting=3,
        num_ties=0,
        num_none=0,
        num_prompts=2,
        num_pairs=number,
    )


def tables(overall, **groups):
    empty = {"by_judge": {}, "by_kind": {}, "by_category": {}, "by_subset": {}, "by_language": {}}
    return ConflictTables(overall=overall, **(empty | groups))


def summary(ratio, **more):
    return ResolveSummary(conflicts=tables(conflict(ratio)), **{"unranked_responses": 0, **more})


CONFLICTS = tables(
    conflict(0.2134, 1200),
    by_judge={"ann": conflict(0.1), "标注员": conflict(0.3)},
    by_kind={"human": conflict(0.2)},
    by_language={"zh": conflict(None)},
)


def test_every_division_with_rows_has_its_table():
    parts = conflict_tables(CONFLICTS)
    assert [part.by for part in parts] == ["overall", "kind", "judge", "language"]
    assert parts[0].table.rows[0][:3] == (word("overall"), "21.3%", "42.7%")
    assert parts[0].table.rows[0][6] == "1,200"
    assert [row[0] for row in parts[2].table.rows] == ["ann", "标注员"]
    assert parts[3].table.rows[0][1] == "–"


def test_bars_go_from_most_to_least_and_a_single_group_is_not_repeated():
    spec = accepted(conflict_figure(CONFLICTS))
    assert [row["ratio"] for row in rows(spec)] == [0.2134, 0.3, 0.1]
    assert [row["n"] for row in rows(spec)] == [1200, 10, 10]
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 1.06 * 0.6]


def test_one_bar_and_divisions_without_a_conflict_are_not_drawn():
    assert conflict_figure(tables(conflict(None))) is None
    assert conflict_figure(tables(conflict(0.2), by_judge={"a": conflict(0.0), "b": conflict(0.0)})) is None
    some = tables(
        conflict(0.2),
        by_judge={"a": conflict(0.0), "b": conflict(0.0)},
        by_language={"zh": conflict(0.2), "he": conflict(0.0)},
    )
    assert [row["ratio"] for row in rows(accepted(conflict_figure(some)))] == [0.2, 0.2, 0.0]


def test_a_run_without_readable_judgments_has_no_panel():
    def panels(**runs):
        made = [run_with(summary, name=name) for name, summary in runs.items()]
        return [panel.title for panel in VIEW.page_contents(made, NO_SOURCES).sections[1].panels]

    assert panels(r=summary(0.2)) == [word("conflict_ratio")]
    assert panels(r=summary(0.2), other=summary(0.3), empty=summary(None)) == ["r", "other"]


def test_conflicts_in_words_and_on_a_card():
    assert [sentence.key for sentence in conflict_sentences(summary(0.2, unranked_responses=2))] == [
        "say_conflict", "say_unranked",
    ]  # fmt: skip
    assert [sentence.key for sentence in conflict_sentences(summary(None))] == ["say_no_judgments"]
    assert conflict_card("r", summary(0.25)).number == "25.0%"


def test_judgments_without_a_verdict_are_not_called_absent():
    unread = tables(replace(conflict(None), num_none=11))
    (sentence,) = conflict_sentences(ResolveSummary(conflicts=unread, unranked_responses=0))
    assert (sentence.key, sentence.values) == ("say_unparsed_judgments", {"number": "11"})
