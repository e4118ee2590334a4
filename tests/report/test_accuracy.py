from evaluation_summaries import baseline, estimate, evaluation_summary, group
from page_words import english
from steelyard.evaluation.evaluated_bench import MissingScores
from steelyard.evaluation.measures.accuracy import BenchAccuracy, Named, Range, baseline_word
from steelyard.evaluation.summary import TiedPairs
from steelyard.evaluation.tables import word
from steelyard.report.evaluation_sections import (
    accuracy_section,
    best_baseline,
    evaluation_cards,
    evaluation_sentences,
    tone_of,
)


def evaluation(low, high, **more):
    baselines = {
        "random": baseline(estimate(0.5), estimate(0.2, 0.1, 0.3)),
        "longer": baseline(estimate(0.6), estimate((low + high) / 2, low, high)),
        "first": baseline(),
    }
    values = {"accuracy": ACCURACY, "exact_match": estimate(0.3, 0.2, 0.4, 90), "baselines": baselines}
    return "m", evaluation_summary(**values | more)


ACCURACY = estimate(0.7, 0.65, 0.75, 1200)


def keys(sentences):
    return [sentence.key for sentence in sentences]


def test_the_best_baseline_is_the_one_that_is_hardest_to_beat():
    assert best_baseline("m", evaluation(0.1, 0.2)[1].baselines) == "longer"
    assert best_baseline("m", {"longer": baseline()}) is None


def test_the_order_of_a_file_is_a_leak_to_be_named_and_no_baseline_to_beat():
    leaking = baseline(estimate(1.0, 0.9, 1.0), estimate(-0.1))
    longer = baseline(estimate(0.6))
    assert best_baseline("m", {"first": leaking, "longer": longer}) == "longer"
    summary = evaluation_summary(accuracy=ACCURACY, baselines={"first": leaking, "longer": longer})
    assert "say_order_leak" in keys(evaluation_sentences("m", summary))
    fair = baseline(estimate(0.52, 0.45, 0.6))
    summary = evaluation_summary(accuracy=ACCURACY, baselines={"first": fair, "longer": longer})
    assert "say_order_leak" not in keys(evaluation_sentences("m", summary))


def test_ahead_behind_and_undecided_are_told_by_the_interval():
    ahead = keys(evaluation_sentences(*evaluation(0.05, 0.15)))
    assert ahead == ["say_accuracy_of_all", "say_exact_match", "say_ahead"]
    assert keys(evaluation_sentences(*evaluation(-0.15, -0.05)))[-1] == "say_behind"
    assert keys(evaluation_sentences(*evaluation(-0.05, 0.15)))[-1] == "say_undecided"
    assert [tone_of(estimate(0.0, low, high)) for low, high in ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1), (0.0, 0.1))] == [
        "good",
        "bad",
        "",
        "",
    ]


def test_the_numbers_of_the_sentences():
    tied = TiedPairs(num_pairs=3, share=0.0025)
    said = evaluation_sentences(*evaluation(0.05, 0.15, tied=tied, missing={"open": "no cases of it"}))
    assert said[0].values["value"] == "70.0%"
    assert said[0].values["interval"] == "65.0–75.0%"
    assert said[0].values["n"] == "1,200"
    assert said[2].values == {
        "baseline": baseline_word("longer"),
        "accuracy": "60.0%",
        "points": "+10.0",
        "interval": "+5.0 … +15.0",
    }
    assert english(said[3].values["missing"]) == "open (no cases of it)"
    assert said[4].values == {"pairs": "3", "share": "0.2%"}


def test_the_headline_that_the_bench_defines_is_told_first():
    overall = estimate(0.561, 0.5, 0.6, 9)
    said = evaluation_sentences(*evaluation(0.05, 0.15, overall=overall))
    assert keys(said)[:2] == ["say_overall", "say_accuracy_of_all"]
    assert said[0].values == {"model": said[1].values["model"], "value": "56.1%", "interval": "50.0–60.0%", "n": "9"}


def test_without_every_score_there_is_no_headline_but_bounds():
    ends = Range(low=0.6, high=0.7)
    summary = evaluation_summary(
        unscored=MissingScores(num_responses=5, by_reason={"cut": 5}, by_language={}, num_pairs=5, num_prompts=2),
        bounds=BenchAccuracy(accuracy=ends, accuracy_micro=ends, by_category={}),
    )
    said = evaluation_sentences("m", summary)
    assert keys(said) == ["say_no_headline", "say_bounds"]
    assert said[0].values == {"model": "m", "number": "5", "reasons": "cut 5"}
    assert said[1].values == {"low": "60.0%", "high": "70.0%"}


def test_cards():
    cards = evaluation_cards(*evaluation(0.05, 0.15, overall=estimate(0.561, n=9)))
    assert [card.number for card in cards] == ["56.1%", "70.0%", "30.0%", "+10.0"]
    assert cards[3].tone == "good"
    assert "n\u00a0=\u00a01,200" in cards[1].below


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


def test_models_of_one_bench_share_a_table_and_other_benches_have_their_own():
    baselines = {
        "longer": baseline(estimate(0.6, 0.5, 0.7), estimate(0.1, 0.05, 0.15)),
        "random": baseline(estimate(0.5), estimate(0.2)),
    }
    headline = evaluation_summary(accuracy=ACCURACY, baselines=baselines, by_category={"a": GROUP})
    first, other = Named("m", headline, "test", "longer"), Named("other", headline, "test", None)
    third = Named("third", evaluation_summary(by_category={"b": GROUP}), "kinds")
    panels = accuracy_section([first, third, other], []).panels
    by = word("by_category")
    assert [panel.title for panel in panels] == ["test", "third · kinds", f"{by} · test", f"{by} · kinds"]
    (shared,) = panels[0].tables
    assert [row[0] for row in shared.table.rows] == ["m", "other", baseline_word("longer"), baseline_word("random")]
    assert shared.table.rows[0][5:] == ("+10.0", "+5.0 … +15.0")
    assert shared.table.rows[1][5:] == ("–", "–")
    differing = first._replace(
        name="other",
        headline=evaluation_summary(accuracy=ACCURACY, baselines={"longer": baseline(estimate(0.55), estimate(0.1))}),
    )
    rows = accuracy_section([first, differing], []).panels[0].tables[0].table.rows
    longer = baseline_word("longer")
    assert [row[0] for row in rows[2:]] == [f"{longer} · m", f"{longer} · other", baseline_word("random")]


def test_a_baseline_that_is_evaluated_is_not_compared_with_itself():
    itself = baseline(ACCURACY, estimate(0.0, 0.0, 0.0))
    summary = evaluation_summary(
        model="longer", accuracy=ACCURACY, baselines={"longer": itself, "random": baseline(estimate(0.5))}
    )
    assert best_baseline("longer", summary.baselines) == "random"
    titles_of_cards = [card.title for card in evaluation_cards("longer", summary)]
    assert word("lead_over_best") not in titles_of_cards
    assert "0.0" not in [card.number for card in evaluation_cards("longer", summary)]


def test_parts_of_a_bench_and_evaluations_without_categories():
    bench = Named("m", evaluation_summary(sections={"Chat": estimate(0.5, n=3)}))
    assert titles(accuracy_section([bench], [])) == ["m", word("bench_parts")]
