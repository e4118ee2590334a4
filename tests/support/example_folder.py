"""A folder with a tiny version of every file that the examples name, made by the verbs themselves; shared by the tests
of documented commands. The example model is a random one of two layers under the published name."""

import contextlib
import json
import os
import re
import shutil
from pathlib import Path
from unittest import mock

import msgspec
from typer.testing import CliRunner

import tiny
from steelyard.cli.main import build_app
from steelyard.core.types import Case
from steelyard.io.cases import read_cases, write_cases

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "formats"
LOOKED_AT = "en-language-06"
BACKBONE = "Qwen/Qwen2.5-0.5B"
CHEAP = ["--set", "num_resamples=20"]
TRAINED = ["--epochs", "1", "--max-length", "2048"]


def invoke(words, **environment):
    """Run a verb in this process, in a terminal as the environment describes it."""
    with mock.patch.dict(os.environ, environment):
        return CliRunner().invoke(build_app(), words)


def done(*words):
    """Run a verb, which must succeed, and return its result."""
    result = invoke([str(word) for word in words])
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result


def fill(folder):
    """Make every file in ``folder``."""
    with contextlib.chdir(folder):
        _foreign_files(folder)
        _case_files()
        _raw_prompts()
        _recipes(folder)
        _backbone(folder / BACKBONE)
        done("train", "parts/train.jsonl", "--model", BACKBONE, "--out", "model", *TRAINED)
        for name in ("my-model", "my-rm"):
            shutil.copytree("model", name)
        _spread(Path("my-rm"))
        _results()


def _spread(model):
    """Enlarge the margins to those of a trained model: the head of so small a model hardly separates answers."""
    from safetensors.torch import load_file, save_file

    weights = load_file(model / "model.safetensors")
    weights["score.weight"] *= 1000
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})


def _case_files():
    """Write three sets of prompts: one with human and LLM verdicts, one for training, one for testing."""
    done("demo", "--data", "--out", "simulated", "--set", "llm_share=0.02")
    names = [case.prompt.id for case in read_cases(Path("simulated/cases.jsonl"))]
    names.sort(key=lambda name: name != LOOKED_AT)
    parts = {"looked_at": names[:10], "learnt": names[10:20]}
    for source, part, name in (
        ("cases", "looked_at", "cases"),
        ("cases", "looked_at", "human"),
        ("cases", "looked_at", "llm"),
        ("gold", "learnt", "learnt"),
    ):
        chosen = [case for case in read_cases(Path(f"simulated/{source}.jsonl")) if case.prompt.id in parts[part]]
        chosen = [_judged_by_llm(case) for case in chosen] if name == "llm" else chosen
        write_cases(Path(f"{name}.jsonl"), [*chosen, _as(chosen[0], id="p7")] if part == "looked_at" else chosen)
    tested = list(read_cases(Path("simulated/test.jsonl")))[:12]
    seen = [case for case in read_cases(Path("simulated/gold.jsonl")) if case.prompt.id == LOOKED_AT]
    write_cases(Path("test.jsonl"), [*tested, *seen, *(_as(case, language="ja") for case in tested)])
    write_cases(Path("held_out.jsonl"), tested)
    shutil.copy("test.jsonl", "second.jsonl")
    many = list(read_cases(Path("simulated/test.jsonl")))
    write_cases(Path("few.jsonl"), many[::3])
    # A judge contradicts people here and there; one that never does has their labels, and is refused.
    judged = [_turned(case) if number % 7 == 3 else case for number, case in enumerate(many)]
    write_cases(Path("many.jsonl"), judged)
    done("split", "learnt.jsonl", "--out", "parts", "--part", "train=0.7", "--part", "held_out=0.3")
    shutil.copy("test.jsonl", "parts/test.jsonl")


def _raw_prompts():
    """Write prompts without responses, the shares that are wanted of them, and a plan whose replies are recorded."""
    asked = list(read_cases(Path("cases.jsonl")))
    prompts = [Case(prompt=case.prompt, responses=()) for case in asked]
    write_cases(Path("prompts.jsonl"), prompts)
    write_cases(Path("raw.jsonl"), prompts)
    shutil.copy("held_out.jsonl", "bench.jsonl")
    Path("my-bench").mkdir()
    shutil.copy("held_out.jsonl", "my-bench/cases.jsonl")
    Path("my-bench/bench.toml").write_text('default_subset = "all"\n[subsets]\nall = "any"\n', encoding="utf-8")
    languages = sorted({case.prompt.language for case in prompts})
    shares = "".join(f'"{language}" = {1 / len(languages)}\n' for language in languages)
    Path("shares.toml").write_text(f"[language]\n{shares}", encoding="utf-8")
    Path("replies.jsonl").write_text('{"text": "Hang the load, then move the poise."}\n', encoding="utf-8")
    model = '[[models]]\nname = "helper"\nchat = { kind = "recorded", path = "replies.jsonl" }\n'
    Path("plan.toml").write_text(model, encoding="utf-8")


def _judged_by_llm(case):
    """Return the case with one verdict a pair, as if by a language model."""
    last = {frozenset((one.left, one.right)): one for one in case.judgments}
    return msgspec.structs.replace(
        case,
        judgments=tuple(
            msgspec.structs.replace(one, judge="simulated-llm-1", kind="llm", id=f"llm-{number}", task=None)
            for number, one in enumerate(last.values())
        ),
    )


def _turned(case):
    """Return the case with its ranking from worst to best."""
    return msgspec.structs.replace(case, ranking=case.ranking[::-1])


def _as(case, **changes):
    """Return the same item under another id or language, for `languages`."""
    return msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, **changes))


def _retranslated(case):
    """Return the same item in other words, for `languages`."""
    texts = [msgspec.structs.replace(each, text=f"{each.text}!") for each in case.responses]
    return msgspec.structs.replace(case, responses=tuple(texts))


def _results():
    done("resolve", "cases.jsonl", "--out", "resolved")
    done("merge", "human.jsonl", "llm.jsonl", "--out", "merged")
    judged = Path("merged/cases.jsonl").read_text(encoding="utf-8")
    Path("judged.jsonl").write_text(judged.replace("simulated-llm-1", "gpt-4"), encoding="utf-8")
    for name in ("supervised", "clean"):
        done("resolve", "llm.jsonl", "--out", name)
    done("score", "cases.jsonl", "--model", "longer", "--out", "scored")
    done("evaluate", "--bench", "test.jsonl", "--model", "model", "--out", "evaluated", *CHEAP)
    for name, model in (("evaluated-a", "longer"), ("evaluated-b", "shorter"), ("other", "shorter")):
        done("evaluate", "--bench", "test.jsonl", "--model", model, "--out", name, *CHEAP)
    write_cases(Path("translated.jsonl"), map(_retranslated, read_cases(Path("test.jsonl"))))
    for name, bench in (("google", "test.jsonl"), ("nllb", "translated.jsonl")):
        done("evaluate", "--bench", bench, "--model", "longer", "--out", f"{name}/longer", *CHEAP)


def _foreign_files(folder):
    for name, given in (
        ("oasst.json", "llamafactory_ranked.json"),
        ("oaast_rm_zh.json", "llamafactory_ranked.json"),
        ("pandalm.json", "pandalm.json"),
        ("ratings.jsonl", "ultrafeedback.jsonl"),
        ("rated.jsonl", "ultrafeedback.jsonl"),
        ("open.jsonl", "cheems.jsonl"),
    ):
        shutil.copy(GOLDEN / given, folder / name)
    shutil.copy(GOLDEN.parent / "published" / "cheemsbench_top.csv", folder / "published.csv")
    text = (GOLDEN / "cheems.jsonl").read_text(encoding="utf-8")
    (folder / "cheems_human.jsonl").write_text(re.sub(r'"id":"q(\d)"', r'"id":"h\1"', text), encoding="utf-8")
    asked = {"role": "user", "content": "杆秤怎么用？"}
    answers = {"good": "先挂物，再移砣。", "bad": "不知道。"}
    mine = {key: [asked, {"role": "assistant", "content": text}] for key, text in answers.items()}
    (folder / "mine.jsonl").write_text(json.dumps(mine, ensure_ascii=False) + "\n", encoding="utf-8")
    for row in json.loads((GOLDEN / "rmb.json").read_text(encoding="utf-8"))[:3]:
        scenario = folder / "RMB_dataset" / row["category_path"]
        scenario.mkdir(parents=True)
        (scenario / "rows.json").write_text(json.dumps([row]), encoding="utf-8")
    for name, lines in (
        ("own.csv", 'question,good,bad\n杆秤怎么用？,"先挂物，再移砣。",不知道。\n'),
        ("votes.tsv", "prompt\ta\tb\twinner\n杆秤怎么用？\t先挂物。\t不知道。\ta\n"),
        ("questions.csv", "question,topic\n杆秤怎么用？,生活\n"),
        ("questions.txt", "杆秤怎么用？\n秤砣有多重？\n"),
        ("gold.csv", "model,gold\nmodel,0.61\nlonger,0.58\nshorter,0.55\n"),
        ("table.csv", "model,rewardbench,downstream\na,0.93,41.5\nb,0.88,43.0\nc,0.71,30.2\n"),
        ("scores.csv", "prompt,text,score\n杆秤怎么用？,先挂物。,5\n杆秤怎么用？,不知道。,1\n"),
    ):
        (folder / name).write_text(lines, encoding="utf-8")
    _rated_translations(folder)
    _rewardbench(folder)


def _rated_translations(folder):
    """Write a hundred sources with five translations each: as many as the pairs of a level."""
    rows = (
        {"source": f"Satz {n}", "translation": f"{name} {n}", "system": name, "score": mean}
        | {f"score_annotator_{rater}": mean for rater in "ab"}
        for n in range(100)
        for name, mean in (("best", 6), ("good", 4.5), ("fair", 4), ("poor", 3.5), ("worst", 1))
    )
    (folder / "maple.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def _rewardbench(folder):
    import pyarrow
    import pyarrow.parquet

    rows = [json.loads((GOLDEN / "rewardbench.jsonl").read_text(encoding="utf-8").splitlines()[0])]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "filtered.parquet")
    done("convert", "filtered.parquet", "filtered.jsonl")
    done("score", "filtered.jsonl", "--model", "longer", "--out", "filtered")
    shutil.copy("filtered/scores.jsonl", "scores.jsonl")


def _recipes(folder):
    """Write the recipe, the ablation and the sweep of the tour, on files that share no prompt."""
    tour = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    recipe, ablation, sweep = re.findall(r"^```toml\n(.*?)^```$", tour, flags=re.DOTALL | re.MULTILINE)
    for name in ("mine.toml", "RECIPE.toml"):
        (folder / name).write_text(recipe, encoding="utf-8")
    for name, text in (("ablation.toml", ablation), ("sweep.toml", sweep)):
        apart = text.replace("test.jsonl", "held_out.jsonl").replace("human.jsonl", "learnt.jsonl")
        (folder / name).write_text(apart, encoding="utf-8")


def _backbone(folder):
    tiny.save_base(folder)
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(settings | {"max_position_embeddings": 2048}), encoding="utf-8")
