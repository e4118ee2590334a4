"""The torch half of Nemotron-70B-Reward.

Read from ``cheems/eval/rm_predictor.py`` of AlignRM/CheemsRM (class ``NemotronPredictor``), which follows the model
card: generate one token behind the whole conversation and take the score of id 0.

Differs from: that code, which computes every logit, in bfloat16, and passes it through generation's own settings:
here the row of id 0 alone is applied, in float32, to the last token.
"""

from pathlib import Path

from torch import Tensor

from steelyard.core.errors import ModelError
from steelyard.plugins.models._checkpoint import fill, load_backbone, local_folder, read_config, stored_weights
from steelyard.plugins.models._headed import Family, HeadedModel
from steelyard.plugins.models._linear_head import LinearHead
from steelyard.plugins.models._network import load_tokenizer
from steelyard.plugins.models._settings import DecoderConfig, rendering_of

_REWARD_ID = 0


def build_nemotron_reward(config: DecoderConfig) -> HeadedModel:
    """The scorer of a folder whose reward is the logit of the first id."""
    folder = local_folder(config.path)
    tokenizer = load_tokenizer(str(folder))
    head = LinearHead(read_config(folder)["hidden_size"])
    fill(head, {"weight": output_weights(folder)[_REWARD_ID : _REWARD_ID + 1]}, where=folder)
    backbone = load_backbone(folder, dtype=config.dtype)
    family = Family("nemotron_reward", head)
    return HeadedModel(config, family, backbone, tokenizer=tokenizer, rendering=rendering_of(config, tokenizer))


def output_weights(folder: Path) -> Tensor:
    """The output layer, which is the embedding where the two are one. Raises ModelError where there is none."""
    name = "lm_head.weight"
    if read_config(folder).get("tie_word_embeddings"):
        name = "model.embed_tokens.weight"
    found = stored_weights(folder, lambda stored: stored == name)
    if not found:
        raise ModelError(f"has no {name}", where=str(folder), allowed="a causal language model")
    return found[name]
