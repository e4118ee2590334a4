import json

from typer.testing import CliRunner

from steelyard.cli.main import build_app

TINY = [
    "simulated.num_prompts=32",
    "simulated.test_share=0.5",
    "backbone.hidden_size=32",
    "backbone.num_layers=1",
    "backbone.vocabulary=400",
    "model.epochs=1",
    "evaluated.num_resamples=20",
    "by_kind.num_resamples=20",
]


def call(*words):
    settings = [word for assignment in TINY for word in ("--set", assignment)]
    return CliRunner().invoke(build_app(), ["demo", *map(str, words), *settings])


def test_output_begins_with_simulated_and_ends_with_page(tmp_path):
    result = call("--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    lines = result.stdout.strip().splitlines()
    assert lines[0].startswith("SIMULATED")
    assert lines[-1].endswith(str(tmp_path / "out" / "report" / "report.html"))
    again = json.loads(call("--out", tmp_path / "out", "--json").stdout)
    assert again["simulated"] is True
    trained = again["summary"]["model"]
    assert trained["num_steps"] == -(-trained["num_prompts"] // 4), (
        "one epoch, as set, of the demo's four prompts a step"
    )
    conflicts = again["summary"]["resolved"]["conflicts"]["overall"]
    assert f"{conflicts['share_of_pairs_ordered']:.1%} of the pairs" in result.stdout
    accuracy = again["summary"]["evaluated"]["accuracy"]["value"]
    assert f"{accuracy:.3f}" in next(line for line in lines if line.startswith("accuracy"))
