import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.types import Case, Response
from steelyard.stages.score import score
from strategies import prompt
from supervision_files import write


def test_help_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cases = [
        Case(
            prompt=prompt(f"p{index}", str(index), language="zh"),
            responses=(Response(id="b", text="好" * (3 if index % 3 else 1)), Response(id="w", text="坏坏")),
            ranking=(("b",), ("w",)),
        )
        for index in range(9)
    ]
    (tmp_path / "resolved").mkdir()
    write(tmp_path / "resolved" / "cases.jsonl", cases)
    score(tmp_path / "resolved" / "cases.jsonl", tmp_path / "scored", model="longer")
    words = ["debias", "resolved/cases.jsonl", "--out"]
    plain = CliRunner().invoke(build_app(), [*words, "debiased", "--within", "language", "--verbose"])
    assert plain.exit_code == 0
    assert plain.stdout.startswith(
        "6 of 9 pairs stay. Among pairs with a difference, “the better answer is longer” holds for"
    )
    assert "holds for 66.7% before and 50.0% after." in plain.stdout
    assert "66.7% 6 3 0 50.0% 3 3 0" in " ".join(plain.stdout.split())
    assert "9 in, 6 used; dropped: downsampled 3" in plain.stdout
    measured = CliRunner().invoke(build_app(), [*words, "measured", "--scores", "scored/scores.jsonl", "--verbose"])
    assert "Accuracy of the scores before and after" in measured.stdout
    assert "66.7% [" in measured.stdout
    run = json.loads(CliRunner().invoke(build_app(), [*words, "other", "--by", "markdown", "--json"]).stdout)
    assert run["summary"]["overall"]["after"]["num_equal"] == 9
