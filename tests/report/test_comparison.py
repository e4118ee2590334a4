import msgspec
import pytest

from page_words import english
from report_figures import accepted, rows
from report_sections import section_of
from steelyard.evaluation.comparison import ComparisonSummary
from steelyard.views.compare import VIEW


def estimate(value, low, high):
    return {"value": value, "low": low, "high": high, "n": 50}


def summary(headline):
    """Two models: 70 % and 62 % right, a difference of 8 points, as `compare` writes it."""
    model = {"accuracy": estimate(0.7, 0.6, 0.8), "exact_match": estimate(0.5, 0.4, 0.6), "folder": "x",
             "coverage": None, "bounds": None}  # fmt: skip
    own = estimate(0.1, 0.02, 0.18) | {"p": 0.01, "p_corrected": 0.02}
    return {
        "bench": "cases",
        "headline": headline,
        "unlike_coverage": [],
        "correction": "Holm",
        "models": [
            model | {"name": "甲", "value": estimate(0.7, 0.6, 0.8), "best_rank": 1, "worst_rank": 1},
            model | {"name": "b", "value": estimate(0.62, 0.5, 0.7), "best_rank": 1, "worst_rank": 2},
        ],
        "comparisons": [
            {
                "first": "甲", "second": "b", "accuracy": estimate(0.08, -0.01, 0.17),
                "exact_match": estimate(0.0, -0.05, 0.05), "p_accuracy_corrected": 0.07,
                "p_exact_match_corrected": 1.0, "detectable": 0.12,
                "p_accuracy": 0.07, "p_exact_match": 1.0, "only_first": 0, "only_second": 0, "p_bounded": 0.07,
                "measures": {}, "headline": own if headline == "overall" else None,
            }
        ],
    }  # fmt: skip


def section(given):
    return section_of(VIEW, msgspec.convert(given, ComparisonSummary))


def test_models_and_differences_have_a_figure_and_a_table_each():
    models, differences = section(summary("accuracy")).panels
    assert models.tables[0].table.rows == (
        ("甲", "1", "70.0%", "60.0–80.0%", "50.0%", "40.0–60.0%"),
        ("b", "1–2", "70.0%", "60.0–80.0%", "50.0%", "40.0–60.0%"),
    )
    assert differences.tables[0].table.rows == (
        ("甲 – b", "+8.0", "−1.0 … +17.0", "0.070", "12.0", "0.0", "−5.0 … +5.0", "1.000"),
    )
    points, line = rows(accepted(differences.figure))
    assert (points["row"], points["value"], points["low"]) == ("甲\n– b", 0.08, -0.01)
    assert line == {"at": 0.0}
    assert [row["row"] for row in rows(accepted(models.figure))] == ["甲", "b"]


@pytest.mark.parametrize(("headline", "shown", "significant"), [("overall", "+10.0", "1"), ("accuracy", "+8.0", "0")])
def test_what_ranks_the_models_is_what_is_compared(headline, shown, significant):
    given = summary(headline)
    models = section(given).panels[0].tables[0].table.rows
    assert [len(row) for row in models] == [8 if headline == "overall" else 6] * 2
    assert section(given).panels[1].tables[0].table.rows[0][1] == shown
    _, sentence = section(given).sentences
    assert (sentence.values["significant"], sentence.values["all"]) == (significant, "1")


def test_a_part_of_a_bench_says_what_is_absent():
    panels = section(summary(None) | {"missing": {"open_prompt": "3 prompts, expected 1,146"}}).panels
    ((part, why),) = panels[-1].tables[0].table.rows
    assert (part, english(why)) == ("open_prompt", "3 prompts, expected 1,146")
