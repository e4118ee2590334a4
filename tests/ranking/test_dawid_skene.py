import numpy as np
import pytest

from steelyard.core.numerics import generator
from steelyard.ranking.dawid_skene import Pairs, VoteCollector, Votes, fit_dawid_skene, vote_columns
from steelyard.ranking.judgment_table import LEFT, TIE, judgment_table
from steelyard.ranking.resolution import resolve_table
from strategies import case, judgment

ACCURACY = {"ann": 0.95, "bob": 0.9, "cid": 0.55, "dee": 0.55}


def judged(number=60):
    """Cases of a over b over c, of which each judge tells every pair right with a probability of its own."""
    random = generator(0, "judges")
    cases = []
    for index in range(number):
        judgments = [
            judgment(pair if random.random() < accuracy else pair[::-1], judge=name)
            for name, accuracy in ACCURACY.items()
            for pair in ("a>b", "b>c", "a>c")
        ]
        cases.append(case(id=f"p{index}", responses="abc", judgments=judgments))
    return cases


def fit(*batches):
    collector = VoteCollector()
    for batch in batches:
        collector.add(vote_columns(judgment_table(batch)))
    return collector.fit()


def test_two_passes_over_batches_give_the_answers_of_one_fit():
    cases = judged()
    # The second batch names the judges in another order.
    raters = fit(cases[:20], [case(id="z", judgments=[judgment("a=b", judge="dee")])], cases[20:])
    table = judgment_table([*cases[:20], case(id="z", judgments=[judgment("a=b", judge="dee")]), *cases[20:]])
    columns = vote_columns(table)
    pairs = Pairs(columns.case, columns.first, columns.second)
    whole = fit_dawid_skene(Votes(pairs, columns.judge, columns.label), pairs)
    combined = raters.combine(table)
    place = {key: at for at, key in enumerate(zip(*(column.tolist() for column in combined[:3]), strict=True))}
    for at, key in enumerate(zip(*(column.tolist() for column in pairs), strict=True)):
        first, second, _ = whole.answers[at]
        expected = TIE if np.isclose(first, second) else np.argmax(whole.answers[at])
        assert combined.verdict[place[key]] == expected
    assert len(place) == len(set(zip(*(column.tolist() for column in pairs), strict=True)))
    assert raters.share == pytest.approx(whole.share)


def test_accurate_judges_outweigh_a_majority_of_guessers():
    cases = judged()
    raters = fit(cases)
    summary = raters.summary()
    assert list(summary.by_judge) == sorted(ACCURACY)
    assert min(summary.by_judge[name].strict for name in ("ann", "bob")) > 0.8
    assert max(summary.by_judge[name].strict for name in ("cid", "dee")) < 0.75
    split = [judgment("a>b", judge="ann"), *(judgment("b>a", judge=name) for name in ("cid", "dee"))]
    table = judgment_table([case(responses="ab", judgments=split)])
    assert raters.combine(table).verdict.tolist() == [LEFT]
    assert resolve_table(table, "majority", raters).rankings == ((("a",), ("b",)),)
    assert resolve_table(table, "majority").rankings == ((("b",), ("a",)),)


def test_equally_probable_labels_are_a_tie_and_unread_judgments_do_not_vote():
    even = [judgment("a>b", judge="ann"), judgment("b>a", judge="bob"), judgment("c?a", judge="eve")]
    cases = [case(id="x", responses="abc", judgments=even), case(id="none")]
    raters = fit(cases)
    assert raters.judges == ("ann", "bob")
    combined = raters.combine(judgment_table(cases))
    assert (combined.left.tolist(), combined.right.tolist(), combined.verdict.tolist()) == ([0], [1], [TIE])


def test_without_a_readable_judgment_nothing_is_fitted():
    assert fit([case(id="x", judgments=[judgment("a?b")]), case(id="y")]) is None
