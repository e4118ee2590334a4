import json

import msgspec
import pytest
from msgspec.structs import replace

from steelyard.core.checks import with_hashes
from steelyard.core.errors import FileError, RecordError
from steelyard.core.types import Input, Message, Scores
from steelyard.io.rows import write_rows
from steelyard.io.scored_cases import NO_NUMBER, NO_ROW, JoinedScores
from strategies import case

CASES = [case("p", "ab", language="en"), case("p", "ab", language="zh"), case("q", "ab", language="he")]
GOOD = [
    {"prompt": "q", "scores": {"a": 1, "b": 2.5}},
    {"prompt": "p", "language": "zh", "scores": {"b": 0, "a": -1}},
    {"prompt": "p", "language": "en", "scores": {"a": None, "b": 3}, "unscored": {"a": "cut"}},
]


def read(tmp_path, *lines, cases=CASES):
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (tmp_path / "scores.jsonl").write_text(text, encoding="utf-8")
    return [joined.scores for joined in JoinedScores(cases, tmp_path / "scores.jsonl")]


def test_lines_are_joined_by_id_in_the_order_of_the_cases(tmp_path):
    english, chinese, hebrew = read(tmp_path, *GOOD)
    assert (english.prompt, english.language, english.scores) == ("p", "en", {"a": None, "b": 3.0})
    assert english.unscored == {"a": "cut"}
    assert chinese.scores == {"a": -1.0, "b": 0.0}
    assert (hebrew.language, hebrew.scores) == ("he", {"a": 1.0, "b": 2.5})


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"prompt": "qq", "scores": {"a": 1, "b": 2}}, "unknown prompt id 'qq'"),
        ({"prompt": "p", "scores": {"a": 1, "b": 2}}, "no item of language None"),
        ({"prompt": "q", "language": "ar", "scores": {"a": 1, "b": 2}}, "no item of language 'ar'"),
        ({"prompt": "q", "scores": {"a": 1}}, "no score for response 'b'"),
        ({"prompt": "q", "scores": {"a": 1, "b": 2, "c": 3}}, "response 'c', which"),
        ({"prompt": "q", "scores": {"a": 1, "b": 2}, "unscored": {"a": "cut"}}, "a score and a reason"),
        ({"prompt": "q", "scores": {"a": 1, "b": "2"}}, "Expected `float | null`"),
        ({"prompt": "q", "scores": {"a": True, "b": 2}}, "Expected `float | null`"),
        ({"prompt": "q", "scores": [1, 2]}, "Expected `object`"),
        ({"prompt": "q"}, "missing required field `scores`"),
        ({"prompt": "q", "scores": {"a": 1, "b": 2}, "score": 1}, "unknown field `score`"),
        ('{"prompt": "q", "scores": {"a": 1, "b": 2, "a": 3}}', "'a' is given twice"),
        ('{"prompt": "q", "scores": {"a": NaN, "b": 2}}', "not JSON"),
        ('{"prompt": "q", "scores": {"a": 1e999, "b": 2}}', "out of range|finite"),
        ({"prompt": "q", "scores": {"a": -1.1e150, "b": 2}}, "gives -1.1e\\+150 for response 'a'"),
        ('{"prompt": "q", "scores": {"a": 1, ', "cut off"),
        ("[1, 2]", "Expected `object`"),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path, bad, said):
    with pytest.raises(RecordError, match=said) as caught:
        read(tmp_path, *GOOD[1:], bad)
    assert str(caught.value).startswith(f"{tmp_path / 'scores.jsonl'}:3: ")


def test_a_doubled_prompt_is_named_with_both_lines(tmp_path):
    with pytest.raises(
        RecordError, match=r"scores\.jsonl:4: prompt id 'q' has its scores at .*scores\.jsonl:1 already"
    ):
        read(tmp_path, *GOOD, GOOD[0])


def test_a_missing_prompt_is_named(tmp_path):
    with pytest.raises(RecordError, match=r"no line for prompt id 'p', language 'en' \(1 of 3 cases has none\)"):
        read(tmp_path, *GOOD[:2])


def test_a_null_without_a_reason_says_so(tmp_path):
    (line,) = read(tmp_path, {"prompt": "q", "scores": {"a": None, "b": 1}}, cases=CASES[2:])
    assert line.unscored == {"a": "no reason given"}


def test_broken_files(tmp_path):
    with pytest.raises(FileError, match="empty"):
        read(tmp_path)
    (tmp_path / "scores.jsonl").write_bytes(b'{"prompt": "q", "scores": {"\xff": 1}}')
    with pytest.raises(FileError, match="not UTF-8"):
        list(JoinedScores(CASES, tmp_path / "scores.jsonl"))


def scored(one):
    scores = {response.id: 1.0 for response in one.responses}
    return with_hashes(one, Scores(prompt=one.prompt.id, language=one.prompt.language, scores=scores))


def changed(one, *, response=None, question=None):
    texts = {"b": response} if response is not None else {}
    responses = tuple(replace(each, text=texts.get(each.id, each.text)) for each in one.responses)
    messages = one.prompt.messages if question is None else (Message(role="user", content=question),)
    return replace(one, prompt=replace(one.prompt, messages=messages), responses=responses)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"response": "another"}, "response 'b'"),
        ({"response": ""}, "response 'b'"),
        ({"question": "为什么？"}, "the prompt"),
    ],
)
def test_scores_of_other_texts_are_refused_by_name(tmp_path, change, named):
    lines = [msgspec.to_builtins(scored(one)) for one in CASES]
    assert [line.scores for line in read(tmp_path, *lines)] == [{"a": 1.0, "b": 1.0}] * 3
    with pytest.raises(RecordError, match=f"scores.jsonl:2: .*other texts of prompt 'p': {named} has changed"):
        read(tmp_path, *lines, cases=[CASES[0], changed(CASES[1], **change), CASES[2]])


def test_labels_and_a_response_as_one_turn_change_no_text(tmp_path):
    turns = tuple(
        replace(each, text=None, messages=(Message(role="assistant", content=each.text),), author="x")
        for each in CASES[0].responses
    )
    relabelled = replace(CASES[0], responses=turns, ranking=(("a",), ("b",)), meta={"new": 1})
    (line,) = read(tmp_path, msgspec.to_builtins(scored(CASES[0])), cases=[relabelled])
    assert line.scores == {"a": 1.0, "b": 1.0}


def test_lines_without_hashes_are_counted(tmp_path):
    own = [msgspec.to_builtins(scored(one)) for one in CASES]
    (tmp_path / "scores.jsonl").write_text("\n".join(map(json.dumps, [*own[:2], GOOD[0]])))
    joined = JoinedScores(CASES, tmp_path / "scores.jsonl")
    scores = Input(path=str(tmp_path / "scores.jsonl"), sha256="0" * 64)
    for _ in range(2):
        list(joined)
        assert [(each.count, each.total) for each in joined.coverage.findings(scores, ())] == [(1, 3)]


def read_table(tmp_path, text, cases=CASES, name="scores.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return [joined.scores for joined in JoinedScores(cases, tmp_path / name)]


@pytest.mark.parametrize("name", ["scores.csv", "scores.tsv"])
def test_a_table_has_a_row_a_response_in_any_order_of_rows_and_columns(tmp_path, name):
    rows = "Score,model,response_id,id,language\n3,m,b,p,en\n2.5,m,b,q,\n-1e0,m,a,p,zh\n0,m,b,p,zh\nNaN,m,a,p,en\n"
    text = rows.replace(",", "\t") if name.endswith("tsv") else rows
    english, chinese, hebrew = read_table(tmp_path, text, name=name)
    assert (english.scores, english.unscored) == ({"a": None, "b": 3.0}, {"a": NO_NUMBER})
    assert (chinese.scores, chinese.unscored) == ({"a": -1.0, "b": 0.0}, {})
    assert (hebrew.scores, hebrew.unscored) == ({"a": None, "b": 2.5}, {"a": NO_ROW})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,response,score\nq,a,1\nq,a,2\n", r":3: response 'a' of prompt 'q' has a score above"),
        ("id,response,score\nq,a,good\n", r":2 at score: the score is 'good'"),
        ('id,response,score\nq,a,"1,5"\n', "a decimal point"),
        ("id,response,score\nq,a,1e999\n", "gives inf"),
        ("id,response,score\nqq,a,1\n", "unknown prompt id 'qq'"),
        ("id,response,score\nq,c,1\n", "scores response 'c', which"),
        ("id,response,score\nq,a,1\n", "no line for prompt id 'p'"),
        ("id,score\nq,1\n", r":1: no column has the responses"),
        ("id,response\nq,a\n", r":1: no column has the scores"),
    ],
)
def test_a_table_that_does_not_fit_is_named(tmp_path, text, said):
    with pytest.raises(RecordError, match=said):
        read_table(tmp_path, text)


@pytest.mark.parametrize(
    ("prompts", "problem", "remedy"),
    [
        # Every case of GOOD has its line: no id is misspelt.
        (["p", "q", "q2"], "'q2' (1 of 3 prompts is of no case)", "leave it out, or give all the cases"),
        (["p", "q", "q2", "p9"], "'q2' (2 of 4 prompts are of no case)", "leave them out, or give all the cases"),
        # The case `q` has none, so that its id may be meant; `p`, which is as near, may not.
        (
            ["p", "pq"],
            "'pq' (1 of 2 prompts is of no case)",
            "did you mean 'q'? the ids are those of the bench's cases",
        ),
    ],
)
def test_scores_of_more_prompts_than_the_cases_are_refused_with_advice_that_fits(tmp_path, prompts, problem, remedy):
    cases = [case("p", "ab"), case("q", "ab")]
    lines = [json.dumps({"prompt": prompt, "scores": {"a": 1, "b": 2}}) for prompt in prompts]
    (tmp_path / "scores.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(RecordError) as caught:
        list(JoinedScores(cases, tmp_path / "scores.jsonl"))
    assert problem in caught.value.problem
    assert remedy in str(caught.value.do)


def test_prompts_without_a_row_have_a_remedy_for_tables(tmp_path):
    with pytest.raises(RecordError) as caught:
        read_table(tmp_path, "id,response,score\nq,a,1\n")
    assert caught.value.do == "add the rows of every case; a missing score is an empty cell"


@pytest.mark.parametrize("name", ["scores.parquet", "scores.jsonl", "scores.json"])
def test_a_table_in_parquet_or_json_is_read_as_csv_is(tmp_path, name):
    cells = [(3.0, "b", "p", "en"), (2.5, "b", "q", None), (-1.0, "a", "p", "zh"), (0.0, "b", "p", "zh")]
    rows = [dict(zip(("score", "response_id", "id", "language"), row, strict=True)) for row in cells]
    write_rows(tmp_path / name, [*rows, {"score": None, "response_id": "a", "id": "p", "language": "en"}])
    english, chinese, hebrew = (joined.scores for joined in JoinedScores(CASES, tmp_path / name))
    assert (english.scores, english.unscored) == ({"a": None, "b": 3.0}, {"a": NO_NUMBER})
    assert (chinese.scores, chinese.unscored) == ({"a": -1.0, "b": 0.0}, {})
    assert (hebrew.scores, hebrew.unscored) == ({"a": None, "b": 2.5}, {"a": NO_ROW})


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "q", "response": None, "score": 1.0}, "at response: the row has no value here"),
        ({"id": "q", "response": "a", "score": [1.0]}, "at score: the score is"),
        ({"id": "q", "response": "a", "score": True}, "at score: the score is 'True'"),
        ({"response": "a", "score": 1.0}, "no column has the prompts"),
    ],
)
@pytest.mark.parametrize("name", ["scores.parquet", "scores.jsonl"])
def test_a_row_of_parquet_or_json_that_does_not_fit_is_named(tmp_path, row, said, name):
    write_rows(tmp_path / name, [row])
    with pytest.raises(RecordError, match=said):
        list(JoinedScores(CASES, tmp_path / name))
