import msgspec

from report_figures import accepted, rows
from steelyard.evaluation.tables import word
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.judgment_sections import (
    agreement_table,
    author_figure,
    bias_panels,
    judge_table,
    judges_section,
    length_figure,
    position_figure,
)


def estimate(value, n=10):
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    return {"value": value, "low": low, "high": high, "n": n}


NOTHING = estimate(None, 0)


def quality(number, earlier, longer, *, pairs=(), bins=()):
    return {
        "num_judgments": number, "num_strict": number, "conflict_ratio": estimate(0.25),
        "conflict_ratio_of_strict": estimate(0.25), "others": {"agreement": estimate(0.8), "coverage": estimate(0.7)},
        "ranking": {"agreement": estimate(1.0), "coverage": estimate(0.6)},
        "position": {"earlier": earlier, "pairs": pairs, "places": []},
        "length": {"longer": longer, "bins": bins, "num_equal": 4},
    }  # fmt: skip


PAIRS = [
    {"num_shown": 3, "earlier": 1, "later": 2, **estimate(0.4)},
    {"num_shown": None, "earlier": None, "later": None, **estimate(0.5)},
]
BINS = [{"above": 0.05, "up_to": 0.1, **estimate(0.6)}]
BY_KIND = {
    "human": quality(1234, estimate(0.45), estimate(0.55), pairs=PAIRS, bins=BINS),
    "llm": quality(5, NOTHING, estimate(0.9)),
}
AGREEMENT = {
    "judges": [
        {"judges": ["甲", "b"], "agreement": estimate(0.75), "agreement_of_strict": NOTHING, "kappa": estimate(0.5)}
    ],
    "num_pairs_of_judges_not_listed": 0,
    "kinds": [
        {"kinds": ["human", "llm"], "agreement": estimate(0.5), "agreement_of_strict": NOTHING, "kappa": NOTHING}
    ],
    "alpha": {"all": NOTHING, "by_kind": {}},
    "num_verdicts_of_pairs_not_counted_apart": 0,
}
AUTHORS = {
    "strengths": [{"author": "x", **estimate(0.4)}, {"author": "y", **estimate(-0.4)}], "ties": "half",
    "tie_parameter": None, "is_regularised": False, "share_of_resamples_regularised": 0.0, "prior_verdicts": 0.05,
    "num_verdicts": 9, "num_authors_left_out": 0,
}  # fmt: skip
NO_CONFLICTS = {
    "overall": dict.fromkeys(
        ("ratio", "ratio_of_strict", "ratio_mean_per_prompt", "share_of_prompts", "share_of_pairs_ordered")
    )
    | dict.fromkeys(
        ("num_judgments", "num_strict", "num_conflicting", "num_ties", "num_none", "num_prompts", "num_pairs"), 0
    ),
    "by_judge": {}, "by_kind": {}, "by_category": {}, "by_subset": {}, "by_language": {},
}  # fmt: skip
JUDGES = {"by_judge": {"ann": BY_KIND["human"]}, "by_kind": BY_KIND, "num_entries_of_judges_not_listed": 0}
SUMMARY = msgspec.convert(
    {"conflicts": NO_CONFLICTS, "unranked_responses": 0, "judges": JUDGES, "agreement": AGREEMENT, "authors": AUTHORS},
    ResolveSummary,
)
KINDS = SUMMARY.judges.by_kind
HUMAN, LLM = word("kind_human", "human"), word("kind_llm", "llm")


def values(figure):
    return [(row["row"], row["value"], row["n"]) for row in rows(accepted(figure)) if "value" in row]


def test_there_is_a_panel_for_each_kind_and_bias_that_was_measured():
    assert [panel.title for panel in bias_panels(KINDS)] == [
        f"{HUMAN} · {word('length_bias')}", f"{HUMAN} · {word('position_bias')}", f"{LLM} · {word('length_bias')}",
    ]  # fmt: skip


def test_the_section_has_biases_a_table_of_judges_their_agreement_and_the_authors():
    panels = judges_section({"resolved": SUMMARY}).panels
    assert [panel.title for panel in panels[3:]] == [word("judges_table"), word("agreement"), word("authors")]
    assert [part.by for part in panels[3].tables] == ["kind", "judge"]
    assert judges_section({"a": SUMMARY, "b": SUMMARY}).panels[0].title.startswith(f"a · {HUMAN}")
    nothing = msgspec.structs.replace(SUMMARY, judges=None, agreement=None, authors=None)
    assert judges_section({"r": nothing}).panels == ()


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
    assert [(name, value) for name, value, _ in values(author_figure(SUMMARY.authors))] == [
        ("x", 0.4),
        ("y", -0.4),
    ]


def test_tables_have_a_row_for_each():
    judges = judge_table(KINDS)
    assert [row[0] for row in judges.rows] == ["human", "llm"]
    assert judges.rows[0][1:3] == ("1,234", "25.0%")
    assert "80.0%" in judges.rows[0]
    agreement = agreement_table(SUMMARY.agreement)
    assert [row[0] for row in agreement.rows] == ["甲 · b", f"{HUMAN} · {LLM}"]
    assert agreement.rows[0][4] == "0.500"
