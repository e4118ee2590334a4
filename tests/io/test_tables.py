import gzip
from datetime import datetime
from decimal import Decimal

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings

from steelyard.core.errors import FileError, RecordError
from steelyard.core.types import Message, Pair, Prompt, Rating, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.tables import is_saved_dataset, read_table
from strategies import case, cases


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(one=cases())
def test_a_case_comes_back_from_parquet_as_it_went(one, tmp_path):
    path = tmp_path / "cases.parquet"
    write_cases(path, [one])
    assert list(read_cases(path)) == [one]


def test_every_column_survives_parquet(tmp_path):
    full = case(
        ranking=(("a",), ("b", "c")),
        pairs=(Pair(better="a", worse="b", weight=0.5, margin=1.25),),
        ratings=(
            Rating(
                response="a", rater="r", kind="human", dimension="d", value=1.5, range=(0.0, 5.0),
                spans=((0, 2, "错误", None),), meta={"k": [1, {"x": None}]},
            ),
        ),
        meta={"free": {"form": ["עברית", 1]}},
        language="zh", category=("数学", "代数"), subset="s", source="o",
    )  # fmt: skip
    turns = Response(id="f", messages=(Message(role="assistant", content="हिन्दी"),), author="x", meta={"n": 1})
    prompt = Prompt(id="q", messages=full.prompt.messages, reference="r", meta={"m": None})
    both = [full, case(id="r").__class__(prompt=prompt, responses=(turns,))]
    write_cases(tmp_path / "c.parquet", both)
    assert list(read_cases(tmp_path / "c.parquet")) == both


def test_a_dataset_saved_to_disk_is_read(tmp_path):
    table = pyarrow.table({"prompt": ["你好", "b"], "n": [1, 2]})
    name = str(tmp_path / "data-00000-of-00001.arrow")
    with pyarrow.OSFile(name, "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    assert is_saved_dataset(tmp_path)
    assert list(read_table(tmp_path)) == [{"prompt": "你好", "n": 1}, {"prompt": "b", "n": 2}]


def test_a_broken_table_is_named(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(FileError, match=r"x\.parquet.*not a readable table"):
        list(read_table(tmp_path / "x.parquet"))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"ARROW1\0\0", "Arrow"),
        (b'{"prompt": "a"}\n', "text"),
        (gzip.compress(b"PK\x03\x04", mtime=0), "a zip archive or a spreadsheet"),
        (b"<html>\n", r"a page of the web \(HTML\)"),
    ],
)
def test_a_file_with_the_ending_of_parquet_is_named_for_what_it_is(tmp_path, content, kind):
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(FileError, match=rf"x\.parquet: this is {kind}, not Parquet\n  do: "):
        list(read_table(tmp_path / "x.parquet"))


def rows_of_two(path, *keys, value):
    """A Parquet file of two cases, made by another tool; in the second the value stands where the keys lead.

    A column of bytes or decimals has nothing else in it: then the second case stands alone.
    """
    rows = []
    for name in ("p", "q"):
        row = {
            "prompt": {"id": name, "messages": [{"role": "user", "content": "你好"}]},
            "responses": [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}],
            "ratings": [
                {"response": "a", "rater": "r", "kind": "human", "dimension": "d", "value": 1.0, "range": [0.0, 5.0]}
            ],
            "pairs": [{"better": "a", "worse": "b", "weight": 0.5, "margin": 2.0}],
            "meta": None,
        }
        rows.append(row)
    inner = rows[1]
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist(rows[1:] if isinstance(value, bytes | Decimal) else rows), path
    )
    return path


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize(
    ("keys", "column"),
    [
        (("ratings", 0, "value"), "ratings[0].value"),
        (("ratings", 0, "range"), "ratings[0].range[1]"),
        (("pairs", 0, "weight"), "pairs[0].weight"),
        (("pairs", 0, "margin"), "pairs[0].margin"),
    ],
)
def test_a_number_that_is_none_is_refused_and_not_taken_for_null(tmp_path, keys, column, value):
    inside = [0.0, value] if keys[-1] == "range" else value
    path = rows_of_two(tmp_path / "c.parquet", *keys, value=inside)
    with pytest.raises(RecordError) as error:
        list(read_cases(path))
    assert str(error.value) == f"{path}:2 at {column}: the value is {value}\n  allowed: a finite number, or null"


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("responses", 0, "text"), b"bytes", ":1 at responses[0].text: a value of type bytes"),
        (("prompt", "source"), datetime(2026, 1, 2), ":2 at prompt.source: a value of type datetime"),  # noqa: DTZ001  as Arrow has it
        (("pairs", 0, "weight"), Decimal("0.5"), ":1 at pairs[0].weight: a value of type Decimal"),
        (("meta",), "{broken", ":2 at meta: no JSON text (JSON is malformed"),
        (("meta",), '{"x": NaN}', ":2 at meta: no JSON text (JSON is malformed"),
        (("prompt", "meta"), "", ":2 at prompt.meta: no JSON text (Input data was truncated"),
        (("prompt", "meta"), {"x": float("nan")}, ":2 at prompt.meta.x: the value is nan"),
        (("ratings", 0, "spans"), "[", ":2 at ratings[0].spans: no JSON text"),
    ],
)
def test_what_a_case_cannot_hold_is_named_with_its_row_and_column(tmp_path, keys, value, said):
    path = rows_of_two(tmp_path / "c.parquet", *keys, value=value)
    with pytest.raises(RecordError) as error:
        list(read_cases(path))
    assert str(error.value).startswith(f"{path}{said}")


def test_free_forms_that_another_tool_left_as_columns_are_read(tmp_path):
    path = rows_of_two(tmp_path / "c.parquet", "prompt", "meta", value={"k": 1, "words": ["שלום", None]})
    first, second = read_cases(path)
    assert (first.prompt.meta, second.prompt.meta) == (None, {"k": 1, "words": ["שלום", None]})


def test_a_text_that_is_not_utf8_is_named_by_row_and_column(tmp_path):
    texts = pyarrow.array([b"ok", b"a\xed\xa0\xbd"])
    column = pyarrow.Array.from_buffers(pyarrow.string(), 2, texts.buffers())
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"n": [1, 2], "chosen": column}), path)
    with pytest.raises(FileError, match=r"t\.parquet:2 at chosen: byte 2 of a text is not UTF-8 \(0xed\)"):
        list(read_table(path))
