"""The stage `describe` on files: what it writes, several files, Parquet, and what it refuses."""

import re

import msgspec
import pytest

from report_sections import only_section, panels_of
from steelyard.core.errors import EvidenceError, ModelError, RecordError
from steelyard.core.types import Response
from steelyard.evaluation.tables import word
from steelyard.io.cases import write_cases
from steelyard.io.rows import write_rows
from steelyard.report.text_tables import latex_table, markdown_table
from steelyard.stages.describe import Config, describe
from steelyard.views.text import result_tables
from strategies import case
from tiny import save_base

ODD = 'a|b_c & 50% #1 {x} \\ ~^ "$'


@pytest.fixture
def file(tmp_path):
    ranked = [case(f"p{n}", "ab", text="甲乙", language="zh", ranking=(("a",), ("b",))) for n in range(3)]
    write_cases(tmp_path / "one.jsonl", [*ranked, case("q", "abc", text="four", source=ODD, language="en")])
    return tmp_path / "one.jsonl"


def test_files_folders_and_parquet_have_one_table(file, tmp_path):
    write_cases(tmp_path / "two.parquet", [case("z", "ab", text="six ch", ranking=(("a", "b"),))])
    run = describe([file, tmp_path / "two.parquet"], tmp_path / "out")
    overall = run.summary.overall
    assert (overall.num_prompts, overall.num_responses, overall.num_comparisons) == (5, 11, 3)
    assert overall.characters.prompt == (3 * 2 + 4 + 6) / 5
    assert (run.counts.num_in, run.counts.num_used) == (5, 5)
    assert not run.outputs
    assert describe([tmp_path]).summary == run.summary  # results below the folder are not read


def test_the_folder_of_a_stage_stands_for_its_cases(file, tmp_path):
    # Beside the cases are replies without a verdict, which are no cases.
    write_cases(tmp_path / "judged" / "cases.jsonl", [case("p", "ab"), case("q", "abc")])
    (tmp_path / "judged" / "unparsed.jsonl").write_text('{"prompt": "p"}\n')
    with pytest.raises(RecordError, match=r"unparsed\.jsonl:1"):
        describe([tmp_path / "judged"])
    (tmp_path / "judged" / "run.json").write_text("{}")
    assert describe([tmp_path / "judged"]).summary.overall.num_responses == 5
    assert describe([file, tmp_path / "judged"]).summary.overall.num_prompts == 6


def test_without_a_folder_nothing_is_written(file, tmp_path):
    before = sorted(tmp_path.iterdir())
    assert describe([file]).summary.overall.num_prompts == 4
    assert sorted(tmp_path.iterdir()) == before


def test_tokens_are_counted_by_a_tokenizer_on_disk(file, tmp_path):
    save_base(folder := tmp_path / "model")
    run = describe([file], tmp_path / "out", Config(tokenizer=str(folder)))
    tokens = run.summary.overall.tokens
    assert tokens is not None
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    zh, en = (len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in ("甲乙", "four"))
    assert tokens.prompt == (3 * zh + en) / 4
    (overall, *_) = result_tables(run, tmp_path / "out")
    assert dict(overall.rows)["tokens, prompt"] == f"{tokens.prompt:.2f}"


def test_a_tokenizer_that_is_not_there_is_named(file, tmp_path):
    with pytest.raises(ModelError, match="no such model folder"):
        describe([file], tmp_path / "out", Config(tokenizer=str(tmp_path / "gone")))
    assert not (tmp_path / "out").exists()


def test_no_case_and_a_foreign_file_are_refused(tmp_path):
    write_cases(tmp_path / "empty.parquet", [])
    with pytest.raises(EvidenceError, match="no case to describe"):
        describe([tmp_path / "empty.parquet"], tmp_path / "out")
    write_rows(tmp_path / "rows.jsonl", [{"prompt": "q", "chosen": "good", "rejected": "no"}])
    with pytest.raises(RecordError, match=r"rows\.jsonl:1"):
        describe([tmp_path / "rows.jsonl"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tables_have_every_group_and_names_cannot_break_them(file, tmp_path):
    run = describe([file], tmp_path / "out")
    tables = list(result_tables(run, tmp_path / "out"))
    assert [table.caption for table in tables] == ["Statistics of the data", "Data by language", "Data by source"]
    assert [cell for _, cell in tables[0].rows] == ["4", "9", "2.25", "3", "2.50", "8.00", "8.00", "8.00"]
    assert tables[0].note.startswith("Comparisons are ordered pairs of responses; ties are none.")
    for table in tables:
        assert {len(row) for row in table.rows} == {len(table.heads)}
        rows = [line for line in markdown_table(table).splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    latex = latex_table(tables[2])
    assert r"a\textbar{}b\_c \& 50\% \#1 \{x\} \textbackslash{} \textasciitilde{}\textasciicircum{} " in latex
    body = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert len({len(re.findall(r"(?<!\\)&", line)) for line in body}) == 1


def test_the_report_has_table_1_and_a_panel_for_each_grouping(file, tmp_path):
    write_cases(tmp_path / "c.jsonl", [case("p", "ab", language="zh"), case("p", "ab", language="en")])
    describe([file], tmp_path / "out")
    section, sentences = only_section(tmp_path / "out")
    assert sentences[0].key == "say_described"
    assert (sentences[0].values["prompts"], sentences[0].values["comparisons"]) == ("4", "3")
    panels = panels_of(section)
    overall = {row[0]: row[1] for row in panels[word("described_overall")].tables[0].table.rows}
    assert overall[word("described_responses_per_prompt")] == "2.25"
    assert overall[word("described_characters_chosen")] == "8.00"
    languages = panels[word("described_by_language")]
    chinese, english = word("name_of_zh", "Chinese"), word("name_of_en", "English")
    assert [row[:2] for row in languages.tables[0].table.rows] == [(chinese, "3"), (english, "1")]
    bars = languages.figure.spec["data"]["values"]
    assert [(bar["row"], bar["number"]) for bar in bars] == [(chinese, 3), (english, 1)]


def test_the_author_of_a_response_is_a_group(tmp_path):
    by = (Response(id="a", text="xx", author="gpt"), Response(id="b", text="y", author="qwen"))
    write_cases(tmp_path / "c.jsonl", [msgspec.structs.replace(case("p", ""), responses=by, ranking=(("b",), ("a",)))])
    groups = describe([tmp_path / "c.jsonl"]).summary.by_author
    assert (groups["gpt"].characters.rejected, groups["gpt"].characters.chosen) == (2, None)
    assert groups["qwen"].characters.chosen == 1
