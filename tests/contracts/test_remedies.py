"""The commands run that errors lead to, when they are pasted.

That every remedy of the source is one of its verb: `tests/architecture/test_remedies.py`.
"""

import json
import re
import shlex

import pytest

import tiny
from example_folder import done, invoke
from recipe_files import small_recipe
from steelyard.core.errors import UserError
from steelyard.io.cases import read_cases
from steelyard.networks.conversation import Rendering, encode
from steelyard.networks.loading import load_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A simulated bench and its training cases, backbones, a model, and evaluations that do not belong together."""
    made = tmp_path_factory.mktemp("remedies")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        done(
            "demo",
            "--data",
            "--out",
            "sim",
            "--set",
            "num_prompts=48",
            "--set",
            "test_share=0.34",
            "--set",
            "llm_share=0.5",
        )
        done("resolve", "sim/cases.jsonl", "--out", "ranked")
        for name, template in (("base", tiny.CHATML), ("bare", None)):
            tiny.save_base(made / name, **({} if name == "base" else {"template": template}))
        tiny.save_classifier(made / "untold", template=None)
        done("train", "ranked/cases.jsonl", "--model", "base", "--out", "model", "--epochs", 1, "--max-length", 2048)
        done("score", "sim/test.jsonl", "--model", "longer", "--out", "scored")
        lines = [json.loads(line) for line in (made / "scored" / "scores.jsonl").read_text("utf-8").splitlines()]
        name = next(iter(lines[0]["scores"]))
        lines[0] |= {"scores": lines[0]["scores"] | {name: None}, "unscored": {name: "lost"}}
        (made / "lost.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        for name, more in (("cut", ["--over-length", "left"]), ("left-out", [])):
            words = ["--bench", "sim/test.jsonl", "--model", "model", "--set", "num_resamples=20"]
            done("evaluate", *words, "--out", name, "--max-length", limit(made, "sim/test.jsonl"), *more)
        (made / "votes.csv").write_text("Frage,Text A,Text B,Wer?\n问 x,好,坏,a\nq,x,y,tie\n", "utf-8")
        (made / "labels.csv").write_text("q,a,b,winner\n问,好,坏,1\n说,x,y,0\n", "utf-8")
        (made / "texts.csv").write_text("Anfrage,Nummer\n问,3\n", "utf-8")
        (made / "found.jsonl").write_text('{"prompt": "q", "note": "n"}\n')
        small_recipe(made)
        done("run", "small.toml", "--out", "whole")
    return made


def limit(folder, name):
    """One token less than the longest conversation of the cases has."""
    tokenizer = load_tokenizer(str(folder / "base"))
    rendering = Rendering(template=tokenizer.chat_template, max_length=10**6)
    cases = list(read_cases(folder / name))
    return max(encode(tokenizer, rendering, case, one).length for case in cases for one in case.responses) - 1


LONG = "--over-length refuse --max-length LIMIT"
TRAIN = "train ranked/cases.jsonl --epochs 1 --out OUT"
EVALUATE = "evaluate --bench sim/test.jsonl --set num_resamples=20 --out OUT"
# What is refused; what the remedy says to write, as an expression with one group; and what of the command it replaces,
# or ``what => by what`` where the remedy is a sentence.
REFUSED = [
    (f"{TRAIN} --model bare", r"(--chat-template plain)", ""),
    (f"{EVALUATE} --model ./untold", r"(--chat-template plain)", ""),
    ("score sim/test.jsonl --model ./untold --out OUT", r"(--chat-template plain)", ""),
    (f"{TRAIN} --model base {LONG}", r"(--over-length unscored)", "--over-length refuse"),
    (f"{EVALUATE} --model model {LONG}", r"(--over-length left)", "--over-length refuse"),
    (f"{EVALUATE} --model model {LONG}", r"(--max-length \d+)", "--max-length LIMIT"),
    (f"score sim/test.jsonl --model model --no-self-test --out OUT {LONG}",
     r"(--max-length \d+)", "--max-length LIMIT"),
    (f"{TRAIN} --model base --held-out ranked/cases.jsonl", r"(--allow-overlap)", ""),
    ("evaluate --bench ranked/cases.jsonl --model model --set num_resamples=20 --out OUT",
     r"(--set allow_overlap=true)", ""),
    (f"{EVALUATE} --scores lost.jsonl", r"(--allow-unscored)", ""),
    (f"{EVALUATE} --model ngram", r"(--train-cases) FILE", "VALUE ranked/cases.jsonl"),
    ("score sim/test.jsonl --model ngram --out OUT", r"(--set model.train)=FILE", "VALUE=ranked/cases.jsonl"),
    (f"{TRAIN} --model base --set save_adapter=adapter", r"(--adapter lora)", ""),
    (f"{TRAIN} --model base --lr 1e-4", r"(--learning-rate) VALUE", "--lr"),
    (f"{TRAIN} --model base --lr-scheduler-type linear", r"(--set schedule=)VALUE", "--lr-scheduler-type "),
    (f"{TRAIN} --model base --set lr=1e-4", r"did you mean '(learning_rate)'", "lr"),
    ("convert sim/cases.jsonl small.toml.jsonl", r"(--to) KIND", "VALUE cheems"),
    ("convert votes.csv OUT.jsonl", r"steelyard convert votes.csv cases.jsonl (.*)", ""),
    ("convert texts.csv OUT.jsonl", r"steelyard convert texts.csv cases.jsonl (.*)", ""),
    ("convert labels.csv OUT.jsonl --prompt-column q --first-column a --second-column b --label-column winner",
     r"(--set labels.1=left --set labels.0=right)", ""),
    ("convert found.jsonl OUT.jsonl", r"(--from prompts) if", ""),
    ("resolve ranked/cases.jsonl --out scored --only kind=human", r"(--force)", ""),
    ("leaderboard cut left-out --out OUT --set num_resamples=50", r"(--set 'allow_differing=.*?')", ""),
    ("inspect ranked --model model", r"(--id) ID", "VALUE en-understanding-06"),
    ("supervise sim/llm.jsonl --model longer --out OUT --min-margin 0.5 --policy cycles",
     r"(--policy agree)", "--policy cycles"),
    ("train sim/cases.jsonl --model base --out OUT", r"(steelyard resolve .* --out resolved)", "ALL"),
    ("inspect ranked --id en-understanding-06 --model bare --tokens", r"(--set model.chat_template=plain)", ""),
    ("debias ranked/cases.jsonl --out OUT --pairs listed", r"(--pairs tiers)", "--pairs listed"),
    (f"{EVALUATE} --model panel", r"(--set 'model.members=.*?')", ""),
    ("run small.toml --out whole --set made.num_prompts=24", r"(--from made)", ""),
    ("score sim/test.jsonl --model features --set model.cache=kept --out OUT", r"(--set model.path)=FOLDER",
     "VALUE=base --set model.train=ranked/cases.jsonl"),
    ("score sim/test.jsonl --model features --set model.cache=kept --set model.path=base --out OUT",
     r"(--set model.train)=FILE", "VALUE=ranked/cases.jsonl"),
    ("evaluate --bench sim/test.jsonl --set num_resamples=20 --out OUT", r"(--model) M", "VALUE longer"),
    ("evaluate --bench sim/test.jsonl --set num_resamples=20 --out OUT", r"(--scores) FILE",
     "VALUE lost.jsonl --allow-unscored"),
    ("resolve ranked/cases.jsonl --out OUT --only kind", r"--only (kind=)NAME", "--only kind => --only kind=human"),
    ("inspect ranked --id en-understanding-06 --tokens", r"(--model) FOLDER", "VALUE base"),
    ("inspect ranked --id nobody", r"without (--id)", "--id nobody => "),
    ("supervise sim/llm.jsonl --model ngram --out OUT --min-margin 0.5", r"(--set model.train)=FILE",
     "VALUE=ranked/cases.jsonl"),
    ("supervise sim/llm.jsonl --model longer --scores scored/scores.jsonl --out OUT --min-margin 0.5",
     r"give (a reward model)", "--scores scored/scores.jsonl => "),
]  # fmt: skip


def marked(refused):
    """The remedies to paste; those of commands that load a model are slow."""
    for case in refused:
        yield pytest.param(*case, marks=pytest.mark.slow) if re.search(r"--model (?!longer|M\b)", case[0]) else case


@pytest.mark.parametrize(("command", "remedy", "replaced"), list(marked(REFUSED)))
def test_the_remedy_of_an_error_works_when_it_is_pasted(command, remedy, replaced, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    file = "ranked/cases.jsonl" if command.startswith("train") else "sim/test.jsonl"
    values = {"OUT": str(tmp_path / "out"), "LIMIT": str(limit(folder, file)) if "LIMIT" in command else ""}

    def filled(words):
        return words.replace("OUT", values["OUT"]).replace("LIMIT", values["LIMIT"])

    refused = invoke(shlex.split(filled(command)))
    assert isinstance(refused.exception, UserError), (refused.output, refused.exception)
    found = re.search(remedy, f"{refused.exception}\n{refused.output}", flags=re.DOTALL)
    assert found, str(refused.exception)
    if replaced == "ALL":
        again = found[1].removeprefix("steelyard ")
    elif " => " in replaced:
        again = filled(command).replace(*replaced.split(" => "))
    elif replaced.startswith("VALUE"):
        again = f"{filled(command)} {found[1]}{replaced.removeprefix('VALUE')}"
    elif replaced:
        again = filled(command).replace(filled(replaced), found[1])
    else:
        again = f"{filled(command)} {found[1]}"
    pasted = invoke(shlex.split(again))
    assert pasted.exit_code == 0, (again, pasted.output, pasted.exception)
