from steelyard.evaluation.measures.accuracy import Named, baseline_word
from steelyard.report.summary_readers import (
    Baseline,
    Bounds,
    Ends,
    Estimate,
    Evaluation,
    Tied,
    Unscored,
)
from steelyard.report.summary_text import (
    best_baseline,
    evaluation_cards,
    evaluation_sentences,
    tone_of,
)


def evaluation(low, high, **more):
    baselines = {
        "random": Baseline(accuracy=Estimate(value=0.5), difference=Estimate(value=0.2, low=0.1, high=0.3)),
        "longer": Baseline(
            accuracy=Estimate(value=0.6), difference=Estimate(value=(low + high) / 2, low=low, high=high)
        ),
        "first": Baseline(),
    }
    accuracy = Estimate(value=0.7, low=0.65, high=0.75, n=1200)
    return Named(
        "m",
        Evaluation(
            accuracy=accuracy, exact_match=Estimate(value=0.3, low=0.2, high=0.4, n=90), baselines=baselines, **more
        ),
    )


def keys(sentences):
    return [sentence.key for sentence in sentences]


def test_the_best_baseline_is_the_one_that_is_hardest_to_beat():
    assert best_baseline(evaluation(0.1, 0.2).evaluation.baselines) == "longer"
    assert best_baseline({"longer": Baseline()}) is None


def test_the_order_of_a_file_is_a_leak_to_be_named_and_no_baseline_to_beat():
    leaking = Baseline(accuracy=Estimate(value=1.0, low=0.9, high=1.0), difference=Estimate(value=-0.1))
    longer = Baseline(accuracy=Estimate(value=0.6))
    assert best_baseline({"first": leaking, "longer": longer}) == "longer"
    accuracy = Estimate(value=0.7, low=0.65, high=0.75, n=1200)
    named = Named("m", Evaluation(accuracy=accuracy, baselines={"first": leaking, "longer": longer}))
    assert "say_order_leak" in keys(evaluation_sentences(named))
    fair = Baseline(accuracy=Estimate(value=0.52, low=0.45, high=0.6))
    named = Named("m", Evaluation(accuracy=accuracy, baselines={"first": fair, "longer": longer}))
    assert "say_order_leak" not in keys(evaluation_sentences(named))


def test_ahead_behind_and_undecided_are_told_by_the_interval():
    assert keys(evaluation_sentences(evaluation(0.05, 0.15))) == ["say_accuracy", "say_exact_match", "say_ahead"]
    assert keys(evaluation_sentences(evaluation(-0.15, -0.05)))[-1] == "say_behind"
    assert keys(evaluation_sentences(evaluation(-0.05, 0.15)))[-1] == "say_undecided"
    assert [
        tone_of(Estimate(low=low, high=high)) for low, high in ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1), (0.0, 0.1))
    ] == ["good", "bad", "", ""]


def test_the_numbers_of_the_sentences():
    said = evaluation_sentences(
        evaluation(0.05, 0.15, tied=Tied(num_pairs=3, share=0.0025), missing={"open": "no cases of it"})
    )
    assert said[0].values["value"] == "70.0%"
    assert said[0].values["interval"] == "65.0–75.0%"
    assert said[0].values["n"] == "1,200"
    assert said[2].values == {
        "baseline": baseline_word("longer"),
        "accuracy": "60.0%",
        "points": "+10.0",
        "interval": "+5.0 … +15.0",
    }
    assert said[3].values == {"missing": "open (no cases of it)"}
    assert said[4].values == {"pairs": "3", "share": "0.2%"}


def test_the_headline_that_the_bench_defines_is_told_first():
    overall = Estimate(value=0.561, low=0.5, high=0.6, n=9)
    said = evaluation_sentences(evaluation(0.05, 0.15, overall=overall))
    assert keys(said)[:2] == ["say_overall", "say_accuracy"]
    assert said[0].values == {"model": said[1].values["model"], "value": "56.1%", "interval": "50.0–60.0%", "n": "9"}


def test_without_every_score_there_is_no_headline_but_bounds():
    own = Evaluation(
        unscored=Unscored(num_responses=5, by_reason={"cut": 5}), bounds=Bounds(accuracy=Ends(low=0.6, high=0.7))
    )
    said = evaluation_sentences(Named("m", own))
    assert keys(said) == ["say_no_headline", "say_bounds"]
    assert said[0].values == {"model": "m", "number": "5", "reasons": "cut 5"}
    assert said[1].values == {"low": "60.0%", "high": "70.0%"}


def test_cards():
    cards = evaluation_cards(evaluation(0.05, 0.15, overall=Estimate(value=0.561, n=9)))
    assert [card.number for card in cards] == ["56.1%", "70.0%", "30.0%", "+10.0"]
    assert cards[3].tone == "good"
    assert "n\u00a0=\u00a01,200" in cards[1].below
