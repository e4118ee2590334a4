"""The torch half of the official CheemsRM layout.

Read from ``cheems/train/model.py`` (the head), ``cheems/train/dataset.py`` (``build_sample``) and
``cheems/eval/rm_predictor.py`` of AlignRM/CheemsRM.

Differs from: the published code, whose head works in bfloat16, so that unequal rewards tie; which writes the beginning
mark twice (``as_published`` keeps that); and which replaces ids beyond the vocabulary by padding.
"""

from typing import Any

from steelyard.plugins.models._checkpoint import fill, load_backbone, local_folder, read_config, stored_weights
from steelyard.plugins.models._conversation import Rendering
from steelyard.plugins.models._headed import Family, HeadedModel
from steelyard.plugins.models._linear_head import LinearHead
from steelyard.plugins.models._network import load_tokenizer
from steelyard.plugins.models._settings import rendering_of
from steelyard.plugins.models.cheemsrm import Config


def build_cheemsrm(config: Config) -> HeadedModel:
    """The scorer of a folder with the official head."""
    folder = local_folder(config.path)
    tokenizer = load_tokenizer(str(folder))
    rendering = rendering_of(config, tokenizer)
    head = LinearHead(read_config(folder)["hidden_size"])
    stored = stored_weights(folder, lambda name: name.startswith("v_head."))
    fill(head, {name.removeprefix("v_head."): value for name, value in stored.items()}, where=folder)
    before = second_mark(tokenizer, rendering) if config.as_published else ()
    family = Family("cheemsrm", head, before=before, protocol={"as_published": config.as_published})
    backbone = load_backbone(folder, dtype=config.dtype)
    return HeadedModel(config, family, backbone, tokenizer=tokenizer, rendering=rendering)


def second_mark(tokenizer: Any, rendering: Rendering) -> tuple[int, ...]:
    """The beginning mark that the published code writes once more: the tokenizer's, in front of the template's."""
    bos = tokenizer.bos_token_id
    if bos is None or rendering.special_tokens != "template":
        return ()
    return (bos,) if tokenizer("a").input_ids[:1] == [bos] else ()
