"""Real Chinese rankings, as their authors published them, there and back."""

import json
from pathlib import Path

import pytest

from steelyard.files.cases import read_cases
from steelyard.methods.ranking.pairs import pairs_of
from steelyard.stages.convert import Config, convert

FILE = Path(__file__).parents[2].parent / "shared" / "data" / "oasst1_zh_rm" / "oaast_rm_zh.json"
pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(not FILE.exists(), reason="the real data are not beside the project"),
]


def test_every_answer_and_pair_is_read_and_comes_back(tmp_path):
    done = convert(FILE, tmp_path / "c.jsonl", Config(language="zh"))
    cases = list(read_cases(tmp_path / "c.jsonl"))
    # The counts stand in the data's own description.
    assert (done.num_cases, sum(len(pairs_of(one)) for one in cases)) == (775, 1809)
    assert done.noted == {"repeated responses": 6}
    convert(tmp_path / "c.jsonl", tmp_path / "b.json", Config(to_kind="llamafactory_ranked"))
    assert json.loads((tmp_path / "b.json").read_text(encoding="utf-8")) == json.loads(FILE.read_text(encoding="utf-8"))
