import json

from typer.testing import CliRunner

import tiny
from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from strategies import case


def invoke(*words):
    return CliRunner().invoke(build_app(), ["train", *map(str, words)])


def test_precedence_of_config_file_set_and_options(tmp_path):
    answers = (Response(id="a", text="yes"), Response(id="b", text="no"))
    one = Case(prompt=case().prompt, responses=answers, ranking=(("a",), ("b",)))
    write_cases(tmp_path / "c.jsonl", [one])
    base = tiny.save_base(tmp_path / "base")
    (tmp_path / "t.toml").write_text("epochs = 5\nregulariser = 0.0\nseed = 1\n")
    words = [tmp_path / "c.jsonl", "--model", base, "--out", tmp_path / "out", "--config", tmp_path / "t.toml"]
    result = invoke(*words, "--set", "epochs=4", "--set", "warmup_ratio=0", "--epochs", 3, "--json")
    assert result.exit_code == 0, result.output
    run = json.loads(result.stdout)
    config = run["config"]
    assert (config["epochs"], config["regulariser"], config["warmup_ratio"], config["seed"]) == (3, 0.0, 0.0, 1)
    assert run["summary"]["num_steps"] == 3
    again = invoke(*words, "--set", "warmup_ratio=0", "--epochs", 3)
    sentence, written, _, following = again.stdout.splitlines()
    assert sentence.startswith("Training took 3 steps over 1 pair of 1 prompt; the final loss is ")
    assert written.startswith(f"written: {tmp_path / 'out'}, ")
    assert following == f"next: steelyard evaluate --bench TEST.jsonl --model {tmp_path / 'out'} --out evaluated"
    (tmp_path / "test.jsonl").touch()
    *_, following = invoke(*words, "--set", "warmup_ratio=0", "--epochs", 3).stdout.splitlines()
    assert (
        f"--bench {tmp_path / 'test.jsonl'} --model {tmp_path / 'out'} --train-cases {tmp_path / 'c.jsonl'}"
        in following
    )


def test_misspelt_setting_is_a_user_error(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case()])
    result = invoke(tmp_path / "c.jsonl", "--model", "m", "--out", tmp_path / "out", "--set", "epoch=1")
    assert isinstance(result.exception, ConfigError)
    assert "did you mean 'epochs'" in str(result.exception)


def test_a_loss_of_ties_says_how_many_it_reads(tmp_path):
    base = tiny.save_base(tmp_path / "base")
    cases = [case(f"p{number}", "abc", ranking=(("a", "c"), ("b",))) for number in range(3)]
    write_cases(tmp_path / "tied.jsonl", cases)
    write_cases(tmp_path / "strict.jsonl", [case("p", "ab", ranking=(("a",), ("b",)))])
    words = ("--model", base, "--loss", "davidson", "--epochs", 1, "--out")
    tied = invoke(tmp_path / "tied.jsonl", *words, tmp_path / "tied")
    assert "3 ties beside these pairs" in tied.stdout
    assert "none of the" not in tied.output
    strict = invoke(tmp_path / "strict.jsonl", *words, tmp_path / "strict")
    assert strict.output.count("none of 1 pair is a tie") == 1
    run = json.loads((tmp_path / "strict" / "run.json").read_text(encoding="utf-8"))
    assert run["counts"]["noted"] == {"ties": 0}
