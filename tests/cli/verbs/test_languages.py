from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.io.cases import write_cases
from strategies import case


def test_help_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cases = [
        case(f"p{index}", "ab", language=name, ranking=(("a",), ("b",))) for name in ("en", "he") for index in range(9)
    ]
    write_cases(tmp_path / "bench.jsonl", cases)
    words = "evaluate --bench bench.jsonl --model random --out evaluated --set num_resamples=5 --baselines none"
    assert CliRunner().invoke(build_app(), words.split()).exit_code == 0
    result = CliRunner().invoke(
        build_app(), ["languages", "evaluated", "--out", "languages", "--set", "num_resamples=20", "--verbose"]
    )
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("random has ")
    assert " on average over 1 languages, " in lines[0]
    assert lines[lines.index("") + 1] == "random on cases by language (95% intervals, clustered by item)"
    assert any(line.startswith("mean without en: ") for line in lines)
    assert any(line.startswith("  family Afro-Asiatic: ") for line in lines)
