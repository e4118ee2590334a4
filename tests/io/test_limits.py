"""Small files that stand for more than a machine has, keys given twice, and what else no reader may take silently."""

import gc
import json
import time

import pyarrow
import pyarrow.parquet
import pytest

from steelyard.core.errors import FileError, Place, RecordError
from steelyard.io.cases import decode_case
from steelyard.io.lines import bounded_memory
from steelyard.io.rows import read_rows
from steelyard.io.tables import read_table

PLACE = Place("f.jsonl", 3)
CASE = '{"prompt": {"id": "p", "messages": []%s}, "responses": [{"id": "a", "text": "x"%s}]%s}'


@pytest.mark.parametrize(
    "inner",
    [
        ("", "", ', "meta": {"k": 1, "k": 1}'),
        (', "id": "q"', "", ""),
        ("", ', "text": "y"', ""),
        ("", ', "te\\u0078t": "y"', ""),
        ("", "", ', "prompt": {"id": "q", "messages": []}'),
        ("", "", ', "ranking": null, "ranking": null'),
        ("", "", ', "meta": {"deep": [[{"": 0, "": 1}]]}'),
        # In what is kept there are as many `":` as in the line: one is escaped by number there, or a key is spaced.
        ("", "", r', "meta": {"k": 1, "k": "\u0022:"}'),
        ("", "", r', "meta": {"k": 1, "k": "\"\u003a"}'),
        ("", "", r', "meta": {"k" : 1, "k": "\":"}'),
        ("", "", ', "meta": {"k"\t: 1, "k": 2}'),
    ],
    ids=["meta", "id", "text", "escaped", "prompt", "null", "deep", "quote", "colon", "spaced", "tab"],
)
def test_a_key_given_twice_is_refused_wherever_it_stands(inner, tmp_path):
    line = CASE % inner
    with pytest.raises(RecordError, match=r"f\.jsonl:3: '.*' is given twice"):
        decode_case(line.encode(), PLACE)
    (tmp_path / "rows.jsonl").write_text(f'{{"a": 1}}\n{line}\n')
    with pytest.raises(RecordError, match=r"rows\.jsonl:2: '.*' is given twice"):
        list(read_rows(tmp_path / "rows.jsonl"))
    (tmp_path / "rows.json").write_text(f"[{line}]")
    with pytest.raises(RecordError, match="is given twice"):
        list(read_rows(tmp_path / "rows.json"))


@pytest.mark.parametrize(
    "tail",
    [
        "",
        ', "ranking": null',
        ', "meta": {"a": {"k": 1}, "b": {"k": 1}}',
        ', "meta": {"x": 1e3, "y": "\\u00e9\\n", "z" : "\\\\\\":"}',
    ],
)
def test_equal_keys_of_different_objects_and_other_spellings_are_no_repeats(tail):
    case = decode_case((CASE % ("", "", tail)).encode(), PLACE)
    assert case.responses[0].text == "x"


def test_many_names_take_linear_time_and_a_message_names_few_of_them(tmp_path):
    names = [f"c{number}" for number in range(60_000)]
    (tmp_path / "wide.csv").write_text(f"{','.join(names)}\nx{',' * 59_999}\n1,2\n")
    pairs = ", ".join(f'"{name}": 1' for name in [*names, names[-1]])
    started = time.thread_time()
    rows = read_rows(tmp_path / "wide.csv")
    assert list(next(rows).value) == names
    with pytest.raises(RecordError, match="a row of 2 cells under a header of 60000") as caught:
        next(rows)
    assert len(str(caught.value)) < 500
    with pytest.raises(RecordError, match="'c59999' is given twice"):
        decode_case((CASE % ("", "", f', "meta": {{{pairs}}}')).encode(), PLACE)
    assert time.thread_time() - started < 12  # linear: 0.5 s; quadratic: 2 minutes


def test_a_block_that_takes_too_much_is_stopped_and_the_limit_is_lifted_again():
    with (
        pytest.raises(FileError, match=r"x: decoded, this takes more than 0\.0625 GiB"),
        bounded_memory("x", limit=2**26),
    ):
        bytearray(2**30)
    assert len(bytearray(2**27)) == 2**27


@pytest.mark.slow
def test_a_parquet_file_of_few_bytes_and_endless_rows_stops_at_the_limit(tmp_path):
    path = tmp_path / "bomb.parquet"
    # 512 rows of 16 MiB, told once: 8 GiB where they are read out.
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 512, pyarrow.int32()), ["a" * 2**24])
    pyarrow.parquet.write_table(pyarrow.table({"prompt": column}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 2**20
    with pytest.raises(FileError, match="takes more than 2 GiB"):
        list(read_table(path))
    gc.collect()


def test_a_dataset_s_state_that_names_other_files_or_is_none_is_refused(tmp_path):
    (tmp_path / "data.arrow").write_bytes(b"")
    for state, found in (
        ('{"_data_files": [{"filename": "../secret.arrow"}]}', "outside"),
        ('{"_data_files": 3}', "not the state of a saved dataset"),
        ("[1", "not the state of a saved dataset"),
        ("{}", "not the state of a saved dataset"),
    ):
        (tmp_path / "state.json").write_text(state)
        with pytest.raises(FileError, match=found):
            list(read_table(tmp_path))


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_nul_in_a_table_is_refused_with_its_line(suffix, tmp_path):
    path = tmp_path / f"table{suffix}"
    path.write_bytes(b"a\tb\n1\t2\n3\t4\x005\n".replace(b"\t", b"," if suffix == ".csv" else b"\t"))
    with pytest.raises((RecordError, FileError), match=rf"table\{suffix}:3: .*(NUL)"):
        list(read_rows(path))


def test_numbers_of_thousands_of_digits_are_compared_and_not_computed(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"a": 0.' + "1" * 9000 + ', "b": "\\u0041"}\n')
    assert json.dumps(next(read_rows(tmp_path / "rows.jsonl")).value["b"]) == '"A"'
