import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings

from steelyard.core.errors import FileError
from steelyard.core.types import Message, Pair, Prompt, Rating, Response
from steelyard.files.cases import read_cases, write_cases
from steelyard.files.tables import is_saved_dataset, read_table
from strategies import case, cases


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
