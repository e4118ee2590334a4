import numpy as np
import pytest

import tiny
from reference_measures import reference_estimate
from steelyard.core.errors import ConfigError, EvidenceError, OutputError
from steelyard.core.text import num_characters
from steelyard.core.types import Case, Pair, Response
from steelyard.curation.debiasing import (
    Balance,
    BeforeAfter,
    Config,
    GroupBalance,
    PairSurvey,
    check_settings,
    count_pairs,
    summarize,
)
from steelyard.io.cases import read_cases
from steelyard.ranking.pairs import UNLISTED
from steelyard.stages.debias import debias
from steelyard.stages.score import score
from strategies import case, prompt
from supervision_files import judged, write


def one(name, better, worse, language="zh", **fields):
    """A case of two responses, b better than w."""
    return Case(
        prompt=prompt(name, f"问题 {name}", language=language),
        responses=(Response(id="b", text=better), Response(id="w", text=worse)),
        **{"ranking": (("b",), ("w",)), **fields},
    )


@pytest.fixture
def cases(tmp_path):
    longer = [one(f"l{index}", "好" * 20, "坏") for index in range(9)]
    shorter = [one(f"s{index}", "good", "bad and long", language="en") for index in range(3)]
    equal = [one("e", "好好", "坏坏"), one("close", "好" * 20, "坏" * 19, language="en")]
    return write(tmp_path / "c.jsonl", [*longer, *shorter, *equal, case("none")])


def kept(folder):
    return [found.prompt.id for found in read_cases(folder / "cases.jsonl") if found.pairs]


def test_the_larger_side_is_downsampled_and_equals_stay(cases, tmp_path):
    run = debias(cases, tmp_path / "out")
    assert run.summary.overall == BeforeAfter(Balance(10, 3, 1, 10 / 13), Balance(3, 3, 1, 0.5))
    assert (run.counts.num_in, run.counts.num_used, run.counts.dropped) == (14, 7, {"downsampled": 7})
    assert run.counts.noted == {
        "cases": 15,
        "cases without a pair": 1,
        "cases left without a pair": 7,
        "pairs on neither side": 1,
    }
    names = kept(tmp_path / "out")
    assert {"s0", "s1", "s2", "e"} <= set(names)
    assert len(names) == 7
    by_id = {found.prompt.id: found for found in read_cases(tmp_path / "out" / "cases.jsonl")}
    assert by_id["e"].pairs == (Pair(better="b", worse="w"),)
    assert by_id["e"].ranking == (("b",), ("w",))
    assert len(by_id) == 15
    assert debias(cases, tmp_path / "out") == run
    seeds = {
        tuple(kept(debias(cases, tmp_path / f"s{seed}", Config(seed=seed)) and tmp_path / f"s{seed}"))
        for seed in range(5)
    }
    assert len(seeds) > 1


def test_within_languages(cases, tmp_path):
    run = debias(cases, tmp_path / "out", Config(within="language"))
    by_group = {row.group: row for row in run.summary.groups}
    assert by_group[("zh",)].after == Balance(0, 0, 1, None)
    assert by_group[("en",)].before.num_more == by_group[("en",)].after.num_less == 1


def test_accuracy_before_and_after_on_length_matched_pairs(cases, tmp_path):
    score(cases, tmp_path / "scored", model="longer")
    run = debias(cases, tmp_path / "out", scores=tmp_path / "scored" / "scores.jsonl")
    accuracy = run.summary.accuracy
    assert accuracy.all.before.value == pytest.approx(10 / 14)
    assert accuracy.all.after.value == pytest.approx(3 / 7)
    # Length-matched: e, whose scores are equal and so wrong, and close (19 of 20), which is right, if it is kept.
    assert (accuracy.length_matched.before.value, accuracy.length_matched.before.n) == (0.5, 2)
    assert accuracy.length_matched.after.n == 1 + ("close" in kept(tmp_path / "out"))
    assert accuracy.better_is_longer.after.record() == reference_estimate(1.0, 3, 3)
    assert accuracy.better_is_not_longer.after.value == 0.0
    assert debias(cases, tmp_path / "plain").summary.accuracy is None


def test_listed_pairs_stay_to_the_letter(tmp_path):
    pairs = (Pair(better="b", worse="w", weight=0.3), Pair(better="w", worse="b", weight=0.7, margin=1.0))
    file = write(tmp_path / "c.jsonl", [one("p", "long", "s", pairs=pairs)])
    run = debias(file, tmp_path / "out")
    assert next(read_cases(tmp_path / "out" / "cases.jsonl")).pairs == pairs
    assert run.counts.dropped == {}
    tiers = debias(
        write(tmp_path / "d.jsonl", [one("p", "ab", "cd", pairs=pairs)]), tmp_path / "tiers", Config(pairs="tiers")
    )
    assert tiers.counts.num_in == 1
    assert next(read_cases(tmp_path / "tiers" / "cases.jsonl")).pairs == (Pair(better="b", worse="w"),)


def test_authors_and_markdown(tmp_path):
    authored = [
        Case(
            prompt=prompt(f"p{index}", str(index)),
            responses=(
                Response(id="b", text="- one\n- two" if index else "plain", author="gpt" if index else "llama"),
                Response(id="w", text="# title", author="llama" if index else "gpt"),
            ),
            ranking=(("b",), ("w",)),
        )
        for index in range(4)
    ]
    file = write(tmp_path / "c.jsonl", authored)
    by_author = debias(file, tmp_path / "author", Config(by="author")).summary
    (group,) = by_author.groups
    assert group == GroupBalance(("gpt", "llama"), Balance(1, 3, 0, 0.25), Balance(1, 1, 0, 0.5))
    marks = debias(file, tmp_path / "marks", Config(by="markdown")).summary.overall
    assert (marks.before.num_more, marks.before.num_less, marks.after.num_more) == (3, 1, 1)


def test_tokens_of_a_named_tokenizer(tmp_path):
    folder = tiny.save_base(tmp_path / "base")
    # A byte is a token where no merge was learnt: six for two rare characters, which are fewer characters than xyzz.
    file = write(tmp_path / "c.jsonl", [one("p", "龘龘", "xyzz"), one("q", "xy", "xyzz")])
    with pytest.raises(EvidenceError, match="all 2 pairs are on one side"):
        debias(file, tmp_path / "characters")
    tokens = debias(file, tmp_path / "tokens", Config(tokenizer=folder))
    assert tokens.summary.overall.before == Balance(1, 1, 0, 0.5)
    assert tokens.summary.unit == f"tokens of {folder}"
    assert "tokenizer" in tokens.inputs


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (Config(by="author"), EvidenceError, "no pair has two different known authors"),
        (Config(length_tolerance=1.0), ConfigError, "length_tolerance is 1.0"),
        (Config(by="author", tokenizer="x"), ConfigError, "tokenizer with by=author"),
    ],
)
def test_what_cannot_be_is_refused(cases, tmp_path, config, error, message):
    with pytest.raises(error, match=message):
        debias(cases, tmp_path / "out", config)
    assert not (tmp_path / "out").exists()


def test_files_that_leave_nothing_are_refused(tmp_path, cases):
    with pytest.raises(EvidenceError, match="no case has a pair"):
        debias(write(tmp_path / "none.jsonl", [case("p")]), tmp_path / "out")
    with pytest.raises(EvidenceError, match="all 2 pairs are on one side"):
        debias(write(tmp_path / "one.jsonl", [one("p", "long", "s"), one("q", "long", "t")]), tmp_path / "out")
    debias(cases, tmp_path / "out")
    with pytest.raises(OutputError, match="other inputs or settings"):
        debias(cases, tmp_path / "out", Config(seed=1))


def test_a_choice_that_brings_back_what_was_left_out_says_so(tmp_path):
    left_out, listed = (
        one("p", "好好", "坏坏", pairs=()),
        one("q", "好好", "坏坏", pairs=(Pair(better="b", worse="w"),)),
    )
    file = write(tmp_path / "c.jsonl", [left_out, listed])
    counts = debias(file, tmp_path / "out", Config(pairs="tiers")).counts
    assert (counts.num_in, counts.noted[UNLISTED]) == (2, 1)
    assert UNLISTED not in debias(file, tmp_path / "listed").counts.noted


@pytest.mark.parametrize(
    "config", [Config(length_tolerance=-0.1), Config(length_tolerance=1.0), Config(by="author", tokenizer="t")]
)
def test_what_makes_no_sense_is_refused(config):
    with pytest.raises(ConfigError):
        check_settings(config, with_scores=True)


def test_what_can_do_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"length_tolerance is 0\.1, and there are no scores\n  do: give scores=FILE"):
        check_settings(Config(length_tolerance=0.1), with_scores=False)
    check_settings(Config(length_tolerance=0.1), with_scores=True)


@pytest.mark.parametrize(
    "config", [Config(), Config(length_tolerance=0.0), Config(by="markdown", tokenizer="t", within="both")]
)
def test_what_fits_is_taken(config):
    check_settings(config, with_scores=True)


def test_pairs_are_matched_within_a_tenth_unless_asked_otherwise():
    check_settings(Config(), with_scores=False)
    assert (Config().tolerance, Config(length_tolerance=0.0).tolerance) == (0.1, 0.0)


SURVEY = PairSurvey(
    side=np.array([1, 1, -1, 0]),
    group=np.array([0, 0, 1, 0]),
    priority=np.arange(4).astype(np.uint64),
    prompt=np.array([0, 0, 1, 2]),
    is_matched=np.array([False, True, False, True]),
    is_longer=np.array([True, True, False, False]),
    margin=np.array([1.0, -1.0, np.nan, 0.0]),
    groups=(("zh",), ("en",)),
    pairs_of_case=np.array([2, 1, 1, 0]),
)
STAYS = np.array([True, False, True, True])


def test_counts_are_of_pairs():
    counts = count_pairs(SURVEY, STAYS, 0)
    assert (counts.num_in, counts.num_used, counts.dropped) == (4, 3, {"downsampled": 1})
    assert counts.noted == {"cases": 4, "cases without a pair": 1, "pairs on neither side": 1}
    assert count_pairs(SURVEY, STAYS | True, 0).dropped == {}


def test_both_sides_and_the_model_before_and_after():
    summary = summarize(SURVEY, STAYS, Config(within="language"), with_scores=True)
    assert summary.overall.before == Balance(2, 1, 1, 2 / 3)
    assert summary.overall.after == Balance(1, 1, 1, 0.5)
    assert [(row.group, row.after.num_more) for row in summary.groups] == [(("zh",), 1), (("en",), 0)]
    accuracy = summary.accuracy
    assert accuracy.num_unscored == 1
    # Scored: right, wrong, and a tie that is wrong; the second is the one that goes.
    assert (accuracy.all.before.value, accuracy.all.before.n) == (1 / 3, 3)
    assert (accuracy.all.after.value, accuracy.all.after.n) == (0.5, 2)
    assert (accuracy.length_matched.before.n, accuracy.length_matched.after.n) == (2, 1)
    assert summarize(SURVEY, STAYS, Config(), with_scores=False).accuracy is None


def test_length_is_in_characters_unless_a_tokenizer_is_named():
    assert num_characters(judged("p", texts=("👋🏽好", "")).responses[0]) == pytest.approx(3)
