import numpy as np
import pytest

from each_value import each
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.ranking.judgment_table import (
    LEFT,
    NONE,
    RIGHT,
    TIE,
    Only,
    Verdicts,
    check_admits,
    edges_of,
    judgment_table,
    majority,
    parse_only,
)
from strategies import case, judgment

JUDGMENTS = (
    judgment("a>b", judge="ann", kind="human", batch="first"),
    judgment("b<c", judge="甲", kind="human"),
    judgment("a=c", judge="m", kind="llm", batch="first"),
    judgment("c?b", judge="ann", kind="model", batch="second"),
)


def test_columns_hold_positions_codes_and_names():
    found = judgment_table([case(id="p"), case(id="q", responses="abc", judgments=JUDGMENTS)])
    assert found.verdicts.graph.tolist() == [1, 1, 1, 1]
    assert found.verdicts.left.tolist() == [0, 1, 0, 2]
    assert found.verdicts.right.tolist() == [1, 2, 2, 1]
    assert found.verdicts.verdict.tolist() == [0, 1, 2, 3]
    assert [found.judges[index] for index in found.judge] == ["ann", "甲", "m", "ann"]
    assert [found.kinds[index] for index in found.kind] == ["human", "human", "llm", "model"]
    assert found.num_responses.tolist() == [5, 3]
    assert [outline.responses for outline in found.cases] == [tuple("abcde"), tuple("abc")]


def test_an_empty_category_and_an_absent_language_are_named():
    outlines = judgment_table([case(), case(id="q", category=("数学", "代数"), language="zh", ranking=(("a",),))]).cases
    assert (outlines[0].category, outlines[0].language) == ("uncategorised", "unspecified")
    assert (outlines[1].category, outlines[1].language, outlines[1].ranking) == ("数学", "zh", (("a",),))


@pytest.mark.parametrize(
    ("only", "admitted"),
    [
        (Only(), [0, 1, 2, 3]),
        (Only(kind=("human",)), [0, 1]),
        (Only(kind=("human", "model")), [0, 1, 3]),
        (Only(judge=("ann",)), [0, 3]),
        (Only(judge=("ann",), kind=("human",)), [0]),
        (Only(batch=("first", "second")), [0, 2, 3]),
        (Only(batch=("second",), kind=("human",)), []),
    ],
)
def test_a_judgment_counts_if_every_key_admits_it(only, admitted):
    assert [index for index, counts in enumerate(only.admits(JUDGMENTS)) if counts] == admitted
    assert len(judgment_table([case(judgments=JUDGMENTS)], only).judge) == len(admitted)


def test_no_cases_are_no_evidence():
    found = judgment_table([])
    assert found.cases == ()
    assert len(found.verdicts.left) == 0


def test_only_is_parsed_key_by_key():
    assert parse_only(["kind=human", "judge=a=b", "kind=llm"]) == {"kind": ["human", "llm"], "judge": ["a=b"]}
    settings = parse_only(["kind=llm"])
    assert resolve_config(Only, settings, where="only") == Only(kind=("llm",))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("kid=human", "did you mean 'kind'"),
        ("kind", 'only=\\["kind=NAME"\\]'),
        ("kind=", 'only=\\["kind=NAME"\\]'),
        ("=x", "allowed"),
    ],
)
def test_a_key_that_is_not_there_is_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        parse_only([given])


def test_a_kind_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match=r"kind is 'humn'\n  allowed: did you mean 'human'"):
        resolve_config(Only, parse_only(["kind=humn"]), where="only")


@pytest.mark.parametrize(
    ("only", "said"),
    [
        (Only(judge=("an",)), "only judge=an admits no judgment\n  allowed: judge: ann, m, 甲"),
        (
            Only(judge=("m",), kind=("human",)),
            "kind=human judge=m admits no judgment\n  allowed: kind: human, llm, model",
        ),
        (Only(batch=("third",)), "  allowed: batch: first, second"),
    ],
)
def test_what_is_admitted_nowhere_is_refused_with_the_names_that_there_are(only, said):
    cases = [case(id="p"), case(id="q", responses="abc", judgments=JUDGMENTS)]
    with pytest.raises(EvidenceError) as error:
        check_admits(only, cases, where="c.jsonl")
    assert str(error.value).startswith("c.jsonl: only ")
    assert said in str(error.value)
    check_admits(Only(), cases, where="c.jsonl")
    with pytest.raises(EvidenceError, match="allowed: batch: the file has none"):
        check_admits(Only(batch=("first",)), cases[:1], where="c.jsonl")


def test_of_many_names_twenty_are_listed_and_reading_stops_at_what_is_admitted():
    many = [judgment("a>b", judge=f"judge {number:02}") for number in range(21)]
    with pytest.raises(EvidenceError, match="judge 18, judge 19, …"):
        check_admits(Only(judge=("x",)), [case(responses="ab", judgments=many)], where="c.jsonl")
    left = iter([case(id="p", responses="ab", judgments=many), case(id="q")])
    check_admits(Only(judge=("judge 20",)), left, where="c.jsonl")
    assert [one.prompt.id for one in left] == ["q"]


def verdicts(*rows):
    """Rows of (graph, left, right, verdict)."""
    return Verdicts(*np.array(rows, np.int64).reshape(-1, 4).T)


def as_set(edges):
    return set(zip(*(column.tolist() for column in edges), strict=True))


def test_a_tie_is_an_edge_both_ways_and_none_is_no_edge():
    given = verdicts((0, 0, 1, LEFT), (0, 1, 2, RIGHT), (1, 0, 1, TIE), (1, 1, 2, NONE))
    assert as_set(edges_of(given)) == {(0, 0, 1), (0, 2, 1), (1, 0, 1), (1, 1, 0)}


def test_better_and_worse_follow_the_verdict():
    given = verdicts((0, 3, 1, LEFT), (0, 3, 1, RIGHT), (0, 3, 1, TIE))
    assert given.better[:2].tolist() == [3, 1]
    assert given.worse[:2].tolist() == [1, 3]
    assert given.is_strict.tolist() == [True, True, False]


@each(
    ("votes", "expected"),
    [
        ("a", {(0, 0, 1)}),
        ("aab", {(0, 0, 1)}),
        ("abb", {(0, 1, 0)}),
        ("ab", {(0, 0, 1), (0, 1, 0)}),
        ("a=", {(0, 0, 1), (0, 1, 0)}),
        ("aa=", {(0, 0, 1)}),
        ("aabb=", {(0, 0, 1), (0, 1, 0)}),
        ("aab==", {(0, 0, 1), (0, 1, 0)}),
        ("a???", {(0, 0, 1)}),
        ("??", set()),
    ],
)
@each("flipped", [False, True])
def test_the_majority_needs_strictly_most_votes(votes, expected, *, flipped):
    code = {"a": LEFT, "b": RIGHT, "=": TIE, "?": NONE}
    mirrored = {LEFT: RIGHT, RIGHT: LEFT}
    rows = []
    for index, vote in enumerate(votes):
        is_flipped = flipped and index % 2 == 0  # the same vote, given with the responses the other way round
        verdict = mirrored.get(code[vote], code[vote]) if is_flipped else code[vote]
        rows.append((0, 1, 0, verdict) if is_flipped else (0, 0, 1, verdict))
    assert as_set(edges_of(verdicts(*rows), "majority")) == expected


def test_each_pair_of_each_graph_votes_by_itself():
    given = verdicts(
        (0, 0, 1, LEFT), (1, 0, 1, RIGHT), (1, 0, 1, RIGHT), (1, 1, 4, TIE), (0, 4, 0, LEFT), (1, 0, 1, LEFT)
    )
    assert as_set(edges_of(given, "majority")) == {(0, 0, 1), (0, 4, 0), (1, 1, 0), (1, 1, 4), (1, 4, 1)}


def test_nothing_in_nothing_out():
    for aggregate in ("none", "majority"):
        assert as_set(edges_of(verdicts(), aggregate)) == set()
    assert len(majority(verdicts()).graph) == 0


def stage(short, task, stage, judge="j"):
    return judgment(short, judge=judge, task=task, meta={"stage": stage})


SETTLED = (
    stage("a>b", "1-1", "annotation", "ann"),
    stage("b>a", "1-1", "annotation", "甲"),
    stage("a>b", "1-1-alignment", "alignment"),
    stage("b>a", "1-1-delivery", "delivery"),
    stage("a>c", "1-2", "annotation", "ann"),
    stage("c>a", "1-2", "annotation", "甲"),
    judgment("b>c", judge="m", kind="llm", task="1-1"),
)


def test_what_stands_is_the_last_stage_of_each_task():
    # Of task 1-1 what delivery settled; of 1-2, which nobody settled, both answers; and what is of no stage.
    assert Only(evidence=("aligned",)).admits(SETTLED) == [False, False, False, True, True, True, True]
    assert Only(evidence=("aligned",), judge=("ann",)).admits(SETTLED) == [False] * 4 + [True, False, False]
    assert Only().admits(SETTLED) == [True] * 7
    found = judgment_table([case(judgments=SETTLED), case(id="q", judgments=JUDGMENTS)])
    assert [outline.num_overruled for outline in found.cases] == [3, 0]
    aligned = judgment_table([case(judgments=SETTLED)], Only(evidence=("aligned",)))
    assert [outline.num_overruled for outline in aligned.cases] == [0]
    assert len(aligned.judge) == 4


def test_the_evidence_that_counts_is_aligned_or_all():
    assert parse_only(["evidence=aligned"]) == {"evidence": ["aligned"]}
    with pytest.raises(ConfigError, match="aligned"):
        resolve_config(Only, {"evidence": ["both"]}, where="only")
