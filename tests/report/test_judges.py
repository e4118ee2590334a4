import msgspec

from report_figures import accepted, rows
from steelyard.report.judge_contents import Agreement, Authors, Judges
from steelyard.report.judges import (
    agreement_table,
    author_figure,
    bias_panels,
    judge_table,
    length_figure,
    position_figure,
)


def estimate(value, n=10):
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    return {"value": value, "low": low, "high": high, "n": n}


SUMMARY = {
    "judges": {
        "by_kind": {
            "human": {
                "num_judgments": 1234,
                "conflict_ratio": estimate(0.25),
                "others": {"agreement": estimate(0.8), "coverage": estimate(0.7)},
                "ranking": {"agreement": estimate(1.0), "coverage": estimate(0.6)},
                "position": {
                    "earlier": estimate(0.45),
                    "pairs": [
                        {"num_shown": 3, "earlier": 1, "later": 2, **estimate(0.4)},
                        {"num_shown": None, "earlier": None, "later": None, **estimate(0.5)},
                    ],
                    "places": [{"num_shown": 3, "place": 1, **estimate(0.4)}],
                },
                "length": {
                    "longer": estimate(0.55),
                    "bins": [{"above": 0.05, "up_to": 0.1, **estimate(0.6)}],
                    "num_equal": 4,
                },
            },
            "llm": {
                "num_judgments": 5,
                "position": {"earlier": estimate(None, 0)},
                "length": {"longer": estimate(0.9)},
            },
        }
    },
    "agreement": {
        "judges": [{"judges": ["甲", "b"], "agreement": estimate(0.75), "kappa": estimate(0.5)}],
        "kinds": [{"kinds": ["human", "llm"], "agreement": estimate(0.5), "kappa": estimate(None)}],
    },
    "authors": {"strengths": [{"author": "x", **estimate(0.4)}, {"author": "y", **estimate(-0.4)}]},
}
KINDS = msgspec.convert(SUMMARY["judges"], Judges).by_kind


def values(figure):
    return [(row["row"], row["value"], row["n"]) for row in rows(accepted(figure)) if "value" in row]


def test_there_is_a_panel_for_each_kind_and_bias_that_was_measured():
    assert [(one.name, one.about) for one in bias_panels(KINDS)] == [
        ("human", "length"), ("human", "position"), ("llm", "length"),
    ]  # fmt: skip


def test_length_panel_has_the_whole_and_every_bin():
    drawn = values(length_figure(KINDS["human"].length))
    assert [value for _, value, _ in drawn] == [0.55, 0.6]
    assert drawn[1][0].startswith("5 ")
    assert drawn[1][0].endswith("10%")


def test_position_panel_has_the_whole_and_every_pair_of_places():
    figure = position_figure(KINDS["human"].position)
    assert [value for _, value, _ in values(figure)] == [0.45, 0.4, 0.5]
    assert values(figure)[1][0].startswith("1 | 2")
    assert any(row.get("at") == 0.5 for row in rows(figure.spec))


def test_authors_are_drawn_in_the_order_given():
    assert [
        (name, value) for name, value, _ in values(author_figure(msgspec.convert(SUMMARY["authors"], Authors)))
    ] == [
        ("x", 0.4),
        ("y", -0.4),
    ]


def test_tables_have_a_row_for_each():
    judges = judge_table(KINDS)
    assert [row[0] for row in judges.rows] == ["human", "llm"]
    assert judges.rows[0][1:3] == ("1,234", "25.0%")
    assert "80.0%" in judges.rows[0]
    agreement = agreement_table(msgspec.convert(SUMMARY["agreement"], Agreement))
    assert [row[0] for row in agreement.rows] == ["甲 · b", "human · llm"]
    assert agreement.rows[0][4] == "0.500"
