"""Prompts without answers: what is recognised as such, what becomes of one answer, tables and text files."""

import json
from collections import Counter
from pathlib import Path

import pytest

from each_value import each
from steelyard.core.errors import FileError, KindError, Place, RecordError
from steelyard.core.plugins import build, kinds
from steelyard.core.protocols import Row
from steelyard.evaluation.recognition import recognise
from steelyard.io.cases import read_cases
from steelyard.io.rows import read_rows
from steelyard.stages.convert import Config, convert

GOLDEN = Path(__file__).parents[2] / "golden" / "formats"
PROMPT_KINDS = [kind for kind in kinds("formats") if "responses" not in build("formats", kind).supports]
# A row for supervised fine-tuning has one answer, which nothing compares: it is an instruction, too.
ANSWERED = [kind for kind in kinds("formats") if kind not in PROMPT_KINDS and not kind.endswith("_sft")]
COUNTRIES = ["中国", "Perú", "नेपाल"]


def lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def read(kind, row, warnings=None):
    warnings = Counter() if warnings is None else warnings
    (case,) = build("formats", kind).read([Row(Place("f", 1), row)], warnings)
    return case


def test_there_are_formats_of_prompts():
    assert {"prompts", "instructions", "conversations"} <= set(PROMPT_KINDS)


@each("kind", ANSWERED)
def test_a_row_of_answers_is_never_recognised_as_a_prompt(kind):
    (path,) = GOLDEN.glob(f"{kind}.*")
    for row in read_rows(path):
        assert [name for name in PROMPT_KINDS if build("formats", name).matches(row.value)] == []


@each("kind", ANSWERED)
def test_a_row_that_lost_a_known_field_of_its_answers_is_not_recognised_either(kind):
    (path,) = GOLDEN.glob(f"{kind}.*")
    answers = {"chosen", "response", "response1", "output", "output_1", "answer", "preference", "winner", "label"}
    for row in read_rows(path):
        for key in answers & row.value.keys():
            rest = {name: value for name, value in row.value.items() if name != key}
            found = [name for name in PROMPT_KINDS if build("formats", name).matches(rest)]
            texts = [name for name, value in rest.items() if isinstance(value, str | list)]
            # What is left of a row with a single answer is a prompt.
            assert not found or set(texts) <= {"prompt", "instruction", "input", "history", "system"}, (key, rest)


@pytest.mark.parametrize("further", [{"one": "x", "other": "y"}, {"answers": ["x", "y"]}, {"meta": {"a": 1}}])
def test_prompts_beside_further_texts_are_named_and_not_guessed(further, tmp_path):
    path = lines(tmp_path / "own.jsonl", [{"prompt": "q"} | further])
    with pytest.raises(KindError, match="say from_kind=prompts if these are prompts without answers to compare"):
        recognise(path)
    done = convert(path, tmp_path / "cases.jsonl", Config(from_kind="prompts"))
    (case,) = read_cases(tmp_path / "cases.jsonl")
    assert (done.num_cases, case.responses, case.prompt.meta) == (1, (), further)


def test_a_file_of_other_fields_is_not_called_prompts(tmp_path):
    with pytest.raises(KindError) as caught:
        recognise(lines(tmp_path / "own.jsonl", [{"text": "q"}]))
    assert "from_kind=prompts" not in str(caught.value)
    assert "cases.jsonl with prompt_column=text" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "row", "question"),
    [
        ("instructions", {"instruction": "加", "input": "1+1", "output": "2"}, "加\n1+1"),
        ("conversations", {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "2"}]}, "q"),
        ("conversations", {"conversations": [{"from": "human", "value": "1+1"}, {"from": "gpt", "value": "2"}]}, "1+1"),
    ],
)  # fmt: skip
def test_the_only_answer_becomes_the_reference_and_is_counted(kind, row, question):
    warnings = Counter()
    case = read(kind, row, warnings)
    assert (case.prompt.messages[-1].content, case.prompt.reference, case.responses) == (question, "2", ())
    assert warnings["answers read as references"] == 1


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("conversations", {"messages": []}),
        ("conversations", {"messages": [{"role": "assistant", "content": "hello"}]}),
        ("conversations", {"messages": [{"role": "system", "content": "be brief"}]}),
        ("prompts", {"prompt": [{"role": "system", "content": "be brief"}]}),
        ("prompts", {"prompt": "q", "language": "klingon!"}),
        ("prompts", {"prompt": "q", "reference": ["a", "b"]}),
        ("instructions", {"instruction": "q", "output": ["a", "b"]}),
    ],
)
def test_a_row_without_a_question_or_with_a_broken_field_has_its_line(kind, row):
    with pytest.raises(RecordError, match=r"^f:1"):
        read(kind, row)


def test_a_text_file_has_a_prompt_in_each_line(tmp_path):
    path = tmp_path / "questions.txt"
    path.write_bytes('\ufeff问题一\r\n\n  {"braces"}? \n最后'.encode())
    done = convert(path, tmp_path / "cases.jsonl", Config(language="zh"))
    cases = list(read_cases(tmp_path / "cases.jsonl"))
    assert (done.from_kind, done.num_cases) == ("prompts", 3)
    assert [case.prompt.messages[0].content for case in cases] == ["问题一", '  {"braces"}? ', "最后"]
    assert {case.prompt.language for case in cases} == {"zh"}


def test_json_lines_under_the_name_of_a_text_file_are_json_lines(tmp_path):
    path = lines(tmp_path / "pairs.txt", [{"prompt": "q", "chosen": "x", "rejected": "y"}])
    assert recognise(path) == "trl"


def test_a_text_file_that_is_not_utf8_is_refused_with_its_line(tmp_path):
    path = tmp_path / "questions.txt"
    path.write_bytes("问题\n".encode() + "问题\n".encode("gb18030"))
    with pytest.raises(FileError, match=r"questions\.txt:2"):
        convert(path, tmp_path / "cases.jsonl")
    assert not (tmp_path / "cases.jsonl").exists()


def test_an_object_around_a_list_is_its_rows(tmp_path):
    path = tmp_path / "exam.json"
    path.write_text(
        json.dumps({"subject": "history", "year": 2020, "of": [{"prompt": "a"}, {"prompt": "b"}]}, indent=1)
    )
    rows = list(read_rows(path))
    assert [row.value for row in rows] == [{"subject": "history", "year": 2020, "prompt": name} for name in "ab"]
    assert str(rows[1].place) == f"{path}:of[1]"


@pytest.mark.parametrize("text", ['{\n "of": [1]\n}', '{\n "of": [{"a": 1}', "12", '{\n "of": [{"a": 1, "a": 2}]\n}'])
def test_an_object_around_something_else_is_refused(text, tmp_path):
    (tmp_path / "exam.json").write_text(text)
    with pytest.raises((FileError, RecordError), match=r"exam\.json"):
        list(read_rows(tmp_path / "exam.json"))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_table_whose_prompt_column_alone_is_named_is_prompts(suffix, tmp_path):
    rows = [{"question": f"{name}?", "ref": name, "note": "n"} for name in COUNTRIES]
    path = tmp_path / f"own{suffix}"
    if suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif suffix == ".jsonl":
        lines(path, rows)
    else:
        mark = "," if suffix == ".csv" else "\t"
        path.write_text("\n".join(mark.join(row) for row in [rows[0].keys(), *(row.values() for row in rows)]), "utf-8")
    settings = {"prompt_column": "question", "reference_column": "ref"}
    done = convert(path, tmp_path / "cases.jsonl", Config(from_kind="columns", settings=settings))
    cases = list(read_cases(tmp_path / "cases.jsonl"))
    assert done.noted == {"prompts without answers": 3}
    assert [(case.prompt.messages[0].content, case.prompt.reference) for case in cases] == [
        (f"{name}?", name) for name in COUNTRIES
    ]
    assert {case.responses for case in cases} == {()}


@pytest.mark.parametrize("row", [{"prompt": "q", "chosen": "x"}, {"prompt": "q", "rejected": "x"}])
def test_a_table_of_half_a_pair_is_not_prompts(row, tmp_path):
    with pytest.raises(RecordError, match="no column"):
        convert(lines(tmp_path / "own.jsonl", [row]), tmp_path / "cases.jsonl", Config(from_kind="columns"))
    with pytest.raises(RecordError, match=r"own\.jsonl:2: an answer under"):
        convert(
            lines(tmp_path / "own.jsonl", [{"prompt": "q"}, row]), tmp_path / "cases.jsonl", Config(from_kind="columns")
        )
