import msgspec
import pytest

from steelyard.core.errors import ConfigError, RecordError
from steelyard.core.types import Response
from steelyard.files.cases import read_cases, write_cases
from steelyard.stages.merge import merge
from strategies import case, judgment


def test_files_are_joined_by_id_and_language(tmp_path):
    write_cases(tmp_path / "a.jsonl", [case(id="x", judgments=["a>b"]), case(id="y")])
    write_cases(
        tmp_path / "b.jsonl", [case(id="x", judgments=[judgment("b>a", kind="llm")]), case(id="x", language="zh")]
    )
    run = merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out")
    merged = list(read_cases(tmp_path / "out" / "cases.jsonl"))
    assert [one.key for one in merged] == [("x", None), ("y", None), ("x", "zh")]
    assert [one.kind for one in merged[0].judgments] == ["human", "llm"]
    assert (run.counts.num_in, run.counts.noted, run.summary["num_cases"]) == (4, {"joined": 1}, 3)
    assert merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out") == run


def test_what_contradicts_is_refused_naming_both_files(tmp_path):
    write_cases(tmp_path / "a.jsonl", [case(text="one")])
    write_cases(tmp_path / "b.jsonl", [case(text="two")])
    with pytest.raises(RecordError, match=r"a\.jsonl and .*b\.jsonl: prompt 'p' has two different texts"):
        merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="one file to merge"):
        merge([tmp_path / "a.jsonl"], tmp_path / "out")


def test_the_file_that_contradicts_is_named_among_three(tmp_path):
    other = msgspec.structs.replace(case(), responses=(Response(id="a", text="other"),))
    write_cases(tmp_path / "a.jsonl", [case(responses="ab")])
    write_cases(tmp_path / "b.jsonl", [case(responses="d")])
    write_cases(tmp_path / "c.jsonl", [other])
    with pytest.raises(
        RecordError, match=r"a\.jsonl and .*c\.jsonl: response 'a' of prompt 'p' has two different texts"
    ):
        merge([tmp_path / f"{name}.jsonl" for name in "abc"], tmp_path / "out")


def test_no_third_ranking_decides_between_two(tmp_path):
    for name, ranking in (("a", (("a",), ("b",))), ("b", (("b",), ("a",))), ("c", (("a", "b"),))):
        write_cases(tmp_path / f"{name}.jsonl", [case(ranking=ranking)])
    run = merge([tmp_path / f"{name}.jsonl" for name in "abc"], tmp_path / "out")
    (merged,) = read_cases(tmp_path / "out" / "cases.jsonl")
    assert merged.ranking is None
    assert run.counts.noted == {"joined": 2, "rankings that differ": 1}
