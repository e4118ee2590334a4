"""The card of a trained model: README.md in Markdown, with the YAML that model hubs read.

The text is in ``templates/model_card.md.jinja``. Names come from users' files and may hold any character: none of them
may end a table, a heading, or the YAML at the top.
"""

import json
import re
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from steelyard.core.types import JsonObject
from steelyard.io.tables import is_parquet
from steelyard.networks.settings import (
    Manifest,
)
from steelyard.training.config import Config, GroupAccuracy, HeldOutAccuracy
from steelyard.training.examples import Examples
from steelyard.training.reward_reference import Rounding

_SIGNS = re.compile(r"([\\`*_{}\[\]()#+!|~$:>\-.=])")


_TASKS = {"classifier": "text-classification", "implicit": "text-generation"}


_LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_].*)?")


_SETTINGS = (
    "kind", "loss", "dimensions", "rating_center", "pair_weight", "reduction", "weight_of_squares", "centring",
    "label_smoothing", "epochs", "learning_rate", "batch_size", "warmup_ratio", "schedule", "weight_decay", "batching",
    "trainable", "seed",
)  # fmt: skip


class CardInputs(NamedTuple):
    """The inputs of a card: the model's folder or hub name, the files of cases, settings, manifest and measures.

    ``datasets`` are names on the Hub of the data sets that the training cases come from.
    """

    model: str
    file_name: str
    examples: Examples
    config: Config
    manifest: Manifest
    held_out: HeldOutAccuracy | None = None
    held_out_file: str | None = None
    rounding: Rounding | None = None
    datasets: tuple[str, ...] = ()


def model_card(card: CardInputs) -> str:
    """Return the card in Markdown, with the YAML that model hubs read."""
    examples = card.examples
    notes = [
        *(("length", sentence) for sentence in examples.length.sentences()),
        *((f"dropped: {rule}", number) for rule, number in sorted(examples.dropped.items())),
        *((f"noted: {rule}", number) for rule, number in sorted(examples.noted.items())),
    ]
    return _template().render(
        **card._asdict(),
        name=Path(card.model).name,
        front=_front(card),
        notes=notes,
        settings=[
            (setting, getattr(card.config, setting))
            for setting in _SETTINGS
            if card.config.reads_ratings or setting not in ("dimensions", "rating_center", "pair_weight")
        ],
        number_of=_number_of,
        interval_of=_interval_of,
        percent="{:.2%}".format,
    )


@cache
def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("steelyard.training")
    environment = jinja2.Environment(loader=loader, keep_trailing_newline=True, autoescape=False)
    environment.filters |= {"plain": escaped, "json": partial(json.dumps, ensure_ascii=False)}
    return environment.get_template("model_card.md.jinja")


def escaped(value: Any) -> str:
    """Return a value as plain Markdown text on one line, with any signs in it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _SIGNS.sub(r"\\\1", _one_line(text).replace("&", "&amp;").replace("<", "&lt;"))


def _one_line(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _number_of(number: int, total: int) -> int | str:
    """Return the number, with its share of the total where it is less."""
    return number if number == total else f"{number:,} of {total:,} ({number / total:.1%})"


def _interval_of(group: GroupAccuracy | HeldOutAccuracy) -> str:
    """Return the interval of an accuracy; nothing for one prompt."""
    return "" if group.interval is None else f"{group.interval[0]:.4f} to {group.interval[1]:.4f}"


def _front(card: CardInputs) -> JsonObject:
    """Return the keys of the YAML, by the Hub's specification; their values are written as JSON, which YAML contains.

    No licence: that of the model is not known. ``datasets`` has the names that the records of the cases carry.
    """
    keys: JsonObject = {"library_name": "transformers", "pipeline_tag": _TASKS[card.config.kind]}
    base = _hub_id(card.model)
    if base is not None:
        keys["base_model"] = base
        keys["base_model_relation"] = "adapter" if card.config.save_adapter == "adapter" else "finetune"
    if card.datasets:
        keys["datasets"] = list(card.datasets)
    codes = (_LANGUAGE.fullmatch(example.language or "") for example in card.examples.examples)
    if languages := sorted({code[1] for code in codes if code}):
        keys["language"] = languages
    keys["tags"] = ["reward-model", "steelyard"]
    if card.held_out is not None:
        keys["model-index"] = [_results(card, card.held_out)]
    return keys


def _hub_id(model: str) -> str | None:
    """Return the hub's name of a model, or its folder's; null for a folder whose name the Hub would refuse."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    name = model
    if Path(model).exists():
        *_, cached, kind, name = ("", "", *Path(model).absolute().parts)
        if kind == "snapshots" and cached.startswith("models--"):  # a folder of the Hub library's cache
            name = cached.removeprefix("models--").replace("--", "/")
    try:
        validate_repo_id(name)
    except HFValidationError:
        return None
    return name


def _results(card: CardInputs, held_out: HeldOutAccuracy) -> JsonObject:
    """Return the held-out accuracy as an entry of ``model-index``, from which the Hub shows results."""
    file = Path(card.held_out_file or "")
    between = "" if held_out.interval is None else f"95% interval {_interval_of(held_out)}, "
    number = f"{between}n = {held_out.num_pairs:,} pairs of {held_out.num_prompts:,} prompts"
    is_selected = card.config.keep == "best" or card.config.patience > 0
    selected = "; training was stopped or its weights selected by it" if is_selected else ""
    # A local file has no name on the Hub: its type is that of the loader in `datasets` that reads it.
    dataset = {"type": "parquet" if is_parquet(file) else "json", "name": _one_line(f"held out: {file.name}")}
    metric = {"type": "accuracy", "value": round(held_out.accuracy, 4), "name": f"accuracy ({number}{selected})"}
    result = {"task": {"type": _TASKS[card.config.kind]}, "dataset": dataset, "metrics": [metric]}
    return {"name": _one_line(f"A reward model from {Path(card.model).name}"), "results": [result]}
