"""The token ids that published trainers make of our files, against the ids that we train on, for one file of cases.

TRL, ``datasets``, polars and pandas are in the environment of the tests; the loaders of OpenRLHF and LLaMA-Factory run
where `make peers` has put them.
"""

import json
import os
import subprocess
import warnings
from pathlib import Path

import msgspec
import pandas
import polars
import pytest
from datasets import Dataset, load_dataset

import steelyard as sy
import tiny
from steelyard.core.plugins import build
from steelyard.core.types import Case, Message, Pair, Prompt, Rating, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.networks.conversation import choose_rendering, complete_template, encode
from steelyard.ranking.pairs import best_response, pairs_of
from steelyard.stages.convert import Config, convert
from steelyard.stages.train import Config as TrainConfig
from steelyard.stages.train import train

ROOT = Path(__file__).parents[2]
PEERS, SCRIPTS = ROOT / ".peers", ROOT / "tests" / "golden" / "peers"
pytestmark = pytest.mark.field

CONVERSATIONS = (
    ([("user", "杆秤怎么用？")], ["先挂物，再移砣。", "不知道。"], ["0", "1"]),
    ([("system", "كن موجزا"), ("user", "ما هي الجاذبية؟")], ["قوة تجذب الأجسام.", "لا أعرف", "ربما"], ["0", "1", "2"]),
    (
        [("user", "Hi"), ("assistant", "Hello!"), ("user", "$x^2$ in Python?")],
        ["`x ** 2`", "x^2", "`x * x`"],
        ["02", "1"],
    ),
    ([("user", "שלום")], ["No.", "נו", "Yes, <b>it</b> is.", "yes"], ["2", "01", "3"]),
)
"""Turns of a prompt, its answers, and the tiers of their places: one and several turns, ties, two to four answers."""


def mixed_cases():
    for number, (turns, answers, tiers) in enumerate(CONVERSATIONS):
        label = {"rater": "unknown", "kind": "human", "dimension": "label", "range": (0, 1)}
        yield Case(
            prompt=Prompt(id=f"p{number}", messages=tuple(Message(role=role, content=text) for role, text in turns)),
            responses=tuple(Response(id=str(place), text=text) for place, text in enumerate(answers)),
            ratings=tuple(
                Rating(response=name, value=float(name in tiers[0]), **label) for tier in tiers for name in tier
            ),
            ranking=tuple(map(tuple, tiers)),
        )


@pytest.fixture(scope="module", params=[False, True], ids=["as_is", "stripped"])
def prepared(request, tmp_path_factory):
    """A folder with the cases and a model whose template writes the text that we train on, and our ids of each pair."""
    folder = tmp_path_factory.mktemp("trainers")
    write_cases(folder / "cases.jsonl", mixed_cases())
    tokenizer = tiny.tokenizer()
    rendering = choose_rendering(tokenizer, None, model="tiny", max_length=512, strip=request.param)
    tiny.save_base(folder / "model", template=complete_template(tokenizer, rendering.template, strip=request.param))
    ids = []
    for case in read_cases(folder / "cases.jsonl"):
        read = [list(encode(tokenizer, rendering, case, response).ids) for response in case.responses]
        ids += [[read[pair.better], read[pair.worse]] for pair in pairs_of(case)]
    assert len(ids) == 1 + 3 + 2 + 5
    return folder, ids


def converted(folder, kind, name="rows.jsonl", **settings):
    path = folder / f"{kind}.{name}"
    convert(folder / "cases.jsonl", path, Config(to_kind=kind, settings=settings))
    return path


TABLES = {
    "json": lambda folder: load_dataset("json", data_files=str(converted(folder, "trl")), split="train"),
    "parquet": lambda folder: load_dataset(
        "parquet", data_files=str(converted(folder, "trl", "rows.parquet")), split="train"
    ),
    "implicit": lambda folder: load_dataset(
        "json", data_files=str(converted(folder, "trl", "implicit.jsonl", implicit=True)), split="train"
    ),
    "to_pairs": lambda folder: Dataset.from_list(sy.read_cases(folder / "cases.jsonl").to_pairs()),
    "polars": lambda folder: Dataset(polars.DataFrame(sy.read_cases(folder / "cases.jsonl").to_pairs()).to_arrow()),
    "pandas": lambda folder: Dataset.from_pandas(pandas.DataFrame(sy.read_cases(folder / "cases.jsonl").to_pairs())),
}


@pytest.fixture(autouse=True)
def quiet_trl():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def settings_of(folder):
    return {
        "output_dir": str(folder / "out"), "use_cpu": True, "bf16": False, "report_to": "none", "max_length": None,
        "disable_tqdm": True, "save_strategy": "no", "per_device_train_batch_size": 2, "max_steps": 1,
        "remove_unused_columns": True, "gradient_checkpointing": False,
    }  # fmt: skip


@pytest.mark.parametrize("form", TABLES)
def test_trl_trains_a_reward_model_on_our_tokens(prepared, form):
    from transformers import AutoTokenizer
    from trl import RewardConfig, RewardTrainer

    folder, ids = prepared
    trainer = RewardTrainer(
        model=str(folder / "model"),
        args=RewardConfig(**settings_of(folder)),
        processing_class=AutoTokenizer.from_pretrained(folder / "model"),
        train_dataset=TABLES[form](folder),
    )
    assert [[row["chosen_ids"], row["rejected_ids"]] for row in trainer.train_dataset] == ids
    if form == "json":
        trainer.train()


@pytest.mark.parametrize("form", ["json", "implicit"])
def test_trl_trains_a_dpo_policy_on_our_tokens(prepared, form):
    from transformers import AutoTokenizer
    from trl import DPOConfig, DPOTrainer

    folder, ids = prepared
    trainer = DPOTrainer(
        model=str(folder / "model"),
        args=DPOConfig(**settings_of(folder)),
        processing_class=AutoTokenizer.from_pretrained(folder / "model"),
        train_dataset=TABLES[form](folder),
    )
    rows = list(trainer.train_dataset)
    assert [[row["prompt_ids"] + row[f"{side}_ids"] for side in ("chosen", "rejected")] for row in rows] == ids


def test_trl_s_unpaired_rows_are_conversations(prepared):
    from transformers import AutoTokenizer
    from trl import apply_chat_template

    folder, _ = prepared
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    rendering = choose_rendering(tokenizer, None, model="tiny", max_length=512)
    rows = load_dataset("json", data_files=str(converted(folder, "trl_unpaired")), split="train")
    texts = [apply_chat_template(row, tokenizer) for row in rows]
    read = [tokenizer(text["prompt"] + text["completion"]).input_ids for text in texts]
    cases = read_cases(folder / "cases.jsonl")
    assert read == [list(encode(tokenizer, rendering, case, item).ids) for case in cases for item in case.responses]


def ids_of(script, source, folder, *words, environment="trl"):
    python = PEERS / environment / "bin" / "python"
    if not python.exists() or not (PEERS / source).exists():
        pytest.skip("not installed here: `make peers` does it, with a network")
    command = [python, SCRIPTS / f"{script}.py", folder / "model", *words]
    variables = os.environ | {"PYTHONPATH": str(PEERS / source)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=variables)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_openrlhf_reads_the_same_conversations(prepared):
    folder, ids = prepared
    read = ids_of("read_openrlhf", "OpenRLHF", folder, converted(folder, "openrlhf"))
    # It removes line breaks at the end, and adds a space and the end mark of the tokenizer.
    tokenizer = tiny.tokenizer()
    end = tokenizer(" </s>").input_ids
    line_break = tokenizer("\n").input_ids
    texts = [
        [side[: -len(line_break)] if side[-len(line_break) :] == line_break else side for side in pair] for pair in ids
    ]
    assert read == [[side + end for side in pair] for pair in texts]


def test_rewardbench_s_program_reads_conversations_with_the_prompt_inside_both_answers(prepared):
    """It takes the turns before the last answer for the prompt, and their roles by their places: no system prompts."""
    folder, ids = prepared
    cases = read_cases(folder / "cases.jsonl")
    whole = [case.prompt.messages[0].role != "system" for case in cases for _ in pairs_of(case)]
    file = converted(folder, "trl", "rewardbench.jsonl", implicit=True)
    rows = file.read_text("utf-8").splitlines()
    kept = file.with_name("alternating.jsonl")
    kept.write_text("".join(f"{row}\n" for row, is_whole in zip(rows, whole, strict=True) if is_whole), "utf-8")
    read = ids_of("read_rewardbench", "rewardbench", folder, kept, environment="rewardbench")
    assert read == [pair for pair, is_whole in zip(ids, whole, strict=True) if is_whole]


@pytest.mark.parametrize("kind", ["llamafactory_alpaca", "llamafactory_sharegpt"])
def test_llamafactory_reads_the_same_conversations(prepared, kind):
    folder, ids = prepared
    formatting = kind.removeprefix("llamafactory_")
    read = ids_of("read_llamafactory", "LLaMA-Factory/src", folder, converted(folder, kind), formatting)
    # Its template chatml ends with a line break; the one with stripped texts is ours alone.
    line_break = tiny.tokenizer()("\n").input_ids
    whole = [[side if side[-len(line_break) :] == line_break else side + line_break for side in pair] for pair in ids]
    assert read == whole


@pytest.mark.parametrize("kind", ["default", "llama3"])
def test_transformers_4_reads_the_same_rewards_from_a_trained_folder(tmp_path, kind):
    """RewardBench's environment has transformers 4: it reads positions and special marks under other names."""
    python = PEERS / "rewardbench" / "bin" / "python"
    if not python.exists():
        pytest.skip("not installed here: `make peers` does it, with a network")
    config = Path(tiny.save_base(tmp_path / "base")) / "config.json"
    scaled = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
    positions = {"rope_theta": 50.0, "rope_type": kind} | (scaled if kind == "llama3" else {})
    config.write_text(json.dumps(json.loads(config.read_text("utf-8")) | {"rope_parameters": positions}), "utf-8")
    write_cases(tmp_path / "cases.jsonl", mixed_cases())
    train(tmp_path / "cases.jsonl", tmp_path / "out", TrainConfig(learning_rate=1e-2), model=str(tmp_path / "base"))
    turns = [
        [{"role": turn.role, "content": turn.content} for turn in case.prompt.messages]
        + [{"role": "assistant", "content": response.text}]
        for case in mixed_cases()
        for response in case.responses
    ]
    command = [python, SCRIPTS / "score_conversations.py", tmp_path / "out", json.dumps(turns)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    read = json.loads(done.stdout.splitlines()[-1])
    assert read["version"].startswith("4.")
    lines = build("models", "classifier", {"path": str(tmp_path / "out")}).score(list(mixed_cases()))
    own = [reward for line in lines for reward in line.scores.values()]
    assert read["rewards"] == pytest.approx(own, abs=1e-5)
    assert len({round(reward, 4) for reward in own}) > 3


@pytest.fixture
def best(prepared, tmp_path):
    """The cases in a folder of their own, without labels, one with margins; the ids and the texts of the best."""
    folder, _ = prepared
    cases = [msgspec.structs.replace(case, ratings=()) for case in mixed_cases()]
    pairs = tuple(Pair(better="0", worse=worse, margin=0.75) for worse in "12")
    cases[2] = msgspec.structs.replace(cases[2], ranking=None, pairs=pairs)
    tied = msgspec.structs.replace(
        cases[0], ranking=(("0", "1"),), prompt=Prompt(id="tied", messages=cases[0].prompt.messages)
    )
    write_cases(tmp_path / "cases.jsonl", [*cases, tied])
    (tmp_path / "model").symlink_to(folder / "model")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    rendering = choose_rendering(tokenizer, None, model="tiny", max_length=512)
    ids = [list(encode(tokenizer, rendering, case, best_response(case)).ids) for case in cases]
    return tmp_path, tokenizer, ids, [best_response(case).text for case in cases]


@pytest.mark.parametrize("settings", [{}, {"messages": True}], ids=["completion", "messages"])
def test_trl_fine_tunes_on_the_best_response_of_each_case(best, settings):
    from trl import SFTConfig, SFTTrainer

    folder, tokenizer, ids, texts = best
    trainer = SFTTrainer(
        model=str(folder / "model"),
        args=SFTConfig(**settings_of(folder)),
        processing_class=tokenizer,
        train_dataset=load_dataset("json", data_files=str(converted(folder, "trl_sft", **settings)), split="train"),
    )
    rows = list(trainer.train_dataset)
    assert [row["input_ids"][: len(read)] for row, read in zip(rows, ids, strict=True)] == ids
    answers = [answer_text(tokenizer, row["labels"]) for row in rows]
    if settings:  # of a conversation the prompt is learned, too
        assert [answer.count("<|im_start|>") for answer in answers] == [2, 3, 4, 2]
    else:
        assert [answer.split("assistant\n")[1].split("<|im_end|>")[0] for answer in answers] == texts
    trainer.train()


LABELLED = [
    ("0", True), ("1", False), ("0", True), ("2", False), ("0", True), ("1", False), ("2", False), ("2", True),
    ("3", False),
]  # fmt: skip
"""Winners and losers of all their pairs, of each case in turn: those of the middle tier and of the tied case have no
label."""


def test_trl_s_kto_learns_winners_as_good_and_losers_as_bad(best):
    from trl import KTOConfig, KTOTrainer

    folder, tokenizer, _, _ = best
    trainer = KTOTrainer(
        model=str(folder / "model"),
        args=KTOConfig(**settings_of(folder)),
        processing_class=tokenizer,
        train_dataset=load_dataset("json", data_files=str(converted(folder, "trl_unpaired")), split="train"),
    )
    rendering = choose_rendering(tokenizer, None, model="tiny", max_length=512)
    expected = [
        (list(encode(tokenizer, rendering, case, response).ids), label) for case, response, label in labelled(folder)
    ]
    rows = list(trainer.train_dataset)
    assert [(row["prompt_ids"] + row["completion_ids"], row["label"]) for row in rows] == expected


def labelled(folder):
    """Return the labelled responses with their cases, by hand."""
    names = iter(LABELLED)
    for case, number in zip(read_cases(folder / "cases.jsonl"), (2, 2, 3, 2, 0), strict=True):
        for _ in range(number):
            name, label = next(names)
            yield case, next(item for item in case.responses if item.id == name), label


def test_margins_reach_trl_s_loss_and_weights_are_counted(best):
    from trl import RewardConfig, RewardTrainer

    folder, tokenizer, _, _ = best
    trainer = RewardTrainer(
        model=str(folder / "model"),
        args=RewardConfig(**settings_of(folder)),
        processing_class=tokenizer,
        train_dataset=load_dataset("json", data_files=str(converted(folder, "trl")), split="train"),
    )
    rows = list(trainer.train_dataset)
    assert trainer.data_collator(rows)["margin"].tolist() == [0] * 4 + [0.75] * 2 + [0] * 5


@pytest.mark.parametrize("formatting", ["alpaca", "sharegpt"])
def test_llamafactory_fine_tunes_on_the_best_response_of_each_case(best, formatting):
    folder, tokenizer, ids, texts = best
    file = converted(folder, f"llamafactory_{formatting}_sft")
    read = ids_of("read_llamafactory", "LLaMA-Factory/src", folder, file, formatting, "sft")
    line_break = tokenizer("\n").input_ids
    assert [row[0] for row in read] == [side if side[-1:] == line_break else side + line_break for side in ids]
    assert [answer_text(tokenizer, row[1]) for row in read] == texts


@pytest.mark.parametrize("formatting", ["alpaca", "sharegpt"])
def test_llamafactory_s_kto_learns_winners_as_good_and_losers_as_bad(best, formatting):
    folder, tokenizer, _, _ = best
    file = converted(folder, f"llamafactory_{formatting}_kto")
    read = ids_of("read_llamafactory", "LLaMA-Factory/src", folder, file, formatting, "kto")
    expected = [(response.text, label) for _, response, label in labelled(folder)]
    assert [(answer_text(tokenizer, row[1]), row[2]) for row in read] == expected


def answer_text(tokenizer, labels):
    """Return the text of the tokens with a label, without the end mark."""
    return tokenizer.decode([token for token in labels if token >= 0]).removesuffix("\n").removesuffix("<|im_end|>")
