import pytest

from simulated_panels import reliability_of
from steelyard.ranking.annotation_features import TraitCollector, time_of
from steelyard.ranking.judgment_table import judgment_table
from steelyard.ranking.panel_counts import PANEL, PANEL_WIDTH, panel_counts
from steelyard.statistics.unit_bootstrap import Tally
from strategies import case, judgment


def counts_of(*cases):
    traits = TraitCollector()
    table = judgment_table(cases, visit=traits.add)
    return panel_counts(table, traits.traits(table))


def summed(counts):
    tally = Tally(PANEL_WIDTH)
    tally.add(counts.entries)
    table = tally.draw(seed=0, num_resamples=1)
    return {group: table.point([group])[0].tolist() for group in table.groups}


def hand_made():
    """On (a, b) ann says a, bob a and cat b; on (a, c) ann and bob tie. Pairs of one judge do not count."""
    return case(
        responses="abc",
        judgments=[
            judgment("a>b", judge="ann", shown=("b", "a")),
            judgment("b<a", judge="bob"),
            judgment("a<b", judge="cat", shown=("b", "a")),
            judgment("a=c", judge="ann"),
            judgment("c=a", judge="bob"),
            judgment("b>c", judge="cat"),
        ],
    )


def test_labels_by_those_of_the_others_by_hand():
    table = summed(counts_of(hand_made()))
    # Ann on (a, b): one of two others says a (cell 0), one b (cell 1), half each. On (a, c): tie and tie (cell 8).
    assert table["judge", "ann"][:9] == [0.5, 0.5, 0, 0, 0, 0, 0, 0, 1]
    # Cat: b where both others say a (cell 3 = label b, others a).
    assert table["judge", "cat"][:9] == [0, 0, 0, 1, 0, 0, 0, 0, 0]
    # As written, on shared pairs: ann left and tie, bob right and tie, cat right. Ann chose the last shown, cat the
    # first.
    assert table["judge", "ann"][PANEL["verdicts"]] == [1, 0, 1]
    assert table["judge", "cat"][PANEL["verdicts"]] == [0, 1, 0]
    assert table["judge", "ann"][PANEL["places"]] == [0, 1]
    assert table["judge", "cat"][PANEL["places"]] == [1, 0]
    assert table["judge", "bob"][PANEL["places"]] == [0, 0]


def test_an_llm_is_compared_with_the_vote_of_the_people():
    people = [judgment("a>b", judge="ann"), judgment("a>b", judge="bob"), judgment("b>a", judge="cat")]
    model = [judgment("b>a", judge="m", kind="llm"), judgment("a=c", judge="m", kind="llm")]
    one = case(responses="abc", judgments=[*people, *model])
    table = summed(counts_of(one))
    assert table["people", "m"][:9] == [0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert ("people", "ann") not in table
    with_people = {judge.judge: judge.with_people for judge in reliability_of([one]).judges}
    assert (with_people["m"].value, with_people["m"].n) == (0.0, 1)
    assert with_people["ann"] is None


def test_a_judge_without_a_shared_pair_is_not_listed():
    alone = case(responses="ab", judgments=[judgment("a>b", judge="ann"), judgment("a<b", judge="ann")])
    assert summed(counts_of(alone)) == {}
    assert reliability_of([alone]) is None
    assert reliability_of([case(judgments=())]) is None


def test_contradictions_are_pairs_against_most_of_the_others():
    found = counts_of(hand_made()).contradictions
    assert set(found) == {"cat"}
    (only,) = found["cat"]
    assert (only.preferred, only.other, only.num_against, only.num_others) == ("b", "a", 2, 2)


def test_a_prompt_gives_a_judge_one_contradiction_and_many_prompts_the_five_with_most_others():
    def one(number, others):
        judgments = [judgment("b>a", judge="odd"), judgment("c>a", judge="odd")]
        judgments += [judgment(short, judge=f"j{index}") for index in range(others) for short in ("a>b", "a>c")]
        return case(id=f"p{number}", responses="abc", judgments=judgments)

    found = reliability_of([one(number, 1 + number % 4) for number in range(12)], batch=5).judges
    odd = next(judge for judge in found if judge.judge == "odd")
    assert [pair.num_against for pair in odd.contradictions] == [4, 4, 4, 3, 3]
    assert len({pair.prompt for pair in odd.contradictions}) == 5


@pytest.mark.parametrize(
    ("meta", "seconds"),
    [
        ({"time": 12}, 12.0),
        ({"created_at": "1970-01-02T00:00:00Z"}, 86400.0),
        ({"timestamp": "1970-01-01T01:00:00+01:00"}, 0.0),
        ({"tstamp": 1_700_000_000_000}, 1_700_000_000.0),
    ],
)
def test_times_of_judgments(meta, seconds):
    assert time_of(meta) == seconds


@pytest.mark.parametrize("meta", [{}, {"time": "soon"}, {"time": True}, {"time": 10**400}, {"time": float("nan")}])
def test_what_is_no_time(meta):
    assert time_of(meta) != time_of(meta)
