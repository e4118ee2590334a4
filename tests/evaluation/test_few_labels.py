import numpy as np
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.types import Case, Judgment, Message, Pair, Prompt, Response
from steelyard.evaluation.evaluations import read_evaluation
from steelyard.evaluation.win_rates import CreditCounter, credits_of
from steelyard.io.cases import write_cases
from steelyard.stages.compare import Config as CompareConfig
from steelyard.stages.compare import compare
from steelyard.stages.evaluate import Config, evaluate
from steelyard.stages.leaderboard import Config as LeaderboardConfig
from steelyard.stages.leaderboard import leaderboard

CONFIG = Config(num_resamples=300)


def pair_case(index, *, first_wins, category="chat", language="en", texts=("long answer", "short")):
    return Case(
        prompt=Prompt(
            id=f"p{index}",
            messages=(Message(role="user", content=f"question {index}"),),
            category=(category,),
            language=language,
        ),
        responses=tuple(
            Response(id=name, text=text, author=author)
            for name, text, author in zip("ab", texts, ("strong", "weak"), strict=True)
        ),
        ranking=None if first_wins is None else (("a",), ("b",)) if first_wins else (("b",), ("a",)),
    )


def population(size, *, agreement=0.85, seed=0, categories=("chat",)):
    """Human and judged cases: the longer answer wins in 70 of 100, and the judge agrees with people as often."""
    random = np.random.default_rng(seed)
    human, judged = [], []
    for index in range(size):
        is_first = bool(random.random() < 0.7)
        is_same = bool(random.random() < agreement)
        category = categories[index % len(categories)]
        human.append(pair_case(index, first_wins=is_first, category=category))
        judged.append(pair_case(index, first_wins=is_first == is_same, category=category))
    return human, judged


@pytest.fixture
def run(tmp_path):
    def evaluated(human, judged, config=CONFIG, **inputs):
        write_cases(tmp_path / "few.jsonl", human)
        write_cases(tmp_path / "many.jsonl", judged)
        files = {"human": tmp_path / "few.jsonl", "judged": tmp_path / "many.jsonl"}
        return evaluate([], tmp_path / "out", config, **files, **({"model": "longer"} | inputs), force=True)

    return evaluated


def test_the_value_is_unbiased_and_narrower_than_human_labels_alone(run):
    human, judged = population(1200)
    done = run(human[:150], judged, Config(num_resamples=300, width=0.1))
    powered = done.summary.prediction_powered
    assert (powered.num_labelled, powered.num_judged) == (150, 1200)
    assert done.counts.num_in == 150
    assert done.counts.noted["judged prompts"] == 1200
    both, alone = powered.accuracy.estimate, powered.accuracy.human_only
    # The judge is wrong in 15 of 100: 0.7 · 0.85 + 0.3 · 0.15 = 0.64, and not the 0.7 of people.
    assert powered.accuracy.judge_only == pytest.approx(0.64, abs=0.04)
    assert both.low < 0.7 < both.high
    assert both.high - both.low < 0.85 * (alone.high - alone.low)
    assert powered.accuracy.effective_labels > 1.4
    assert powered.accuracy.needed.with_judge < powered.accuracy.needed.without_judge
    # All else is the evaluation on the human labels: equal but for the draws, which include the judge's columns.
    assert done.summary.accuracy.value == alone.value
    assert (alone.low, alone.high) == pytest.approx((done.summary.accuracy.low, done.summary.accuracy.high), abs=0.02)
    assert not powered.population.differs


def test_comparisons_measures_and_win_rates_have_values_too(run):
    human, judged = population(600)
    powered = run(human[:100], judged).summary.prediction_powered
    lead = powered.baselines["shorter"]
    assert lead.estimate.low > 0
    assert lead.p < 0.001
    assert lead.effective_labels > 1.2
    # The model is the baseline: nothing differs under any label.
    assert powered.baselines["longer"].estimate.value == 0.0
    assert powered.measures["kendall_tau"].estimate.value == pytest.approx(
        2 * powered.accuracy.estimate.value - 1, abs=0.02
    )
    rates = powered.win_rates
    assert list(rates) == ["strong", "weak"]
    assert rates["strong"].estimate.value + rates["weak"].estimate.value == pytest.approx(1)
    assert rates["strong"].estimate.value == pytest.approx(powered.accuracy.estimate.value, abs=0.01)
    assert rates["strong"].estimate.n == 100


def test_prompts_of_many_pairs_count_as_fewer_prompts(run):
    random = np.random.default_rng(5)

    def ranked(index, num_responses):
        names = [str(number) for number in range(num_responses)]
        tiers = tuple((name,) for name in random.permutation(names).tolist())
        responses = tuple(Response(id=name, text="x" * (1 + int(name))) for name in names)
        messages = (Message(role="user", content=f"question {index}"),)
        return Case(prompt=Prompt(id=f"p{index}", messages=messages), responses=responses, ranking=tiers)

    judged = [ranked(index, 2 if index % 5 else 8) for index in range(100)]
    human = [ranked(index, len(case.responses)) for index, case in enumerate(judged[:15])]
    done = run(human, judged, Config(num_resamples=10_000))
    alone = done.summary.prediction_powered.accuracy.human_only
    assert (alone.low, alone.high) == pytest.approx((done.summary.accuracy.low, done.summary.accuracy.high), abs=0.01)


def test_with_a_label_for_every_prompt_the_judge_changes_nothing(run):
    human, judged = population(80)
    powered = run(human, judged).summary.prediction_powered
    assert powered.accuracy.estimate == powered.accuracy.human_only
    assert powered.accuracy.judge_only is None
    assert powered.population.p_mix is None


def test_the_order_of_the_files_is_irrelevant(run):
    human, judged = population(200, categories=("chat", "code", "math"))
    first = run(human[:50], judged).summary.prediction_powered
    second = run(human[:50][::-1], judged[::-1]).summary.prediction_powered
    assert first == second


def test_categories_are_strata_and_one_without_human_labels_has_no_value(run):
    human, judged = population(300, categories=("chat", "code", "math"))
    powered = run(human[:60], judged).summary.prediction_powered
    assert set(powered.by_category) == {"chat", "code", "math"}
    some = run([case for case in human[:60] if case.prompt.category != ("math",)], judged).summary.prediction_powered
    assert some.accuracy.estimate.value is None
    assert "math" in some.accuracy.estimate.why
    assert some.by_category["math"].estimate.value is None
    assert some.by_category["chat"].estimate.value is not None
    assert some.population.differs, "all prompts of a category are missing"


def test_parallel_items_of_one_prompt_are_drawn_together(run):
    human, judged = population(150)
    chinese = [replace(case, prompt=replace(case.prompt, language="zh")) for case in judged]
    powered = run(human[:60], [*judged, *chinese]).summary.prediction_powered
    assert powered.num_judged == 300
    assert powered.by_language["en"].estimate.value is not None
    assert powered.by_language["zh"].estimate.value is None
    # The Chinese items repeat the labels of the English ones: they bring nothing that the other prompts did not.
    english = run(human[:60], judged).summary.prediction_powered
    assert powered.accuracy_micro.effective_labels == pytest.approx(english.accuracy_micro.effective_labels, rel=0.25)


def test_a_judge_without_verdicts_on_some_prompts_is_used_on_the_others(run):
    human, judged = population(400)
    judged = [replace(case, ranking=None) if index % 10 == 0 else case for index, case in enumerate(judged)]
    powered = run(human[:100], judged).summary.prediction_powered
    assert powered.accuracy.estimate.n == 100
    assert powered.accuracy.effective_labels > 1.1


def test_scores_made_elsewhere_are_those_of_all_judged_prompts(run, tmp_path):
    human, judged = population(100)
    lines = [f'{{"prompt": "p{index}", "language": "en", "scores": {{"a": 1, "b": 0}}}}' for index in range(100)]
    (tmp_path / "scores.jsonl").write_text("\n".join(lines) + "\n")
    done = run(human[:40], judged, model=None, scores=tmp_path / "scores.jsonl")
    by_model = run(human[:40], judged)
    assert done.summary.prediction_powered.accuracy == by_model.summary.prediction_powered.accuracy
    assert set(done.outputs) >= {"items.jsonl", "scores.jsonl", "judged_items.jsonl", "judged_scores.jsonl"}


def test_labels_that_do_not_belong_together_are_refused(run, tmp_path):
    human, judged = population(40)
    with pytest.raises(EvidenceError, match=r"1 of 11 human-labelled prompts.*'p40'"):
        run([*human[:10], pair_case(40, first_wins=True)], judged)
    with pytest.raises(EvidenceError, match="other responses"):
        run([pair_case(0, first_wins=True, texts=("x", "y"))], judged)
    with pytest.raises(ConfigError, match="belong together"):
        evaluate([], tmp_path / "out", CONFIG, model="longer", human=tmp_path / "few.jsonl")
    with pytest.raises(ConfigError, match="given twice"):
        run(human, judged) and evaluate(
            [tmp_path / "many.jsonl"], tmp_path / "out", CONFIG, model="longer",
            human=tmp_path / "few.jsonl", judged=tmp_path / "many.jsonl",
        )  # fmt: skip
    with pytest.raises(ConfigError, match="no effect"):
        evaluate([tmp_path / "many.jsonl"], tmp_path / "o", Config(width=0.1), model="longer")
    with pytest.raises(ConfigError, match="between 0 and 1"):
        run(human, judged, Config(width=5))


def test_the_command_says_what_the_judge_is_worth_and_how_many_labels_are_missing(tmp_path):
    human, judged = population(400)
    write_cases(tmp_path / "few.jsonl", human[:80])
    write_cases(tmp_path / "many.jsonl", judged)
    words = ["evaluate", "--human", tmp_path / "few.jsonl", "--judged", tmp_path / "many.jsonl", "--width", "0.1"]
    done = CliRunner().invoke(
        build_app(), [*map(str, words), "--model", "longer", "--out", str(tmp_path / "out"), "--verbose"]
    )
    assert done.exit_code == 0, done.output
    for expected in (
        " from human labels of 80 prompts and the judge's labels of 400; ",
        " from the human labels alone.",
        "so that one human label counts as 1.",
        "For an interval 10.0 points wide, human labels of ",
        "Win rate of strong",
        "Lead over: shorter answer wins",
    ):
        assert expected in done.output, expected


def test_win_rates_take_the_ranking_then_the_pairs_then_the_vote_of_the_judgments():
    case = pair_case(0, first_wins=True)
    assert list(credits_of(case)) == [("strong", "weak", 2)]
    assert list(credits_of(replace(case, ranking=(("a", "b"),)))) == [("strong", "weak", 1)]
    listed = replace(case, ranking=None, pairs=(Pair(better="b", worse="a"),))
    assert list(credits_of(listed)) == [("weak", "strong", 2)]

    def vote(left, right, verdict, judge="j"):
        return Judgment(left=left, right=right, verdict=verdict, judge=judge, kind="human")

    again = vote("b", "a", "left", "k")  # a repeated row is one vote
    votes = (vote("a", "b", "left"), vote("b", "a", "right", "i"), again, again, vote("a", "b", "none"))
    assert list(credits_of(replace(case, ranking=None, judgments=votes))) == [("strong", "weak", 2)]
    even = replace(case, ranking=None, judgments=votes[1:3])
    assert list(credits_of(even)) == [("strong", "weak", 1)]
    counter = CreditCounter()
    for each in (case, listed, replace(case, ranking=None)):
        counter.add(each)
    counted = counter.credits()
    assert counted.authors == ("strong", "weak")
    assert counted.won.tolist() == [[2, 0], [0, 2], [0, 0]]
    assert counted.of(("weak", "nobody")).pairs.tolist() == [[1, 0], [1, 0], [0, 0]]


def test_compare_has_the_difference_from_both_kinds_of_labels(tmp_path):
    human, judged = population(500)
    write_cases(tmp_path / "few.jsonl", human[:80])
    write_cases(tmp_path / "many.jsonl", judged)
    files = {"human": tmp_path / "few.jsonl", "judged": tmp_path / "many.jsonl"}
    for model in ("longer", "random"):
        evaluate([], tmp_path / model, CONFIG, model=model, **files)
    summary = compare(
        [tmp_path / "longer", tmp_path / "random"], tmp_path / "out", CompareConfig(num_resamples=300)
    ).summary
    (difference,) = summary.comparisons
    powered = difference.prediction_powered
    assert powered.human_only.value == pytest.approx(difference.accuracy.value)
    assert powered.effective_labels > 1.3
    assert powered.estimate.high - powered.estimate.low < powered.human_only.high - powered.human_only.low
    assert (powered.p < 0.05) == (powered.estimate.low > 0)
    done = CliRunner().invoke(
        build_app(), ["compare", str(tmp_path / "longer"), str(tmp_path / "random"), "--out", str(tmp_path / "again")]
    )
    assert "With the judge's labels, longer minus random is +" in done.output


def test_compare_refuses_labels_of_two_judges(tmp_path):
    human, judged = population(100)
    write_cases(tmp_path / "few.jsonl", human[:40])
    for seed, model in ((0, "longer"), (1, "random")):
        write_cases(tmp_path / "many.jsonl", judged if seed == 0 else judged[:90])
        files = {"human": tmp_path / "few.jsonl", "judged": tmp_path / "many.jsonl"}
        evaluate([], tmp_path / model, CONFIG, model=model, **files)
    with pytest.raises(EvidenceError, match="judge's labels are not those"):
        compare([tmp_path / "longer", tmp_path / "random"], tmp_path / "out", CompareConfig(num_resamples=50))


def test_only_categories_with_both_kinds_of_prompts_tell_what_the_judge_gets_wrong(run):
    """The judge is good at chat and bad at math, where every prompt has a human label, or none has one of the judge."""
    chat, judged_chat = population(600)
    math, judged_math = population(900, agreement=0.1, seed=1, categories=("math",))
    math, judged_math = (
        [replace(case, prompt=replace(case.prompt, id=f"m{case.prompt.id}")) for case in cases]
        for cases in (math, judged_math)
    )
    same, rest = (right_share(judged_chat[part]) for part in (slice(100), slice(100, None)))
    no_verdict = [replace(case, ranking=None) for case in judged_math[:80]]
    for labelled, judged in (
        (math[:80], [*judged_chat, *judged_math[:80]]),
        (math[:80], [*judged_chat, *no_verdict, *judged_math[80:]]),
    ):
        powered = run([*chat[:100], *labelled], judged).summary.prediction_powered
        for both in (powered.accuracy, powered.measures["kendall_tau"], powered.baselines["shorter"]):
            # The measure and the lead over the opposite answer are 2 a - 1: their differences are twice as large.
            size = 1 if both is powered.accuracy else 2
            assert both.weight > 0.05
            moved = both.estimate.value - both.human_only.value
            assert moved == pytest.approx(both.weight * size * (rest - same), abs=1e-9)


def right_share(cases):
    """The share of cases in which the longer answer wins."""
    return sum(case.ranking == (("a",), ("b",)) for case in cases) / len(cases)


def test_a_category_without_any_pair_hides_no_difference(run):
    human, judged = population(300)
    even = [pair_case(f"e{index}", first_wins=None, category="even") for index in range(20)]
    powered = run([*human[:80], *even[:5]], [*judged, *even]).summary.prediction_powered
    assert powered.accuracy.estimate.value is not None
    assert powered.baselines["shorter"].estimate.value is not None


def test_a_measure_of_a_category_without_human_labels_has_no_value(run):
    human, judged = population(300, categories=("chat", "math"))
    labelled = [case for case in human[:120] if case.prompt.category == ("chat",)]
    powered = run(labelled, judged).summary.prediction_powered
    assert powered.measures["kendall_tau"].estimate.value is None
    assert "math" in powered.measures["kendall_tau"].estimate.why


def test_people_and_a_judge_with_other_languages_of_one_prompt_are_told_so(run):
    human, judged = population(6)
    for language, named in ((None, "without a language"), ("ja", "in 'ja'")):
        other = [replace(case, prompt=replace(case.prompt, language=language)) for case in judged]
        german = [replace(case, prompt=replace(case.prompt, language="de")) for case in human]
        with pytest.raises(EvidenceError, match=f"which people labelled in 'de' and the judge {named}\n.*one language"):
            run(german, other)


def test_labels_are_checked_before_the_model_scores(run, tmp_path):
    human, judged = population(6)
    changed = replace(human[0], prompt=replace(human[0].prompt, id="another"))
    with pytest.raises(EvidenceError, match="1 of 6 human-labelled prompts are not among the judged ones"):
        run([changed, *human[1:]], judged)
    with pytest.raises(EvidenceError, match="none of 6 cases has a comparable pair"):
        run([replace(case, ranking=None) for case in human], judged)
    assert not (tmp_path / "out").exists()


def test_a_leaderboard_ranks_by_both_kinds_of_labels(tmp_path):
    human, judged = population(900, seed=3)
    write_cases(tmp_path / "few.jsonl", human[:60])
    write_cases(tmp_path / "many.jsonl", judged)
    files = {"human": tmp_path / "few.jsonl", "judged": tmp_path / "many.jsonl"}
    for name in ("longer", "random", "shorter"):
        evaluate([], tmp_path / name, CONFIG, model=name, **files)
    folders = [tmp_path / name for name in ("shorter", "random", "longer")]
    board = leaderboard(folders, out=tmp_path / "board", config=LeaderboardConfig(num_resamples=300)).summary
    assert [row.name for row in board.rows] == ["longer", "random", "shorter"]
    for row in board.rows:
        powered = read_evaluation(tmp_path / row.name).summary.prediction_powered
        assert row.value == powered.accuracy.estimate.value != powered.accuracy.human_only.value
        number = row.by_column["headline", "accuracy"]
        assert (number.value, number.low, number.high) == (
            row.value,
            powered.accuracy.estimate.low,
            powered.accuracy.estimate.high,
        )
    # The first is right where the last is wrong: no resample of the labels puts them the other way round.
    assert board.rows[0].rank_shares[0] == board.rows[2].rank_shares[2] == 1.0
    compared = compare(
        [tmp_path / "longer", tmp_path / "shorter"], out=tmp_path / "c", config=CompareConfig(num_resamples=300)
    )
    p_value = compared.summary.comparisons[0].prediction_powered.p
    assert p_value < 0.001
    pair = next(each for each in board.comparisons if {each.first, each.second} == {"longer", "shorter"})
    assert pair.p_corrected == pytest.approx(3 * p_value, rel=1.0), "Holm over three pairs"
    assert "a judge's of many" in board.about
