"""The README of a trained model: what it is, its data, its results, and how others load it.

The text is in ``templates/model_card.md.jinja``. Names come from users' files and may hold any character: none of them
may end a table, a heading, or the YAML at the top.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from steelyard.networks.manifest import Manifest
from steelyard.training.config import Config
from steelyard.training.examples import Examples
from steelyard.training.held_out import Rounding
from steelyard.training.summary import HeldOutAccuracy

_SIGNS = re.compile(r"([\\`*_{}\[\]()#+!|~$:>\-.=])")
_TASKS = {"classifier": "text-classification", "implicit": "text-generation"}
_ORDINARY_LANGUAGE = re.compile(r"[a-z]{2,3}")
_SETTINGS = (
    "kind", "loss", "reduction", "weight_of_squares", "centring", "label_smoothing", "epochs", "learning_rate",
    "prompts_per_step", "warm_up", "schedule", "weight_decay", "batching", "trainable", "seed",
)  # fmt: skip


class CardInputs(NamedTuple):
    """The inputs of a card: the model's folder or hub name, the file of cases, settings, manifest and measures."""

    model: str
    file_name: str
    examples: Examples
    config: Config
    manifest: Manifest
    held_out: HeldOutAccuracy | None = None
    rounding: Rounding | None = None


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
        settings=[(setting, getattr(card.config, setting)) for setting in _SETTINGS],
        number_of=_number_of,
        percent="{:.2%}".format,
    )


@cache
def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("steelyard.training")
    environment = jinja2.Environment(loader=loader, keep_trailing_newline=True, autoescape=False)
    environment.filters |= {"plain": escaped, "json": json.dumps}
    return environment.get_template("model_card.md.jinja")


def escaped(value: Any) -> str:
    """Return a value as plain Markdown text on one line, whatever signs are in it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return _SIGNS.sub(r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;"))


def _number_of(number: int, total: int) -> int | str:
    """Return the number, with its share of the total where it is less."""
    return number if number == total else f"{number:,} of {total:,} ({number / total:.1%})"


def _front(card: CardInputs) -> dict[str, str | list[str]]:
    """Return the keys of the YAML; their values are written as JSON, which YAML contains."""
    languages = {example.language for example in card.examples.examples if example.language}
    tags = sorted(language for language in languages if _ORDINARY_LANGUAGE.fullmatch(language))
    keys: dict[str, str | list[str]] = {"library_name": "transformers", "pipeline_tag": _TASKS[card.config.kind]}
    if not Path(card.model).exists():
        keys["base_model"] = card.model
    if tags:
        keys["language"] = tags
    return keys | {"tags": ["reward-model", "steelyard"]}
