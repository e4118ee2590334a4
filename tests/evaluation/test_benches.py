import json
from pathlib import Path

import msgspec
import pytest

from steelyard.core.errors import FileError, KindError, RecordError, UserError
from steelyard.core.plugins import build
from steelyard.core.types import Scores
from steelyard.evaluation.benches import BenchCases, bench_name
from steelyard.evaluation.external_scores import side_by_side
from steelyard.io.cases import write_cases
from strategies import case


def write(path, *rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["cases.jsonl", "cases.parquet"])
def test_a_case_file_is_known_by_its_content(tmp_path, name):
    given = (case("p", "ab", language="zh"), case("q", "ab"))
    write_cases(tmp_path / name, given)
    assert tuple(BenchCases([tmp_path / name], build("benches", "cases"))) == given


def test_two_files_are_one_bench(tmp_path):
    write_cases(tmp_path / "open.jsonl", [case("p")])
    write_cases(tmp_path / "human.jsonl", [case("q")])
    found = BenchCases([tmp_path / "open.jsonl", tmp_path / "human.jsonl"], build("benches", "cheemsbench"))
    assert [one.prompt.subset for one in found] == ["open_prompt", "human_instruction"]


def test_a_key_in_two_files_is_refused(tmp_path):
    for name in ("one.jsonl", "two.jsonl"):
        write_cases(tmp_path / name, [case("p", language="zh")])
    with pytest.raises(RecordError, match=r"two\.jsonl.*'p', language 'zh', is also in .*one\.jsonl"):
        list(BenchCases([tmp_path / "one.jsonl", tmp_path / "two.jsonl"], build("benches", "cases")))


def test_equal_prompts_with_different_ids_stay_two_items(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case("p", text="same"), case("q", text="same")])
    assert len(BenchCases([tmp_path / "cases.jsonl"], build("benches", "cases"))) == 2


def test_foreign_rows_need_the_name_of_their_bench(tmp_path):
    with pytest.raises(KindError, match="not a case file"):
        list(BenchCases([write(tmp_path / "rows.jsonl", {"prompt": "a", "chosen": "b"})], build("benches", "cases")))


def test_a_file_without_records_is_refused(tmp_path):
    (tmp_path / "cases.jsonl").write_text("[]")
    with pytest.raises(FileError, match="no record"):
        list(BenchCases([tmp_path / "cases.jsonl"], build("benches", "cases")))


def test_raw_rewardbench_rows(tmp_path):
    row = {"prompt": "問い", "chosen": "良い", "rejected": "悪い", "chosen_model": "a", "rejected_model": "b"}
    path = write(tmp_path / "rows.jsonl", *({**row, "subset": "hep-go", "id": number} for number in (3, 4)))
    found = BenchCases([path], build("benches", "rewardbench"))
    assert [one.prompt.subset for one in found] == ["hep-go", "hep-go"]
    assert all(one.ranking is not None and len(one.ranking) == 2 for one in found)


def test_raw_cheemsbench_rows(tmp_path):
    row = {
        "input": "问题",
        "category": ["数学"],
        "responses": [{"id": name, "content": f"答案{name}"} for name in "abc"],
        "annotations": [],
        "rank": {"a": 1, "b": 2, "c": 2},
    }
    path = write(tmp_path / "human.jsonl", row)
    (found,) = BenchCases([path], build("benches", "cheemsbench"))
    assert (found.prompt.subset, found.prompt.category) == ("human_instruction", ("数学",))
    assert [len(tier) for tier in found.ranking] == [1, 2]


def test_a_bench_of_case_files_has_their_names():
    one, other = Path("/x/test.jsonl"), Path("/y/test.jsonl.gz")
    assert bench_name("cases", [one]) == "test"
    assert bench_name("cases", [one, Path("/x/v1.2.parquet")]) == "test, v1.2"
    assert bench_name("cases", [one, other]) == "x/test, y/test"
    assert bench_name("rewardbench", [one]) == "rewardbench"


def test_the_cases_of_a_run_are_named_by_its_folder(tmp_path):
    folder = tmp_path / "resolved"
    folder.mkdir()
    (folder / "run.json").touch()
    assert bench_name("cases", [folder / "cases.jsonl"]) == "resolved"
    assert bench_name("cases", [tmp_path / "cases.jsonl"]) == "cases"


@pytest.mark.parametrize("kind", ["subsets", "cheemsbench"])
def test_an_unknown_subset_is_named_with_its_line(tmp_path, kind):
    write_cases(tmp_path / "cases.jsonl", [case("p", subset="open_prompt"), case("q", subset="opne_prompt")])
    bench = build("benches", kind, {"subsets": {"open_prompt": "any"}} if kind == "subsets" else None)
    with pytest.raises(UserError, match=r"cases\.jsonl:2: .*'opne_prompt'"):
        list(BenchCases([tmp_path / "cases.jsonl"], bench))
    scores = [Scores(prompt=prompt, scores=dict.fromkeys("abcde", 0.5)) for prompt in "pq"]
    (tmp_path / "scores.jsonl").write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in scores))
    (lines,) = side_by_side([tmp_path / "cases.jsonl"], tmp_path / "scores.jsonl")
    with pytest.raises(UserError, match=r"cases\.jsonl:2: .*'opne_prompt'"):
        lines.checked(bench)
