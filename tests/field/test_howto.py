"""The how-tos' own commands on the real data, as far as they need no pretrained weights: the baselines' figures."""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.io.cases import read_cases
from steelyard.io.run_folder import read_run

ROOT = Path(__file__).parents[2]
HALLUQA = ROOT.parent / "shared" / "data" / "halluqa" / "HalluQA.json"
PANDALM = ROOT.parent / "shared" / "data" / "pandalm" / "data"
LLMBAR = ROOT.parent / "shared" / "data" / "llmbar" / "Dataset" / "LLMBar"
XCOPA = ROOT.parent / "shared" / "data" / "xcopa"
XL = ROOT.parent / "shared" / "data" / "humaneval_xl_python" / "data" / "python"
PACK = ROOT.parent / "shared" / "data" / "humanevalpack" / "evaluation" / "create" / "humaneval-x" / "data" / "python"
TREES = ROOT.parent / "shared" / "data" / "oasst1_en_validation" / "en-validation.jsonl"
OASST = ROOT.parent / "shared" / "data" / "oasst1_zh_rm" / "oaast_rm_zh.json"
pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(not HALLUQA.exists(), reason="the real data are not beside the project"),
]


def commands(name):
    """The shell lines of a how-to that call steelyard."""
    text = (ROOT / "docs" / "howto" / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("steelyard")]


def invoke(words):
    result = CliRunner().invoke(build_app(), words)
    assert result.exit_code == 0, (words, result.output, result.exception)


def without_model(words, name):
    """The evaluation of the how-to with a baseline in the place of the trained model."""
    return [name if before == "--model" else word for before, word in zip([None, *words], words, strict=False)]


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_halluqa_s_commands_and_its_n_gram_figure(there):
    spec = importlib.util.spec_from_file_location("halluqa", ROOT / "docs" / "howto" / "halluqa.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(str(HALLUQA), "halluqa.jsonl")
    for words in commands("halluqa.md"):
        if words[0] in ("train", "report", "convert"):
            continue
        invoke(without_model(words, "longer"))
    summary = read_run(there / "evaluated").summary
    # Cross-fitted over all questions elsewhere: n-grams 85.9 [83.4, 88.1], longer 65.6 [62.0, 69.1].
    assert 0.80 < summary["baselines"]["ngram"]["accuracy_micro"]["value"] < 0.92
    assert 0.55 < summary["accuracy_micro"]["value"] < 0.75


def test_oasst_s_commands_and_that_longer_wins(there):
    (there / "oaast_rm_zh.json").write_bytes(OASST.read_bytes())
    (there / "en-validation.jsonl").write_bytes(TREES.read_bytes())
    for words in commands("oasst.md"):
        if words[0] in ("train", "report"):
            continue
        invoke(without_model(words, "longer"))
    summary = read_run(there / "evaluated").summary
    # Over all folds elsewhere: longer 75.9 [73.3, 78.3].
    assert 0.68 < summary["accuracy_micro"]["value"] < 0.84
    assert 0.5 < read_run(there / "ngram_trees").summary["accuracy_micro"]["value"] < 0.72


def run_script(name, *words):
    subprocess.run(
        [sys.executable, "-B", str(ROOT / "docs" / "howto" / name), *map(str, words)], check=True, timeout=120
    )


def test_halluqa_s_people_and_gpt_4_stand_apart(there):
    run_script("halluqa_models.py", HALLUQA, HALLUQA.parent / "Chinese_LLMs_outputs" / "open_generation", "both.jsonl")
    for words in commands("halluqa.md"):
        if words[0] == "convert":
            invoke(words)
    people, labels = (list(read_cases(Path(name))) for name in ("people.jsonl", "gpt4.jsonl"))
    assert sum(len(one.judgments) for one in people) == 4865
    assert not any(one.ratings or one.ranking for one in people)
    # Counted in the published files: 4,323 answers without a hallucination, 6,464 with one, 13 labels unreadable.
    values = Counter(rating.value for one in labels for rating in one.ratings)
    assert values == {1.0: 4323, 0.0: 6464}
    assert not any(one.judgments or one.ranking for one in labels)
    assert {len(one.responses) - len(two.responses) for one, two in zip(people, labels, strict=True)} == {0}


def test_pandalm_s_people_and_models_stand_apart(there):
    run_script("pandalm.py", PANDALM, "pandalm.json")
    for words in commands("pandalm.md"):
        invoke(words)
    people, models = (list(read_cases(Path(name))) for name in ("people.jsonl", "models.jsonl"))
    votes = [Counter(judgment.verdict for judgment in one.judgments) for one in people]
    # Counted in the published files themselves: 879 unanimous, 120 split; GPT-3.5 says what two people say on 697
    # pairs (on 692 without the five where both say that there is a tie: "Tie" there, 0 here).
    assert sum(len(one) == 1 for one in votes) == 879
    said = [{judgment.judge: judgment.verdict for judgment in one.judgments} for one in models]
    agreed = [vote[one["gpt-3.5-turbo"]] >= 2 for vote, one in zip(votes, said, strict=True)]
    assert (sum(agreed), len(agreed)) == (697, 999)
    assert Counter(one["gpt-3.5-turbo"] for one in said)["none"] == 25
    assert {judgment.kind for one in models for judgment in one.judgments} == {"llm"}
    printed = (ROOT / "docs" / "howto" / "pandalm.md").read_text(encoding="utf-8")
    for name, folder in (("people", "resolved_people"), ("models", "resolved_models")):
        overall = read_run(there / folder).summary["conflicts"]["overall"]
        assert f"| {name} | {overall['ratio']:.1%} | {overall['ratio_of_strict']:.1%} |" in printed


def shown_output(page):
    """The lines of output that a how-to shows, without the spaces between columns."""
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL)
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    return [" ".join(line.split()) for line in lines if line.strip()]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("llmbar", (LLMBAR, "llmbar.jsonl")),
        ("xcopa", (XCOPA, "xcopa.jsonl", "translated.jsonl")),
        ("parallel_code", (PACK / "data" / "humanevalpack.jsonl", XL, "parallel.jsonl")),
    ],
)
def test_what_length_says_of_the_benches_is_what_the_page_says(there, capfd, page, words):
    run_script(f"{page}.py", *words)
    printed = capfd.readouterr().out.splitlines()
    for command in commands(f"{page}.md"):
        if any("own" in word for word in command):
            continue
        result = CliRunner().invoke(build_app(), command)
        assert result.exit_code == 0, (command, result.output, result.exception)
        printed += result.output.splitlines()
    lines = {" ".join(line.split()) for line in printed}
    shown = shown_output(page)
    assert len(shown) >= 5
    assert [line for line in shown if line not in lines] == []
