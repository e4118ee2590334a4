"""The study of filters on PandaLM's people and GPT-3.5, with n-grams: figures that an independent trial had found."""

import subprocess
import sys
from pathlib import Path

import pytest

from example_folder import done
from steelyard.io.run_folder import read_run

ROOT = Path(__file__).parents[2]
DATA = ROOT / ".." / "shared" / "data" / "pandalm" / "data"


@pytest.mark.field
@pytest.mark.skipif(not DATA.is_dir(), reason="PandaLM's test set is not here")
def test_gpt_is_as_often_right_as_an_independent_trial_found(tmp_path):
    script = ROOT / "docs" / "howto" / "pandalm.py"
    subprocess.run([sys.executable, script, DATA, tmp_path / "pandalm.json"], check=True)
    done("convert", tmp_path / "pandalm.json", tmp_path / "judged.jsonl", "--language", "en")
    recipe = '[stages.study]\nverb = "filter-study"\ncases = "judged.jsonl"\n'
    recipe += 'config = { judge = "gpt-3.5-turbo", train_on = "unanimous" }\n'
    (tmp_path / "study.toml").write_text(recipe)
    done("run", tmp_path / "study.toml", "--out", tmp_path / "out")
    found = read_run(tmp_path / "out" / "study").summary
    rows = {row["filter"]: row for row in found["precision"]["filters"]}
    assert found["num_human_pairs"] == 894
    assert found["num_human_pairs_trained_on"] == 794
    assert rows["all"]["precision"]["n"] == 849
    assert round(rows["all"]["precision"]["value"], 3) == 0.815
    assert rows["longer"]["precision"]["n"] == 523
    assert round(rows["longer"]["precision"]["value"], 3) == 0.895
    assert rows["agrees"]["gain"]["low"] > 0
