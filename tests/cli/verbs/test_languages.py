from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import RecordError
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
    assert "random" in lines[0]
    assert "Families, scripts and other groups of languages" in result.output
    assert any(line.startswith("family: Afro-Asiatic") for line in lines)


def test_the_answer_says_how_far_the_mean_lies_below_the_baseline(tmp_path):
    """The longer response is the better one of every Chinese pair, and of one Hebrew pair of four."""
    cases = []
    for name in ("zh", "he"):
        for index in range(4):
            better, worse = ("long", "x") if name == "zh" or index == 0 else ("x", "long")
            ranking = ((better,), (worse,))
            cases.append(case(f"p{index}", (better, worse), language=name, ranking=ranking))
    write_cases(tmp_path / "bench.jsonl", cases)
    evaluated, out = str(tmp_path / "e"), str(tmp_path / "l")
    words = ["evaluate", "--bench", str(tmp_path / "bench.jsonl"), "--model", "longer", "--out", evaluated]
    assert CliRunner().invoke(build_app(), [*words, "--set", "num_resamples=5"]).exit_code == 0
    words = ["languages", evaluated, "--out", out, "--baseline-language", "zh", "--set", "num_resamples=20"]
    (answer, *_) = CliRunner().invoke(build_app(), words).stdout.splitlines()
    assert "25.0%" in answer
    assert "75.0" in answer
    assert "without Chinese" in answer


def test_a_published_table_is_answered_in_a_table_and_a_broken_one_with_its_line(tmp_path):
    (tmp_path / "table.csv").write_text(
        "model,type,avg,de,fr\nmine,generative,60.0,55.0,65.0\nother,implicit,50.0,40.0,60.0\n"
    )
    words = ["languages", "--table", str(tmp_path / "table.csv"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(build_app(), words)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["mine", "60.0", "50.0"] in lines  # the mean, and the variance 5² + 5²
    checked = "Checked 2 printed means, variances and deviations: all follow from the printed numbers, up to rounding."
    assert checked in result.stdout
    (tmp_path / "broken.csv").write_text("model,de,fr\nmine,55.0,165.0\n")
    broken = ["languages", "--table", str(tmp_path / "broken.csv"), "--out", str(tmp_path / "none")]
    result = CliRunner().invoke(build_app(), broken)
    assert isinstance(result.exception, RecordError)  # the program exits with 2
    assert not (tmp_path / "none").exists()
