import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import RecordError
from steelyard.core.types import Scores
from steelyard.io.cases import resumed_lines
from steelyard.io.scored_cases import JoinedScores
from strategies import case

CASES = [case("p", "ab", language="zh"), case("p", "ab", language="en"), case("שלום", "xyz")]


def line(one, start=0.0):
    scores = {response.id: start + place for place, response in enumerate(one.responses)}
    return Scores(prompt=one.prompt.id, language=one.prompt.language, scores=scores)


def write(path, lines):
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in lines))
    return path


@given(st.permutations(range(3)))
def test_every_case_meets_its_line_in_any_order(tmp_path_factory, order):
    path = tmp_path_factory.mktemp("s") / "s.jsonl"
    write(path, [line(CASES[index], start=index) for index in order])
    found = list(JoinedScores(CASES, path))
    assert [one.case for one in found] == CASES
    assert [next(iter(one.scores.scores.values())) for one in found] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (CASES[:2], "no line for prompt id 'שלום'"),
        ([CASES[0], CASES[2], case("p", "ab", language="he")], "'p' has no item of language 'he'"),
        ([*CASES, case("q", "ab")], "s.jsonl:4: unknown prompt id 'q'"),
        ([*CASES, CASES[0]], "s.jsonl:4: prompt id 'p' has its scores at .*s.jsonl:1 already"),
        ([CASES[1], CASES[1], CASES[0]], "s.jsonl:2: .*at .*s.jsonl:1 already"),
        ([case("p", "a", language="zh"), *CASES[1:]], "s.jsonl:1: the line gives no score for response 'b'"),
        ([case("p", "abc", language="zh"), *CASES[1:]], "s.jsonl:1: .*response 'c', which"),
    ],
)
def test_what_does_not_fit_is_placed(tmp_path, lines, message):
    path = write(tmp_path / "s.jsonl", [line(one) for one in lines])
    with pytest.raises(RecordError, match=message):
        list(JoinedScores(CASES, path))


def test_broken_lines_are_placed(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"prompt": "p", "scores": {"a": "high"}}\n')
    with pytest.raises(RecordError, match=r"s\.jsonl:1.*Expected `float | null`"):
        list(JoinedScores(CASES, tmp_path / "s.jsonl"))
    (tmp_path / "s.jsonl").write_text('{"prompt": "p", "sco')
    with pytest.raises(RecordError, match=r"s\.jsonl:1.*cut off"):
        list(JoinedScores(CASES, tmp_path / "s.jsonl"))
    (tmp_path / "s.jsonl").write_text('{"prompt": "p", "scores": {"a": 1, "b": 2, "a": 3}}\n')
    with pytest.raises(RecordError, match=r"s\.jsonl:1: 'a' is given twice"):
        list(JoinedScores(CASES, tmp_path / "s.jsonl"))


def test_an_unfinished_file_is_taken_up_to_its_last_good_line(tmp_path):
    cases = [case(f"p{index}", "ab") for index in range(4)]
    path = tmp_path / "part.jsonl"
    assert resumed_lines(path, cases) == ([], [])
    lines = [f'{{"prompt":"p{index}","scores":{{"a":{index},"b":0}}}}\n' for index in range(3)]
    path.write_text("".join(lines[:2]) + lines[2][:20], encoding="utf-8")
    found = resumed_lines(path, cases)
    assert [(line.prompt, line.scores["a"]) for line in found.done] == [("p0", 0.0), ("p1", 1.0)]
    assert path.read_text("utf-8") == "".join(lines[:2])
    # Another case in between: nothing behind it can be trusted to be of these cases.
    path.write_text(lines[0] + lines[2], encoding="utf-8")
    assert [line.prompt for line in resumed_lines(path, cases).done] == ["p0"]
    path.write_text(lines[0].replace('"b":0', '"c":0'), encoding="utf-8")
    assert resumed_lines(path, cases) == ([], [])
