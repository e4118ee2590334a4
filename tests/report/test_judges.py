from typing import get_args

import msgspec
from msgspec.structs import replace

from report_figures import accepted, rows
from steelyard.evaluation.tables import word
from steelyard.ranking.judge_reliability import Change, Constant, JudgeReliability, PanelReliability
from steelyard.ranking.judge_summary import JudgeQuality
from steelyard.ranking.panel_counts import Contradiction
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.judges import MOST_ROWS, judges_section, preference_rows
from steelyard.report.judgment_sections import (
    agreement_table,
    author_figure,
    bias_panels,
    judge_table,
    length_figure,
    position_figure,
)
from steelyard.report.page import Section, page_strings
from steelyard.statistics.intervals import Estimate
from strategies import case


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
BINS = [{"above": 0.05, "up_to": 0.1, **estimate(0.6)}, {"above": 0.1, "up_to": 0.2, **estimate(0.7)}]
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


def test_a_bias_is_drawn_where_there_are_values_to_compare():
    assert [panel.title for panel in bias_panels(KINDS)] == [
        f"{HUMAN} · {word('length_bias')}", f"{HUMAN} · {word('position_bias')}",
    ]  # fmt: skip
    assert bias_panels({"human": replace(KINDS["human"], length=KINDS["llm"].length)})[0].title.endswith(
        word("position_bias")
    )


def section(summary, cases=()):
    return judges_section({"resolved": summary}, {"resolve": cases})


def test_the_section_has_biases_a_table_of_judges_their_agreement_and_the_authors():
    titles = [panel.title for panel in section(SUMMARY).panels]
    assert titles[0] == word("preferences")
    assert titles[-3:] == [word("judges_table"), word("agreement"), word("authors")]
    both = judges_section({"a": SUMMARY, "b": SUMMARY}, {})
    assert both.panels[0].title == f"a · {word('preferences')}"
    nothing = replace(SUMMARY, judges=None, agreement=None, authors=None)
    assert section(nothing) == Section("judges", (), ())


def test_preferences_are_marked_where_the_interval_excludes_none_and_the_strongest_is_first():
    weak, strong, none = estimate(0.62), estimate(0.2), estimate(0.55)
    judges = {
        "weak": quality(9, weak, none), "no": quality(9, none, none), "strong": quality(9, none, strong),
        "unknown": quality(9, NOTHING, NOTHING),
    }  # fmt: skip
    judges = msgspec.convert(judges, dict[str, JudgeQuality])
    assert preference_rows(judges) == [
        ("strong", "–", "–", "20.0%", "10.0–30.0%"), ("weak", "62.0%", "52.0–72.0%", "–", "–"),
    ]  # fmt: skip
    fair = replace(SUMMARY, judges=replace(SUMMARY.judges, by_judge={"no": judges["no"]}))
    assert section(fair).panels[0].note == "note_no_preferences"
    # Verdicts of both orders together say nothing about a place.
    unplaced = msgspec.convert({"no": quality(9, NOTHING, none)}, dict[str, JudgeQuality])
    unknown = replace(SUMMARY, judges=replace(SUMMARY.judges, by_judge=unplaced))
    assert section(unknown).panels[0].note == "note_no_length_preferences"


def panel_summary(judges):
    return replace(SUMMARY, reliability=PanelReliability(judges=tuple(judges), ordered_by="batch"))


def reliable(name, value, **fields):
    agreement = msgspec.convert(estimate(value), Estimate)
    return JudgeReliability(
        judge=name, num_pairs=10, agreement=agreement, agreement_of_strict=agreement, kappa=agreement, **fields
    )


BELOW = Estimate(0.3, 0.1, 0.5, 10)
WORST = reliable(
    "标注员乙", 0.4, below_median=BELOW, p=0.0004,
    change=Change(
        by="batch", since="批次 3", before=Estimate(0.8, 0.7, 0.9, 30), after=Estimate(0.2, 0.1, 0.3, 40), p=0.02
    ),
    contradictions=(Contradiction(prompt="p", language=None, preferred="b", other="a", num_others=1, num_against=1),),
)  # fmt: skip
GOOD = reliable("bob", 0.8, below_median=Estimate(-0.1, -0.2, 0.1, 10), p=1.0)


def test_one_judge_alone_agrees_least_and_the_next_stands_out_too():
    second = reliable("丙", 0.5, below_median=BELOW, p=0.01)
    keys = [sentence.key for sentence in section(panel_summary([WORST, second, GOOD])).sentences]
    assert keys[:2] == ["say_worst_judge", "say_next_judge"]


def test_the_worst_judge_is_named_with_its_change_and_its_contradictions():
    found = section(panel_summary([WORST, GOOD]), [case(responses="ab", text="为什么？")])
    assert [sentence.key for sentence in found.sentences] == ["say_worst_judge", "say_judge_declined"]
    first = found.sentences[0].values
    assert (first["judge"], first["agreement"], first["below"], first["p"], first["judges"]) == (
        "标注员乙", "40.0%", "30.0", "p < 0.001", "2",
    )  # fmt: skip
    assert found.sentences[1].values["since"] == "批次 3"
    by_title = {panel.title: panel for panel in found.panels}
    assert [row[0] for row in by_title[word("worst_first")].tables[0].table.rows] == ["标注员乙", "bob"]
    assert accepted(by_title[word("worst_first")].figure)
    assert by_title[word("changes")].tables[0].table.rows[0][1] == "批次 3"
    (example,) = by_title[word("contradictions")].examples
    assert (example.item, example.prompt) == ("p", "为什么？")
    assert [text for _, text in example.answers] == ["answer b", "answer a"]


def test_sentences_name_the_run_where_there_are_several():
    summary = panel_summary([WORST, GOOD])
    several = judges_section({"people": summary, "llms": summary}, {}).sentences
    assert [sentence.values["judge"] for sentence in several] == [
        "标注员乙 (people)", "标注员乙 (people)", "标注员乙 (llms)", "标注员乙 (llms)",
    ]  # fmt: skip


def test_no_judge_stands_out_and_one_other_judge_is_no_majority():
    calm = replace(WORST, p=0.2, change=None)
    found = section(panel_summary([calm, GOOD]), [case(responses="ab")])
    assert [sentence.key for sentence in found.sentences] == ["say_no_judge_stands_out"]
    titles = [panel.title for panel in found.panels]
    assert word("contradictions") not in titles
    assert word("changes") not in titles
    untested = [replace(judge, p=None, below_median=None, change=None) for judge in (WORST, GOOD)]
    assert section(panel_summary(untested)).sentences[0].key == "say_too_few_judges"
    assert section(panel_summary(untested[:1])).sentences == ()


def test_constant_judges_and_llms_next_to_people_are_named():
    constant = replace(GOOD, constant="first_shown")
    model = reliable("m", 0.9, with_people=Estimate(0.6, 0.5, 0.7, 50))
    found = section(panel_summary([constant, model]))
    assert [sentence.key for sentence in found.sentences][1:] == ["say_constant_first_shown", "say_with_people"]
    assert found.sentences[-1].values["pairs"] == "50"
    assert len(found.panels[0].tables[0].table.columns) == 12


def test_of_many_judges_the_lowest_are_shown_and_the_note_says_so():
    many = [reliable(f"j{at}", 0.3 + at / 1000) for at in range(200)]
    panel = section(panel_summary(many)).panels[0]
    assert len(panel.tables[0].table.rows) == MOST_ROWS
    assert panel.note == "note_judges_cut"


def test_every_constant_has_its_sentence():
    known = page_strings().table
    assert all(f"say_constant_{name}" in known for name in get_args(Constant))


def test_length_panel_has_the_whole_and_every_bin():
    drawn = values(length_figure(KINDS["human"].length))
    assert [value for _, value, _ in drawn] == [0.55, 0.6, 0.7]
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
    assert [row[0] for row in agreement.rows] == [f"{HUMAN} · {LLM}", "甲 · b"]
    assert len(agreement_table(SUMMARY.agreement, most=0).rows) == 1
    assert agreement.rows[1][4] == "0.500"
