"""The README of a trained model: what it is, what it learned from, what it can do, and how others load it.

Names come from users' files and may hold anything: nothing of them may end a table, a heading, or the YAML above.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.networks.manifest import Manifest
from steelyard.training.config import Config
from steelyard.training.examples import Examples
from steelyard.training.held_out import GroupAccuracy, HeldOut, Rounding

_SIGNS = re.compile(r"([\\`*_{}\[\]()#+!|~$:>\-.=])")
_WHAT = (
    "A reward model: a decoder with a scalar head that gives a conversation one number, higher for a better answer. "
    "Only differences between answers to one prompt mean something. Trained with Steelyard."
)
_POLICY = (
    "An implicit reward model: a policy trained by DPO. Its reward for an answer is how much likelier it finds it than "
    "the model that it was trained from. Trained with Steelyard."
)
_PROTOCOL = (
    "A reward means something only under the protocol that the model was trained with; `steelyard.json` holds it "
    "whole, and Steelyard refuses another."
)
_LICENCE = (
    "Not named yet. The licences of the base model and of the data bind what is made of them: name one here, and as "
    "`license:` in the lines above, before this model is published."
)
_TASKS = {"classifier": "text-classification", "implicit": "text-generation"}
_ORDINARY_LANGUAGE = re.compile(r"[a-z]{2,3}")


_SETTINGS = (
    "kind", "loss", "reduction", "weight_of_squares", "centring", "label_smoothing", "epochs", "learning_rate",
    "prompts_per_step", "warm_up", "schedule", "weight_decay", "batching", "trainable", "seed",
)  # fmt: skip
_OVER_LENGTH = {"unscored": "not scored", "refuse": "refused"}
_TableRow = tuple[str, Any]


class CardInputs(NamedTuple):
    """The inputs of a card: the model as it was named, the file of cases, settings, manifest and measures."""

    model: str
    file_name: str
    examples: Examples
    config: Config
    manifest: Manifest
    held_out: HeldOut | None = None
    rounding: Rounding | None = None


def model_card(card: CardInputs) -> str:
    """Return the card in Markdown, with the YAML that model hubs read."""
    name = Path(card.model).name
    settings = [("base model", name), *((setting, getattr(card.config, setting)) for setting in _SETTINGS)]
    parts = [
        _front(card),
        f"# {escaped(f'A reward model from {name}')}",
        _POLICY if card.config.kind == "implicit" else _WHAT,
        "## Data",
        _table(("what", "value"), _data_rows(card)),
        "## Training",
        _table(("setting", "value"), settings),
        "## Results on held-out cases",
        *_results(card.held_out),
        "## Protocol",
        _PROTOCOL,
        _table(("what", "value"), _protocol_rows(card.manifest)),
        "## Rewards",
        _table(("what", "value"), _reward_rows(card.manifest)),
        "## How to load it",
        _loading(card),
        "## Licence",
        _LICENCE,
    ]
    return "\n\n".join(parts) + "\n"


def _data_rows(card: CardInputs) -> list[_TableRow]:
    examples = card.examples
    return [
        ("file", card.file_name),
        ("SHA-256", card.manifest.data_hash),
        ("prompts", _number_of(len(examples.examples), examples.length.num_prompts)),
        ("responses", examples.num_responses),
        ("pairs", _number_of(examples.num_pairs, examples.length.num_pairs)),
        *(("length", sentence) for sentence in examples.length.sentences()),
        *((f"dropped: {rule}", number) for rule, number in sorted(examples.dropped.items())),
        *((f"noted: {rule}", number) for rule, number in sorted(examples.noted.items())),
    ]


def _number_of(number: int, total: int) -> int | str:
    """Return the number, with its share of the total where it is less."""
    return number if number == total else f"{number:,} of {total:,} ({number / total:.1%})"


def _protocol_rows(manifest: Manifest) -> list[_TableRow]:
    rendering = manifest.rendering
    return [
        ("template, by its hash", rendering.template_hash),
        ("special tokens added by", rendering.special_tokens),
        ("white space at the end", "taken off" if rendering.strip else "kept"),
        ("longest conversation in tokens", rendering.max_length),
        ("over that", _OVER_LENGTH.get(rendering.over_length, f"cut on the {rendering.over_length}")),
        ("number type", manifest.dtype),
    ]


def _reward_rows(manifest: Manifest) -> list[_TableRow]:
    reference, calibration = manifest.reference, manifest.calibration
    if reference is None:
        return [("measured on", "nothing")]
    rows: list[_TableRow] = [
        ("measured on", reference.name),
        ("SHA-256 of that file", reference.data_hash),
        ("rewards", reference.num_rewards),
        ("mean", round(reference.mean, 6)),
        ("spread", round(reference.spread, 6)),
        ("spread within a prompt", round(reference.spread_within, 6)),
    ]
    if calibration is not None:
        rows += [("scaled by", calibration.scale), ("to a mean of 0, add", calibration.shift)]
    return rows


def escaped(value: Any) -> str:
    """A value as plain Markdown text on one line, whatever signs are in it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return _SIGNS.sub(r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;"))


def _front(card: CardInputs) -> str:
    """YAML by way of JSON, which it contains: quoted, escaped, one line a key."""
    languages = {example.language for example in card.examples.examples if example.language}
    tags = sorted(language for language in languages if _ORDINARY_LANGUAGE.fullmatch(language))
    keys: dict[str, Any] = {"library_name": "transformers", "pipeline_tag": _TASKS[card.config.kind]}
    if not Path(card.model).exists():
        keys["base_model"] = card.model
    if tags:
        keys["language"] = tags
    keys["tags"] = ["reward-model", "steelyard"]
    lines = [f"{key}: {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join(["---", *lines, "# license: name it before you publish", "---"])


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(escaped, row))} |" for row in rows)])


def _results(held_out: HeldOut | None) -> list[str]:
    if held_out is None:
        return ["None: no cases were held out. Measure it before you use it: `steelyard evaluate`."]
    parts = [
        "Accuracy over pairs and exact match over prompts (every pair of the prompt right); a tied score is wrong.",
        _table(("cases", "accuracy", "exact match", "pairs", "prompts"), [_row("all", held_out)]),
    ]
    for groups, title in ((held_out.by_category, "category"), (held_out.by_language, "language")):
        if groups:
            rows = [_row(name, group) for name, group in groups.items()]
            parts.append(_table((title, "accuracy", "exact match", "pairs", "prompts"), rows))
    return parts


def _row(name: str, group: GroupAccuracy | HeldOut) -> tuple[Any, ...]:
    return (name, round(group.accuracy, 4), round(group.exact_match, 4), group.num_pairs, group.num_prompts)


_TURNS = """turns = [
    {"role": "user", "content": "What is a steelyard?"},
    {"role": "assistant", "content": "A hand scale."},
]
inputs = tokenizer(tokenizer.apply_chat_template(turns, tokenize=False), return_tensors="pt")
with torch.no_grad():
"""
_PLAIN_USE = f"""{_TURNS}    reward = model(**inputs).logits[0, 0].item()
"""
_BFLOAT16_USE = f"""model.base_model.to(torch.bfloat16)  # as it was evaluated; the head stays in float32
{_TURNS}    hidden = model.base_model(**inputs).last_hidden_state[0, -1]
    reward = model.score(hidden.float()).item()
"""


def _rounding(card: CardInputs) -> str:
    """What bfloat16 does to the rewards, as measured of this model."""
    if card.config.dtype == "float32":
        return ""
    text = (
        "\n\nThis model was evaluated in bfloat16. Engines round differently there, and a program that also rounds the "
        "head rounds more: two programs may order answers of nearly equal rewards differently."
    )
    if card.rounding is None:
        return text
    return (
        f"{text} Against float32 the rewards of {card.rounding.num_rewards} answers move by "
        f"{card.rounding.typical:.2%} of their spread (root mean square), at most {card.rounding.most:.2%}."
    )


def _loading(card: CardInputs) -> str:
    if card.config.kind == "implicit":
        return """With Steelyard, beside the model that it was trained from:

```sh
steelyard score CASES --model implicit --set model.path=PATH --set model.reference=BASE --out SCORES
```

With transformers it is an ordinary language model (`AutoModelForCausalLM`)."""
    return f"""With transformers:

```python
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

path = "PATH"
tokenizer = AutoTokenizer.from_pretrained(path)
model = AutoModelForSequenceClassification.from_pretrained(path, dtype=torch.float32)
{_PLAIN_USE if card.config.dtype == "float32" else _BFLOAT16_USE}```

The template writes every mark, and the tokenizer adds none: `apply_chat_template(..., tokenize=True)` gives the same
token ids.{_rounding(card)}

With vLLM (`config.json` names the problem a regression, so that no sigmoid is put on the reward): send such texts to
`/classify` of

```sh
vllm serve PATH --runner pooling
```

With SGLang: send such texts to `/classify` of

```sh
python -m sglang.launch_server --model-path PATH --is-embedding
```

With Steelyard: `steelyard score CASES --model PATH --out SCORES`, which renders conversations by the protocol above."""
