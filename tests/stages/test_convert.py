import json
import shlex
import sys

import pytest
from msgspec.structs import replace

from example_folder import invoke
from steelyard.cli.main import main
from steelyard.core.errors import ConfigError, EvidenceError, FileError, KindError, OutputError, RecordError
from steelyard.core.types import Rating, Response, Run
from steelyard.curation.conversion import ConversionSummary
from steelyard.curation.merge import MOST_ROWS
from steelyard.evaluation.recognition import recognise
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.hashing import file_hash
from steelyard.io.lineage import record_folder
from steelyard.io.rows import read_rows, write_rows
from steelyard.io.run_folder import read_run
from steelyard.stages.convert import Config, convert
from steelyard.stages.merge import merge
from steelyard.stages.split import Config as SplitConfig
from steelyard.stages.split import split
from strategies import case

ROW = {"instruction": "译", "output": ["好", "坏"], "history": []}


def file(path, *rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_foreign_file_becomes_a_case_file_and_another_format(tmp_path):
    source = file(tmp_path / "s.jsonl", ROW, {**ROW, "instruction": "二"})
    done = convert(source, tmp_path / "c.parquet", Config(language="zh", subset="s", source="o"))
    assert (done.from_kind, done.to_kind, done.num_cases, done.noted, done.lost) == (
        "llamafactory_ranked",
        "cases",
        2,
        {},
        {},
    )
    prompts = [one.prompt for one in read_cases(tmp_path / "c.parquet")]
    assert {(prompt.language, prompt.subset, prompt.source) for prompt in prompts} == {("zh", "s", "o")}
    back = convert(tmp_path / "c.parquet", tmp_path / "b.jsonl", Config(to_kind="llamafactory_alpaca"))
    chosen, rejected = ROW["output"]
    pair = {key: value for key, value in ROW.items() if key != "output"} | {"chosen": chosen, "rejected": rejected}
    rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [{key: row[key] for key in pair} for row in rows] == [pair, {**pair, "instruction": "二"}]
    assert (back.lost["prompt ids"], back.lost["response ids"]) == (2, 4)


def test_a_case_file_changes_its_kind_of_file(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(judgments=["a>b"])])
    convert(tmp_path / "c.jsonl", tmp_path / "c.parquet")
    convert(tmp_path / "c.parquet", tmp_path / "d.jsonl")
    assert (tmp_path / "d.jsonl").read_bytes() == (tmp_path / "c.jsonl").read_bytes()
    with pytest.raises(KindError, match="no format to write is named for a case file"):
        convert(tmp_path / "c.jsonl", tmp_path / "e.jsonl")


def test_judgments_are_derived_from_ratings_only_when_asked_for(tmp_path):
    rated = tuple(
        Rating(response=name, rater="r", kind="llm", dimension="d", value=value)
        for name, value in (("a", 1.0), ("b", 2.0), ("c", 2.0))
    )
    write_cases(tmp_path / "c.jsonl", [case(responses="abc", judgments=["a>b"], ratings=rated), case(id="q")])
    convert(tmp_path / "c.jsonl", tmp_path / "d.parquet")
    assert [len(one.judgments) for one in read_cases(tmp_path / "d.parquet")] == [1, 0]
    done = convert(tmp_path / "c.jsonl", tmp_path / "e.jsonl", Config(ratings_to_judgments=True))
    one, other = read_cases(tmp_path / "e.jsonl")
    assert [(j.left, j.right, j.verdict, j.judge) for j in one.judgments] == [
        ("a", "b", "left", "j"),
        ("a", "b", "right", "r"),
        ("a", "c", "right", "r"),
    ]
    assert (one.ratings, other.judgments) == (rated, ())
    assert done.noted == {"judgments derived from ratings": 2}


def test_a_language_that_is_given_is_kept(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(language="en"), case(id="q")])
    convert(tmp_path / "c.jsonl", tmp_path / "d.parquet", Config(language="zh"))
    assert [one.prompt.language for one in read_cases(tmp_path / "d.parquet")] == ["en", "zh"]


def test_what_cannot_be_told_is_refused_with_the_choices(tmp_path):
    with pytest.raises(KindError, match=r"no known format has these fields \(fields a, b\)") as caught:
        recognise(file(tmp_path / "x.jsonl", {"a": 1, "b": 2}))
    assert "from_kind=KIND, or name the columns of your own table: prompt_column=NAME" in str(caught.value)
    mixed = file(tmp_path / "m.jsonl", ROW, {"chosen": "a", "rejected": "b"})
    assert recognise(mixed) == "columns"
    with pytest.raises(KindError, match="did you mean 'trl'"):
        convert(mixed, tmp_path / "o.jsonl", Config(from_kind="trrl"))


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path):
    source = file(tmp_path / "s.jsonl", ROW)
    out = file(tmp_path / "out.jsonl", {"mine": 1})
    with pytest.raises(OutputError, match="there is a file already"):
        convert(source, out)
    broken = file(tmp_path / "b.jsonl", ROW, {"instruction": 3, "output": []})
    with pytest.raises(RecordError, match=r"b\.jsonl:2: the row has int under 'instruction'"):
        convert(broken, out, force=True)
    assert json.loads(out.read_text()) == {"mine": 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.jsonl", "out.jsonl", "s.jsonl"]


def test_a_conversion_that_was_interrupted_at_its_record_has_one_when_it_is_made_again(tmp_path):
    source, out = file(tmp_path / "s.jsonl", ROW), tmp_path / "out.jsonl"
    record = tmp_path / "out.jsonl.run" / "run.json"
    record.parent.mkdir()
    (record.parent / ".run.json.x1.part").touch()
    convert(source, out)
    assert [path.name for path in record.parent.iterdir()] == ["run.json"]
    record.unlink()
    (record.parent / "mine.txt").touch()
    convert(source, out)
    assert not record.exists()


def test_the_same_conversion_again_changes_nothing_and_says_so(tmp_path, capsys):
    source = file(tmp_path / "s.jsonl", ROW)
    for name in ("out.jsonl", "out.parquet"):
        first = convert(source, tmp_path / name)
        before = (tmp_path / name).stat()
        assert convert(source, tmp_path / name) == first
        after = (tmp_path / name).stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        assert f"{name} is written already" in capsys.readouterr().err
    with pytest.raises(OutputError, match="it holds something else"):
        convert(source, tmp_path / "out.jsonl", Config(language="zh"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.jsonl", "out.jsonl.run", "out.parquet", "out.parquet.run", "s.jsonl"
    ]  # fmt: skip


def test_broken_files_are_named(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        convert(tmp_path / "absent.jsonl", tmp_path / "o.jsonl")
    (tmp_path / "empty.json").write_text("[]")
    with pytest.raises(EvidenceError, match="no rows"):
        convert(tmp_path / "empty.json", tmp_path / "o.jsonl")
    (tmp_path / "lfs.jsonl").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(FileError, match="git-LFS pointer"):
        convert(tmp_path / "lfs.jsonl", tmp_path / "o.jsonl")
    (tmp_path / "cut.jsonl").write_text(json.dumps(ROW) + '\n{"instruction": "i", "out')
    with pytest.raises(RecordError, match=r"cut\.jsonl:2: the line is cut off"):
        convert(tmp_path / "cut.jsonl", tmp_path / "o.jsonl")
    assert not (tmp_path / "o.jsonl").exists()


def test_doubled_keys_do_not_become_a_case_file(tmp_path):
    source = file(tmp_path / "s.jsonl", *[{"input": "q", "id": 1, "responses": [], "annotations": []}] * 2)
    with pytest.raises(RecordError, match="is already used at"):
        convert(source, tmp_path / "o.jsonl")


def test_a_row_that_could_be_of_several_formats_is_refused_naming_them(tmp_path):
    pair = {"prompt": "q", "chosen": "a", "rejected": "b", "margin": 1}
    source = file(tmp_path / "s.jsonl", pair | {"responses": [], "rank": {}, "category": []})
    with pytest.raises(KindError, match="could be this: cheems, trl"):
        convert(source, tmp_path / "o.jsonl")
    assert convert(source, tmp_path / "o.jsonl", Config(from_kind="trl")).num_cases == 1


def test_of_several_formats_the_one_that_knows_more_of_the_row_is_taken(tmp_path):
    source = file(tmp_path / "s.jsonl", {"instruction": "i", "input": "", "chosen": "a", "rejected": "b"})
    assert convert(source, tmp_path / "o.jsonl").from_kind == "llamafactory_alpaca"


def test_lines_that_are_no_rows_are_named(tmp_path):
    (tmp_path / "u.jsonl").write_bytes(b'{"prompt": "\xff", "chosen": "a", "rejected": "b"}\n')
    with pytest.raises(FileError, match=r"u\.jsonl:1: byte 13 is not UTF-8"):
        convert(tmp_path / "u.jsonl", tmp_path / "o.jsonl")
    with pytest.raises(RecordError, match=r"n\.jsonl:2: a record that is int"):
        convert(file(tmp_path / "n.jsonl", ROW, 3), tmp_path / "o.jsonl")


def test_a_name_that_cannot_be_written_is_refused(tmp_path):
    source = file(tmp_path / "s.jsonl", ROW)
    (tmp_path / "folder").mkdir()
    for out, found in (
        (source, "converted into itself"),
        (tmp_path / "folder", "a folder of this name"),
        (tmp_path / "o.txt", "a case file cannot have this name"),
    ):
        with pytest.raises(OutputError, match=found):
            convert(source, out, force=True)
    assert json.loads(source.read_text(encoding="utf-8")) == ROW


def test_rows_pass_through_parquet_or_are_refused(tmp_path):
    rows = [
        {"id": name, "input": name, "responses": [{"id": f"{name}{n}", "content": "x"} for n in (1, 2)],
         "annotations": [[f"{name}1", f"{name}2", "1"]], "rank": {f"{name}1": 1, f"{name}2": 2}}
        for name in "ab"
    ]  # fmt: skip
    convert(file(tmp_path / "s.jsonl", *rows), tmp_path / "c.jsonl")
    convert(tmp_path / "c.jsonl", tmp_path / "s.parquet", Config(to_kind="cheems"))
    convert(tmp_path / "s.parquet", tmp_path / "d.jsonl")
    assert (tmp_path / "d.jsonl").read_bytes() == (tmp_path / "c.jsonl").read_bytes()
    numbers = [{"prompt": "q", "chosen": "a", "rejected": "b", "note": note} for note in (1, "x")]
    convert(file(tmp_path / "t.jsonl", *numbers), tmp_path / "e.jsonl", Config(rows="apart"))
    with pytest.raises(OutputError, match="do not fit into columns of one type"):
        convert(tmp_path / "e.jsonl", tmp_path / "t.parquet", Config(to_kind="trl"))
    assert not (tmp_path / "t.parquet").exists()


def test_a_case_file_may_be_an_array(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case()])
    (tmp_path / "a.json").write_text(f"[{(tmp_path / 'c.jsonl').read_text()}]")
    convert(tmp_path / "a.json", tmp_path / "d.jsonl")
    assert (tmp_path / "d.jsonl").read_bytes() == (tmp_path / "c.jsonl").read_bytes()


def test_a_language_does_not_make_two_cases_one(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(language="zh"), case()])
    with pytest.raises(RecordError, match="'p' would stand twice in language 'zh'"):
        convert(tmp_path / "c.jsonl", tmp_path / "d.parquet", Config(language="zh"))
    assert not (tmp_path / "d.parquet").exists()


def test_settings_are_those_of_the_format_that_is_read_where_cases_are_written(tmp_path):
    rows = [{"good": "Is it?\nYes.", "bad": "Is it?\nNo."}]
    write_rows(tmp_path / "o.jsonl", rows)
    named = {"chosen_key": "good", "rejected_key": "bad"}
    convert(tmp_path / "o.jsonl", tmp_path / "c.jsonl", Config(from_kind="openrlhf", settings=named))
    (one,) = read_cases(tmp_path / "c.jsonl")
    assert [response.text for response in one.responses] == ["Yes.", "No."]
    convert(tmp_path / "c.jsonl", tmp_path / "b.jsonl", Config(to_kind="openrlhf", settings=named | {"texts": True}))
    assert [row.value for row in read_rows(tmp_path / "b.jsonl")] == rows


def test_settings_are_those_of_the_format_that_is_written(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(text="q\n", responses="ab", ranking=(("a",), ("b",)))])
    convert(
        tmp_path / "c.jsonl", tmp_path / "t.jsonl", Config(to_kind="trl", settings={"implicit": True, "texts": True})
    )
    assert json.loads((tmp_path / "t.jsonl").read_text()) == {"chosen": "q\nanswer a", "rejected": "q\nanswer b"}
    for kind in ("trl", "cases"):
        with pytest.raises(ConfigError, match="unknown setting 'implict'"):
            convert(tmp_path / "c.jsonl", tmp_path / "x.parquet", Config(to_kind=kind, settings={"implict": True}))


def test_a_part_is_the_evidence_of_one_kind_and_leaves_no_trace_of_the_other(tmp_path):
    row = {"idx": 1, "instruction": "q", "input": "", "response1": "a", "response2": "b", "annotator1": 1}
    source = file(tmp_path / "s.jsonl", row | {"gpt_result": "2", "gpt_reason": "a secret"})
    people = convert(source, tmp_path / "p.jsonl", Config(evidence="human"))
    (one,) = read_cases(tmp_path / "p.jsonl")
    assert [(said.judge, said.kind) for said in one.judgments] == [("annotator1", "human")]
    assert people.noted == {"judgments of other kinds, left out": 1}
    assert "secret" not in (tmp_path / "p.jsonl").read_text(encoding="utf-8")
    convert(source, tmp_path / "m.jsonl", Config(evidence="llm"))
    (two,) = read_cases(tmp_path / "m.jsonl")
    assert [said.kind for said in two.judgments] == ["llm"]
    assert (one.prompt, one.responses) == (two.prompt, two.responses)


def test_a_part_drops_the_raw_answers_that_a_row_would_be_written_from(tmp_path):
    said = {
        "best": {"value": [{"value": "response1", "rank": 1}, {"value": "response2", "rank": 2}], "agent": "secret"}
    }
    fields = {"prompt": "q", "response1": "a", "response2": "b"}
    people = {"why": [{"value": "a text", "user_id": "u"}]}
    source = file(tmp_path / "s.jsonl", {"id": "1", "fields": fields, "suggestions": said, "responses": people})
    convert(source, tmp_path / "p.jsonl", Config(evidence="human"))
    assert "secret" not in (tmp_path / "p.jsonl").read_text(encoding="utf-8")


def test_a_part_of_pure_rankings_has_none(tmp_path):
    source = file(tmp_path / "s.jsonl", ROW)
    done = convert(source, tmp_path / "p.jsonl", Config(evidence="human"))
    assert done.noted == {
        "rankings on other or unsaid evidence, left out": 1,
        "cases without evidence of the kind": 1,
    }
    assert next(read_cases(tmp_path / "p.jsonl")).ranking is None


def trl(prompt, chosen, rejected, **others):
    return {"prompt": prompt, "chosen": chosen, "rejected": rejected, **others}


def test_rows_of_one_prompt_become_one_case_and_come_back(tmp_path):
    rows = [
        trl("甲?", "a", "b"), trl("乙?", "x", "y", id=7), trl("甲?", "b", "c", margin=0.5),
        trl("甲?", "a", "c", note="n"), trl("乙?", "x", "z"), trl("丙?", "a", "b"),
    ]  # fmt: skip
    source = file(tmp_path / "rows.jsonl", *rows)
    done = convert(source, tmp_path / "c.jsonl", Config(from_kind="trl"))
    assert (done.num_rows, done.num_cases, done.num_written) == (6, 3, 3)
    first, second, third = read_cases(tmp_path / "c.jsonl")
    assert (len(first.responses), len(first.pairs), len(second.responses), third.pairs) == (3, 3, 3, None)
    convert(tmp_path / "c.jsonl", tmp_path / "back.jsonl", Config(to_kind="trl", settings={"texts": True}))
    back = [json.loads(line) for line in (tmp_path / "back.jsonl").read_text(encoding="utf-8").splitlines()]
    # A pair without a margin beside one with a margin has margin 0.
    assert back == [{"margin": 0.0} | rows[place] for place in (0, 2, 3, 1, 4, 5)]
    assert not list(tmp_path.glob(".*"))


def test_rows_stay_apart_when_asked_and_can_be_joined_later(tmp_path):
    source = file(tmp_path / "rows.jsonl", trl("甲?", "a", "b"), trl("甲?", "b", "c"))
    done = convert(source, tmp_path / "apart.jsonl", Config(from_kind="trl", rows="apart"))
    assert (done.num_rows, done.num_cases) == (2, 2)
    again = convert(tmp_path / "apart.jsonl", tmp_path / "joined.jsonl", Config(rows="joined"))
    assert (again.num_rows, again.num_cases) == (2, 1)
    convert(source, tmp_path / "at_once.jsonl", Config(from_kind="trl"))
    assert (tmp_path / "joined.jsonl").read_bytes() == (tmp_path / "at_once.jsonl").read_bytes()


def test_a_prompt_of_very_many_rows_becomes_several_cases(tmp_path):
    source = file(tmp_path / "rows.jsonl", *(trl("甲?", f"a{number % 50}", "b") for number in range(MOST_ROWS + 2)))
    assert convert(source, tmp_path / "c.jsonl", Config(from_kind="trl")).num_cases == 2
    assert [len(one.pairs or (1, 2)) for one in read_cases(tmp_path / "c.jsonl")] == [MOST_ROWS, 2]


def test_a_folder_and_a_pattern_of_files_become_one_case_file(tmp_path):
    (tmp_path / "in" / "深").mkdir(parents=True)
    file(tmp_path / "in" / "a.jsonl", ROW, {**ROW, "instruction": "二"})
    # A row of the first file's prompt, with another answer, in another file and form.
    (tmp_path / "in" / "深" / "b.json").write_text(
        json.dumps([{**ROW, "output": ["更好", "坏"]}], ensure_ascii=False), encoding="utf-8"
    )
    (tmp_path / "in" / "README.md").write_text("no data")
    for number, source in enumerate((tmp_path / "in", tmp_path / "in" / "**" / "*.json*")):
        out = tmp_path / f"{number}.jsonl"
        done = convert(source, out, Config(rows="joined"))
        assert (done.num_rows, done.num_cases, done.from_kind) == (3, 2, "llamafactory_ranked")
        first, second = read_cases(out)
        assert (first.prompt.messages[-1].content, second.prompt.messages[-1].content) == ("译", "二")
        assert sorted(response.text for response in first.responses) == ["坏", "好", "更好"]


def test_cases_of_several_files_keep_their_keys_and_may_not_repeat_one(tmp_path):
    write_cases(tmp_path / "a.jsonl", [case("p", "ab")])
    write_cases(tmp_path / "b.parquet", [case("q", "ab")])
    convert(tmp_path / "[ab].*", tmp_path / "both.jsonl")
    assert [one.prompt.id for one in read_cases(tmp_path / "both.jsonl")] == ["p", "q"]
    write_cases(tmp_path / "b.parquet", [case("p", "ab")])
    with pytest.raises(RecordError, match=r"'p'.*is also in .*a\.jsonl"):
        convert(tmp_path / "[ab].*", tmp_path / "again.jsonl")
    assert not (tmp_path / "again.jsonl").exists()


def test_a_file_in_the_folder_that_is_converted_cannot_be_the_result(tmp_path):
    file(tmp_path / "a.jsonl", ROW)
    convert(tmp_path, tmp_path / "cases.jsonl")
    with pytest.raises(OutputError, match="into itself"):
        convert(tmp_path, tmp_path / "cases.jsonl")
    with pytest.raises(FileError, match="no file is found by this pattern"):
        convert(tmp_path / "*.csv", tmp_path / "c.jsonl")


def record(file):
    return read_run(record_folder(file), Run[ConversionSummary])


def test_a_file_has_its_record_beside_it(tmp_path):
    rows = [
        {"prompt": "q", "chosen": "a", "rejected": "b", "license": "cc-by-4.0"},
        {"prompt": "q", "chosen": "a", "rejected": "c", "margin_note": "slight"},
        {"prompt": "r", "chosen": "a", "rejected": "b", "license": "cc-by-4.0"},
    ]
    source, out = file(tmp_path / "s.jsonl", *rows), tmp_path / "c.jsonl"
    convert(source, out, Config(language="zh", source="web"))
    run = record(out)
    assert run.stage == "convert"
    assert run.inputs["source"].sha256 == file_hash(source)
    assert run.outputs == {"c.jsonl": file_hash(out)}
    assert (run.counts.num_in, run.summary.num_rows, run.summary.num_cases, run.summary.num_written) == (3, 3, 2, 2)
    columns = {name: (column.num_rows, column.use) for name, column in run.summary.columns.items()}
    assert columns == {
        "prompt": (3, "read"), "chosen": (3, "read"), "rejected": (3, "read"),
        "license": (2, "kept"), "margin_note": (1, "kept"),
    }  # fmt: skip
    assert (run.summary.num_responses, run.summary.languages, run.summary.sources) == (5, {"zh": 2}, {"web": 2})
    assert run.summary.licences == {"cc-by-4.0": 2}
    assert (run.summary.num_bytes, run.summary.num_files) == (source.stat().st_size, 1)
    back = tmp_path / "b.jsonl"
    lost = convert(out, back, Config(to_kind="cheems")).lost
    assert record(back).summary.lost == lost
    assert lost


def test_an_equal_record_stays_and_another_conversion_replaces_it(tmp_path):
    source, out = file(tmp_path / "s.jsonl", ROW), tmp_path / "c.jsonl"
    convert(source, out)
    path = record_folder(out) / "run.json"
    before = path.stat()
    convert(source, out)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    convert(source, out, Config(language="zh"), force=True)
    assert record(out).config["language"] == "zh"
    path.unlink()
    record_folder(out).rmdir()
    convert(source, out, Config(language="zh"))
    assert record(out).config["language"] == "zh"


def test_a_refused_conversion_leaves_no_record(tmp_path):
    broken = file(tmp_path / "b.jsonl", ROW, {"instruction": 3, "output": []})
    with pytest.raises(RecordError):
        convert(broken, tmp_path / "c.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["b.jsonl"]


def test_something_else_in_the_place_of_the_record_is_left_alone(tmp_path, capsys):
    source, out = file(tmp_path / "s.jsonl", ROW), tmp_path / "c.jsonl"
    record_folder(out).write_text("mine", encoding="utf-8")
    convert(source, out)
    assert record_folder(out).read_text(encoding="utf-8") == "mine"
    assert f"{out} has no record" in capsys.readouterr().err


def test_rows_with_many_columns_are_counted_in_bounded_memory(tmp_path):
    rows = [{"prompt": f"q{n}", "chosen": "a", "rejected": "b", f"column {n}": n} for n in range(1200)]
    source, out = file(tmp_path / "s.jsonl", *rows), tmp_path / "c.jsonl"
    convert(source, out)
    columns = record(out).summary.columns
    assert columns["prompt"].num_rows == 1200
    assert len(columns) == 1001
    assert sum(column.num_rows for column in columns.values()) == 4 * 1200


@pytest.mark.parametrize("name", ["a/b/c", "a b", "-a/b", "a--b/c", "a/b.git", "", "数据/集", "a/" + "x" * 97])
def test_a_data_set_has_a_name_that_the_hub_accepts(tmp_path, name):
    with pytest.raises(ConfigError, match="is not the name of a data set"):
        convert(file(tmp_path / "s.jsonl", ROW), tmp_path / "c.jsonl", Config(dataset_name=name))
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


def test_the_name_of_the_data_set_is_carried_by_every_stage_and_united_by_merge(tmp_path):
    rows = [{"prompt": f"q {n * 7919}", "chosen": "a", "rejected": "b"} for n in range(12)]
    others = [{"prompt": f"other {n * 104729}", "chosen": "a", "rejected": "b"} for n in range(12)]
    for name, own, dataset in (("a", rows, "allenai/reward-bench"), ("b", others, "imdb")):
        source = file(tmp_path / f"{name}.rows.jsonl", *own)
        convert(source, tmp_path / f"{name}.jsonl", Config(dataset_name=dataset))
    convert(tmp_path / "a.jsonl", tmp_path / "a.parquet")
    assert record(tmp_path / "a.parquet").datasets == ("allenai/reward-bench",)
    merged = merge([tmp_path / "a.parquet", tmp_path / "b.jsonl"], tmp_path / "merged")
    assert merged.datasets == ("allenai/reward-bench", "imdb")
    parts = split(tmp_path / "merged" / "cases.jsonl", tmp_path / "split", SplitConfig(near_duplicates="off"))
    assert parts.datasets == ("allenai/reward-bench", "imdb")
    # A file that was changed after it was written is of unknown origin.
    with (tmp_path / "b.jsonl").open("ab") as changed:
        changed.write(b"\n")
    convert(tmp_path / "b.jsonl", tmp_path / "c.parquet")
    assert record(tmp_path / "c.parquet").datasets == ()
    # The cache of the Hub's library names its data sets in its paths.
    cached = tmp_path / "datasets--owner--some-set" / "snapshots" / "abc"
    cached.mkdir(parents=True)
    convert(file(cached / "rows.jsonl", *rows), tmp_path / "d.jsonl")
    assert record(tmp_path / "d.jsonl").datasets == ("owner/some-set",)


@pytest.mark.parametrize(
    ("rows", "verdicts"),
    [
        ([{"вопрос": "q", "Ответ А": "a", "Ответ Б": "b", "Кто лучше": "Б"}], ["right"]),
        ([{"问题": "q", "左": "a", "右": "b", "结果": "左边更好"}], ["left"]),
        ([{"السُّؤال": "q", "الرد الأول": "a", "الرد الثاني": "b", "الأفضل": "الثاني"}], ["right"]),
        ([{"السؤال": "q", "الإجابة الأولى": "a", "الإجابة الثانية": "b", "الأفضل": "ب"}], ["right"]),
        ([{"السوال": "q", "الاجابه الاولي": "a", "الاجابه الثانيه": "b", "الافضل": "الثانيه"}], ["right"]),
        ([{"السؤال": "q", "الإجابة رقم 1": "a", "الإجابة رقم 2": "b", "الأفضل": "متساويان"}], ["tie"]),
        ([{"Frage": "q", "Erste Antwort": "a", "Zweite Antwort": "b", "besser": "zweite"}], ["right"]),
        ([{"pregunta": "q", "Primera respuesta": "a", "Segunda respuesta": "b", "mejor": "segunda"}], ["right"]),
        (
            [{"question": "q", "Première réponse": "a", "Seconde réponse": "b", "meilleure": "Première réponse"}],
            ["left"],
        ),
        ([{"Вопрос": "q", "Первый ответ": "a", "Второй ответ": "b", "кто лучше": "второй"}], ["right"]),
        ([{"问题": "q", "第一个回答": "a", "第二个回答": "b", "更好": "第二个"}], ["right"]),
        ([{"질문": "q", "첫 번째 답변": "a", "두 번째 답변": "b", "label": "두 번째"}], ["right"]),
        ([{"Question": "q", "First Answer": "a", "Second Answer": "b", "Better": "Second"}], ["right"]),
        (
            [
                {"prompt": "q", "answer_a": "a", "answer_b": "b", "label": label, "Comments": []}
                for label in (["B"], [])
            ],
            ["right", "none"],
        ),
        ([{"prompt": "q", "answer_a": "a", "answer_b": "b", "label": '["A"]'}], ["left"]),
        ([{"質問": "q", "回答Ａ": "a", "回答Ｂ": "b", "勝者": "Ａ", "点数": "４"}], ["left"]),
        ([{"Frage": "q", "Antwort A": "a", "Antwort B": "b", "besser": "B", "Bewertung A": "4,5"}], ["right"]),
        ([{"question": "q", "answer1": "a", "answer2": "b", "chosen_by_us": "answer2"}], ["right"]),
        ([{"prompt": "q", "first": "a", "second": "b", "winner": "两个都好"}], ["tie"]),
    ],
)
def test_votes_under_names_in_other_languages_are_read(tmp_path, rows, verdicts):
    write_rows(tmp_path / "votes.jsonl", rows)
    convert(tmp_path / "votes.jsonl", tmp_path / "cases.jsonl")
    cases = list(read_cases(tmp_path / "cases.jsonl"))
    assert [each.verdict for one in cases for each in one.judgments] == verdicts


@pytest.mark.parametrize(
    ("field", "ratings", "meta"),
    [
        ({"ratings": {"ann": 6, "bob": None}}, [("ann", "rating", 6.0, None)], None),
        ({"scores": {"helpfulness": 6, "overall": "3"}},
         [(None, "helpfulness", 6.0, None), (None, "overall", 3.0, None)], None),
        ({"ratings": [{"annotator": "ann", "score": "6", "scale": 7}, {"annotator": "bob", "score": None}]},
         [("ann", "score", 6.0, {"scale": 7})], None),
        ({"annotations": [{"user_id": 4, "value": 2}, {"user_id": 5, "value": None, "comment": "cut off"}]},
         [("4", "rating", 2.0, None)],
         {"annotations": [{"user_id": 4, "value": 2}, {"user_id": 5, "value": None, "comment": "cut off"}]}),
        ({"rating": "5", "note": "x"}, [(None, "rating", 5.0, None)], {"note": "x"}),
        ({"ratings": "see sheet 2"}, [], {"ratings": "see sheet 2"}),
    ],
)  # fmt: skip
def test_ratings_inside_the_answers_of_a_list_are_read_and_nothing_beside_them_is_lost(tmp_path, field, ratings, meta):
    """They were kept in the answers' ``meta``, and nothing said so; or they counted as left out."""
    row = {"messages": [{"role": "user", "content": "q"}], "responses": [{"content": "a"} | field, {"content": "b"}]}
    write_rows(tmp_path / "rows.json", [row])
    done = convert(tmp_path / "rows.json", tmp_path / "cases.jsonl")
    (case,) = read_cases(tmp_path / "cases.jsonl")
    first = case.responses[0]
    assert [(None if each.rater == "unknown" else each.rater, each.dimension, each.value, each.meta)
            for each in case.ratings] == ratings  # fmt: skip
    assert {each.response for each in case.ratings} <= {first.id}
    assert first.meta == meta
    assert not any("left out" in name for name in done.noted)


def test_grades_of_several_people_beside_two_answers_are_no_table_of_answers_alone(tmp_path):
    rows = [
        {
            "prompt": f"q{n}",
            "response_a": "a",
            "response_b": "b",
            "ann": grade,
            "bob": -grade,
            "model_a": "x",
            "model_b": "y",
        }
        for n, grade in enumerate((3, -1, 2, None))
        if grade
    ]
    write_rows(tmp_path / "rows.json", rows)
    with pytest.raises(KindError) as refused:
        convert(tmp_path / "rows.json", tmp_path / "cases.jsonl")
    assert 'judge_column=["ann","bob"]' in str(refused.value)
    assert "model_a" not in str(refused.value).partition("  do:")[2]


def case_of_printed_command(rows, tmp_path, monkeypatch):
    """The case that the command makes which the refusal of the rows prints."""
    write_rows(tmp_path / "rows.jsonl", rows)
    return case_of_command_after(["convert", "rows.jsonl", "cases.jsonl"], tmp_path, monkeypatch)


def case_of_command_after(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = invoke(words)
    assert isinstance(refused.exception, KindError)
    monkeypatch.setattr(sys, "argv", shlex.split(str(refused.exception.do).rpartition("perhaps so: ")[2]))
    with pytest.raises(SystemExit, match="0"):
        main()
    (one,) = read_cases(tmp_path / "cases.jsonl")
    return one


@pytest.mark.parametrize("question", ["preference", "which_one"])
def test_the_printed_command_reads_the_choices_of_label_studio(tmp_path, monkeypatch, question):
    answers = {"prompt": "What is the capital?", "answer_a": "Rome, I think.", "answer_b": "Paris is."}
    row = {"id": 1, **answers, "tone": {"choices": ["polite"]}, question: {"choices": ["B"]}, "annotator": 7}
    one = case_of_printed_command([row], tmp_path, monkeypatch)
    assert [(each.verdict, each.judge) for each in one.judgments] == [("right", "7")]
    assert one.prompt.messages[0].content == "What is the capital?"


def test_the_printed_command_keeps_the_encoding(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text("質問,回答A,回答B,良い方\n首都は？,東京,大阪,A\n", "cp932")
    words = ["convert", "rows.csv", "cases.jsonl", "--set", "encoding=CP932"]
    one = case_of_command_after(words, tmp_path, monkeypatch)
    assert [one.prompt.messages[0].content, *(response.text for response in one.responses)] == [
        "首都は？",
        "東京",
        "大阪",
    ]


@pytest.mark.parametrize(
    ("ends", "values", "sides"),
    [
        ("ab", (0, 1), "right left"),
        ("12", (0, 1), "right left"),
        ("01", (0, 1), "left right"),
        ("ab", (-1, 2, 0, 1), "left right tie right"),
    ],
)
def test_the_printed_command_for_labels_in_numbers_works(tmp_path, monkeypatch, ends, values, sides):
    names = [f"answer_{end}" for end in ends]
    rows = [{"question": "q", **dict(zip(names, "xy", strict=True)), "label": value, "user": "p"} for value in values]
    one = case_of_printed_command(rows, tmp_path, monkeypatch)
    assert [each.verdict for each in one.judgments] == sides.split()
    assert {each.judge for each in one.judgments} == {"p"}


def test_the_printed_command_for_ranks_works(tmp_path, monkeypatch):
    rows = [{"问题": "光？", "responses": ["b", "a"], "排名": [2, 1]}]
    one = case_of_printed_command(rows, tmp_path, monkeypatch)
    assert one.ranking == ((one.responses[1].id,), (one.responses[0].id,))


def test_an_export_counts_the_pairs_that_no_trainer_can_learn(tmp_path):
    # Of three pairs one has two texts that read the same, and one a better answer without text.
    rows = (("yes", "no"), ("Cafe\u0301", "café\u200b"), (" ", "no"))
    cases = [
        replace(
            case(id=f"p{number}", responses="ab", ranking=(("a",), ("b",))),
            responses=tuple(Response(id=name, text=text) for name, text in zip("ab", texts, strict=True)),
        )
        for number, texts in enumerate(rows)
    ]
    write_cases(tmp_path / "cases.jsonl", cases)
    for kind in ("trl", "openrlhf", "llamafactory_sharegpt"):
        done = convert(tmp_path / "cases.jsonl", tmp_path / f"{kind}.jsonl", Config(to_kind=kind))
        assert (done.num_written, done.noted["pairs of equal texts"], done.noted["empty or blank responses"]) == (
            3,
            1,
            1,
        )


@pytest.mark.parametrize(
    ("answer", "others"), [("response", "Best_Answer"), ("回答", "正确答案"), ("answer", "reference_answer_")]
)
def test_the_printed_command_reads_an_answer_beside_several_references(tmp_path, monkeypatch, answer, others):
    row = {"question": "你是哪国人？", "is_hallucination": True, answer: "我是中国人。"}
    row |= {f"{others}{number}": f"我没有国籍，其{number}。" for number in range(1, 5)}
    one = case_of_printed_command([row], tmp_path, monkeypatch)
    assert [each.text for each in one.responses] == ["我是中国人。"]
    assert one.prompt.messages[0].content == "你是哪国人？"
