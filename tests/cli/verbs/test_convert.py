import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError


def test_help_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = '[{"instruction": "问", "output": ["好", "中", "坏"]}]'
    (tmp_path / "oasst.json").write_text(row, encoding="utf-8")
    result = CliRunner().invoke(build_app(), ["convert", "oasst.json", "cases.jsonl", "--language", "zh"])
    assert (result.exit_code, result.stdout) == (0, "cases.jsonl has 1 case (llamafactory_ranked to cases).\n")
    result = CliRunner().invoke(build_app(), ["convert", "cases.jsonl", "pairs.jsonl", "--to", "trl"])
    first, *rest = result.stdout.splitlines()
    assert first == "pairs.jsonl has 3 rows of 1 case (cases to trl)."
    assert "  lost: response ids 3" in rest
    result = CliRunner().invoke(
        build_app(), ["convert", "cases.jsonl", "pairs.jsonl", "--to", "trl", "--force", "--json"]
    )
    assert json.loads(result.stdout)["lost"]["more than two responses"] == 1
    given = ["convert", "cases.jsonl", "inside.jsonl", "--to", "trl", "--set", "implicit=true"]
    assert CliRunner().invoke(build_app(), given).exit_code == 0
    assert "prompt" not in json.loads((tmp_path / "inside.jsonl").read_text(encoding="utf-8").splitlines()[0])
    rows = [
        {"score_annotator_a": a, "score_annotator_b": 3, "source": "好", "translation": t}
        for a, t in ((5, "x"), (2, "y"))
    ]
    (tmp_path / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = CliRunner().invoke(build_app(), ["convert", "rated.jsonl", "judged.jsonl", "--ratings-to-judgments"])
    assert result.stdout.splitlines() == [
        "judged.jsonl has 1 case (maple to cases).",
        "  noted: judgments derived from ratings 1",
    ]


def test_part_human_keeps_human_judgments(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = {"idx": 1, "instruction": "q", "input": "", "response1": "a", "response2": "b", "annotator1": 1}
    (tmp_path / "pandalm.json").write_text(json.dumps([row | {"gpt_result": "2"}]), encoding="utf-8")
    result = CliRunner().invoke(build_app(), ["convert", "pandalm.json", "people.jsonl", "--evidence", "human"])
    assert result.stdout.splitlines() == [
        "people.jsonl has 1 case (pandalm to cases).",
        "  noted: judgments of other kinds, left out 1",
    ]
    again = CliRunner().invoke(build_app(), ["convert", "people.jsonl", "none.jsonl", "--evidence", "llm"])
    assert again.stdout.splitlines()[0] == "none.jsonl has 1 case (cases to cases)."
    refused = CliRunner().invoke(build_app(), ["convert", "pandalm.json", "x.jsonl", "--evidence", "person"])
    assert isinstance(refused.exception, ConfigError)


def test_columns_imply_the_format_of_a_table_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text('question,good,bad\n"问，\n""谁""？",好,坏\nسؤال,جيد,سيئ\n', encoding="utf-8")
    columns = ["--prompt-column", "question", "--chosen-column", "good", "--rejected-column", "bad"]
    result = CliRunner().invoke(build_app(), ["convert", "own.csv", "cases.jsonl", *columns])
    assert (result.exit_code, result.stdout) == (0, "cases.jsonl has 2 cases (columns to cases).\n")
    result = CliRunner().invoke(build_app(), ["convert", "cases.jsonl", "back.jsonl", "--to", "columns", *columns])
    assert result.exit_code == 0
    rows = [json.loads(line) for line in (tmp_path / "back.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows == [
        {"question": '问，\n"谁"？', "good": "好", "bad": "坏"},
        {"question": "سؤال", "good": "جيد", "bad": "سيئ"},
    ]


def test_columns_beside_another_format_are_refused():
    for option in ("--from", "--to"):
        words = ["convert", "absent.csv", "out.jsonl", option, "trl", "--chosen-column", "good"]
        result = CliRunner().invoke(build_app(), words)
        assert isinstance(result.exception, ConfigError)
        assert "--chosen-column names a column of your own table, and the format trl has its own" in str(
            result.exception
        )


def test_the_help_states_the_labels():
    text = CliRunner().invoke(build_app(), ["convert", "--help"], env={"COLUMNS": "300"}).stdout
    assert "1, a, left, first; 2, b, right, second; tie, equal, same; or a column" in " ".join(text.split())


def test_settings_of_a_format_from_a_file_and_from_the_command_line_join(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('[settings]\nchosen_column = "gut"\nrejected_column = "schlecht"\n')
    (tmp_path / "mine.jsonl").write_text('{"frage": "问", "gut": "好", "schlecht": "坏"}\n', encoding="utf-8")
    words = ["convert", "mine.jsonl", "cases.jsonl", "--config", "mine.toml", "--set", "prompt_column=frage"]
    result = CliRunner().invoke(build_app(), words)
    assert (result.exit_code, result.stdout) == (0, "cases.jsonl has 1 case (columns to cases).\n")
    case = json.loads((tmp_path / "cases.jsonl").read_text(encoding="utf-8"))
    assert [response["text"] for response in case["responses"]] == ["好", "坏"]
    assert case["prompt"]["messages"][0]["content"] == "问"
