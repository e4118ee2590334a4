import json

import pytest

from steelyard.core.errors import FileError, RecordError
from steelyard.report.case_scores import find_scores
from strategies import case


@pytest.fixture
def write(tmp_path):
    def write(*rows, name="scores.jsonl"):
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return write


ITEM = case("p", "ab", language="zh")


def test_the_line_of_the_language_is_found_before_one_without(write):
    path = write(
        {"prompt": "o", "scores": {"a": 9}},
        {"prompt": "p", "scores": {"a": 1, "b": 2}},
        {"prompt": "p", "language": "en", "scores": {"a": 3, "b": 4}},
        {"prompt": "p", "language": "zh", "scores": {"a": 5, "b": None}},
    )
    scored, sentence = find_scores(path, ITEM)
    assert scored.scores.scores == {"a": 5, "b": None}
    assert scored.scores.unscored == {"b": "no reason given"}
    assert sentence == f"scores: {path}:4"
    scored, sentence = find_scores(path, case("p", "ab", language="fr"))
    assert scored.scores.scores == {"a": 1, "b": 2}
    assert sentence == f"scores: {path}:2"


def test_no_line_and_one_that_does_not_fit_are_said(write):
    path = write({"prompt": "p", "language": "zh", "scores": {"a": 1}})
    assert find_scores(path, case("q", "ab")) == (None, f"scores: {path} has no line for this item")
    scored, sentence = find_scores(path, ITEM)
    assert scored is None
    assert sentence == f"scores: {path}:1 does NOT FIT this item: it gives no score for response 'b' of prompt 'p'"


def test_the_result_of_an_evaluation_is_beside_its_scores(write):
    path = write({"prompt": "p", "language": "zh", "scores": {"a": 1, "b": 2}})
    items = write({"prompt": "p", "language": "zh", "num_pairs": 1, "num_correct": 1, "new": 0}, name="items.jsonl")
    scored, sentence = find_scores(path, ITEM, items)
    assert (scored.outcome.num_pairs, scored.outcome.num_correct) == (1, 1)
    assert sentence == f"scores: {path}:1; its result: {items}:1"


@pytest.mark.parametrize("line", ['{"prompt": "p"}', '{"prompt": "p", "scores": {"a": "high"}}', '{"prompt": '])
def test_a_broken_line_is_named(write, line):
    path = write({"prompt": "o", "scores": {}}, line)
    with pytest.raises(RecordError, match=r"scores\.jsonl:2"):
        find_scores(path, ITEM)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        find_scores(tmp_path / "none.jsonl", ITEM)
