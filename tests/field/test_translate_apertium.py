"""A bench through the real Apertium: code comes back byte for byte, labels stay, and nothing is asked twice."""

import json
import re
from pathlib import Path
from shutil import which

import pytest

from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.ledger import LEDGER_FILE, open_ledger
from steelyard.stages.translate import Config, translate

DATA = Path(__file__).parents[2].parent / "shared" / "data"
pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(which("apertium") is None, reason="needs apertium and apertium-eng-spa"),
    pytest.mark.skipif(not DATA.is_dir(), reason="the data sets are not here"),
]
NUM_ITEMS = 12
FENCE = re.compile(r"```.*?```", re.DOTALL)


def items():
    """Prompts of LLMBar, with a block of Python of HumanEvalPack in the first answer."""
    rows = json.loads((DATA / "llmbar" / "Dataset" / "LLMBar" / "Natural" / "dataset.json").read_text(encoding="utf-8"))
    file = next((DATA / "humanevalpack").rglob("*python*.jsonl"), None) or next(
        (DATA / "humanevalpack").rglob("*.jsonl")
    )
    programs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()[:NUM_ITEMS]]
    for number, (row, program) in enumerate(zip(rows, programs, strict=False)):
        code = f"```python\n{program['canonical_solution'].rstrip()}\n```"
        yield Case(
            prompt=Prompt(id=f"p{number}", messages=(Message(role="user", content=row["input"]),), language="en"),
            responses=(
                Response(id="a", text=f"{row['output_1']}\n\n{code}\n\nThat is all of `program.reverse()`."),
                Response(id="b", text=row["output_2"]),
            ),
            ranking=(("a",), ("b",)),
        )


def test_a_bench_comes_back_in_spanish_with_its_code(tmp_path):
    write_cases(tmp_path / "cases.jsonl", items())
    config = Config(to=("spa_Latn",), chat={"kind": "apertium"}, allow_failed=NUM_ITEMS)
    run = translate(tmp_path / "cases.jsonl", tmp_path / "out", config)
    cases = {case.key: case for case in read_cases(tmp_path / "out" / "cases.jsonl")}
    translated = [case for (_, language), case in cases.items() if language == "spa_Latn"]
    assert len(translated) == run.summary.languages["spa_Latn"].num_translated >= NUM_ITEMS - 1
    for case in translated:
        source = cases[case.prompt.id, "en"]
        before, after = (each.responses[0].text or "" for each in (source, case))
        assert FENCE.findall(after) == FENCE.findall(before)
        assert after.count("`program.reverse()`") == 1
        assert case.ranking == source.ranking
        assert case.prompt.messages != source.prompt.messages
    with open_ledger(tmp_path / "out" / LEDGER_FILE) as ledger:
        number = len(ledger)
    assert translate(tmp_path / "cases.jsonl", tmp_path / "out", config).summary == run.summary
    with open_ledger(tmp_path / "out" / LEDGER_FILE) as ledger:
        assert len(ledger) == number
