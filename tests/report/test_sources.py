import json

import pytest

from report_runs import all_runs, evaluate_run, made_cases, resolve_run, train_run
from steelyard.core.errors import FileError, RecordError
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.io.cases import write_cases
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.sources import (
    case_files,
    curve_of,
    items_of,
    of_stage,
    read_known_cases,
    read_sources,
    summary_of,
)
from steelyard.training.config import TrainingSummary


def test_every_kind_of_run_is_read(tmp_path):
    sources = read_sources(all_runs(tmp_path, 8))
    assert [(source.name, source.run.stage) for source in sources] == [
        ("resolved", "resolve"),
        ("model", "train"),
        ("evaluated", "evaluate"),
    ]
    (evaluated,) = of_stage(sources, "evaluate")
    assert summary_of(evaluated, EvaluationSummary).model == "models/测试模型-0.5b"
    assert len(items_of(evaluated)) == 8
    assert summary_of(sources[0], ResolveSummary).conflicts.overall.ratio == 0.2134
    assert summary_of(sources[1], TrainingSummary).num_steps == 240
    assert len(curve_of(sources[1])) == 240 + 6


def test_an_unfinished_run_says_so(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "started.json").write_text("{}")
    with pytest.raises(FileError, match="did not finish"):
        read_sources([folder])
    with pytest.raises(FileError, match="no finished run"):
        read_sources([tmp_path])


def test_a_file_of_a_run_that_is_gone_is_named_with_the_command_that_writes_it(tmp_path):
    folder = evaluate_run(tmp_path / "evaluated", made_cases(3))
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps(record | {"outputs": {"items.jsonl": "0" * 64}}), encoding="utf-8")
    (evaluated,) = read_sources([folder])
    (folder / "items.jsonl").unlink()
    with pytest.raises(FileError, match="it is gone") as caught:
        items_of(evaluated)
    assert caught.value.do == "run steelyard evaluate again with force=true"


def test_the_same_folder_twice_is_refused_and_equal_names_are_told_apart(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    run = train_run(tmp_path / "a" / "model")
    other = train_run(tmp_path / "b" / "model", steps=40)
    assert [source.name for source in read_sources([run, other])] == ["model", "b/model"]
    with pytest.raises(FileError, match="given twice"):
        read_sources([run, run.parent / "." / "model"])


def test_texts_come_from_what_was_written_and_from_what_was_read_if_it_is_still_the_same(tmp_path):
    cases = made_cases(6)
    resolved, evaluated = resolve_run(tmp_path / "resolved", cases[:3]), evaluate_run(tmp_path / "evaluated", cases)
    sources = read_sources([resolved, evaluated])
    known = read_known_cases(case_files(sources))
    assert {name: len(own.cases) for name, own in known.items()} == {"resolve": 3, "evaluate": 6}
    write_cases(tmp_path / "bench.jsonl", cases[:2])
    assert list(read_known_cases(case_files(sources))) == ["resolve"]
    (tmp_path / "bench.jsonl").unlink()
    assert list(read_known_cases(case_files(sources))) == ["resolve"]


def test_equal_files_are_read_once(tmp_path):
    cases = made_cases(3)
    resolved = resolve_run(tmp_path / "resolved", cases, simulated=False)
    sources = read_sources([resolved, evaluate_run(tmp_path / "evaluated", cases)])
    assert len(case_files(sources)) == 1


def test_a_bench_in_another_format_is_passed_over(tmp_path):
    folder = evaluate_run(tmp_path / "evaluated", made_cases(3))
    foreign = tmp_path / "rows.jsonl"
    foreign.write_text(json.dumps({"prompt": "a", "chosen": "b", "rejected": "c"}) + "\n")
    (source,) = read_sources([folder])
    files = case_files([source])
    assert read_known_cases([file._replace(path=foreign) for file in files]) == {}
    with pytest.raises(RecordError):
        read_known_cases([file._replace(path=foreign, stage="resolve") for file in files])


def test_what_is_broken_is_named_with_its_place(tmp_path):
    folder = evaluate_run(tmp_path / "evaluated", made_cases(3), tied="many")
    (source,) = read_sources([folder])
    with pytest.raises(RecordError, match=r"run\.json at summary: the report cannot read this record"):
        summary_of(source, EvaluationSummary)
    lines = (folder / "items.jsonl").read_text().splitlines()
    (folder / "items.jsonl").write_text("\n".join([lines[0], lines[1][:20]]))
    with pytest.raises(RecordError, match=r"items\.jsonl:2: the line is cut off"):
        items_of(source)
    (folder / "items.jsonl").write_text(lines[0] + '\n{"prompt": 3, "scores": 4}\n')
    with pytest.raises(RecordError, match=r"items\.jsonl:2: the report cannot read"):
        items_of(source)
