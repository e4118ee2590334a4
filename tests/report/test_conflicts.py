from report_figures import accepted, rows
from steelyard.evaluation.tables import word
from steelyard.report.conflicts import conflict_figure, conflict_tables
from steelyard.report.summary_readers import Conflict, Conflicts


def conflict(ratio, number=10):
    return Conflict(
        ratio=ratio, ratio_of_strict=ratio and ratio * 2, num_judgments=number, num_conflicting=3, num_prompts=2
    )


CONFLICTS = Conflicts(
    overall=conflict(0.2134, 1200),
    by_judge={"ann": conflict(0.1), "标注员": conflict(0.3)},
    by_kind={"human": conflict(0.2)},
    by_language={"zh": conflict(None)},
)


def test_every_division_with_rows_has_its_table():
    tables = conflict_tables(CONFLICTS)
    assert [part.by for part in tables] == ["overall", "kind", "judge", "language"]
    assert tables[0].table.rows[0][:3] == (word("overall"), "21.3%", "42.7%")
    assert tables[0].table.rows[0][6] == "1,200"
    assert [row[0] for row in tables[2].table.rows] == ["ann", "标注员"]
    assert tables[3].table.rows[0][1] == "–"


def test_bars_go_from_most_to_least_and_a_single_group_is_not_repeated():
    spec = accepted(conflict_figure(CONFLICTS))
    assert [row["ratio"] for row in rows(spec)] == [0.2134, 0.3, 0.1]
    assert [row["n"] for row in rows(spec)] == [1200, 10, 10]
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 1.06 * 0.6]


def test_no_judgments_still_make_a_figure_that_is_accepted():
    assert rows(accepted(conflict_figure(Conflicts()))) == []
