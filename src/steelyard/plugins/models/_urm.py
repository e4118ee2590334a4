"""The torch half of URM. Unverified: the modelling file that is published with the model could not be read.

Known from the two model cards: five attributes of HelpSteer2, each the two parameters of a normal distribution; in
URM-LLaMa-3-8B weighted by 0.3, 0.74, 0.46, 0.47 and -0.33, in URM-LLaMa-3.1-8B by a learned layer. Known from public
code that calls it: ten outputs in pairs of mean and spread, a layer named ``weights`` with five outputs at the same
token, and the score their product with the means, not normalised. Taken here: the outputs' layer is ``score``, and
``weights`` is one linear layer. A checkpoint that has other names is refused, never guessed at.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from steelyard.plugins.models._checkpoint import fill, load_backbone, local_folder, read_config, stored_weights
from steelyard.plugins.models._headed import Family, HeadedModel
from steelyard.plugins.models._network import load_tokenizer
from steelyard.plugins.models._settings import DecoderConfig, rendering_of

HELPSTEER_WEIGHTS = (0.3, 0.74, 0.46, 0.47, -0.33)
"""Of helpfulness, correctness, coherence, complexity and verbosity, in this order."""


class AttributeHead(nn.Module):
    """reward = Σ weight · mean over the attributes; the spreads are not used."""

    def __init__(self, width: int, *, is_weighted: bool, has_bias: bool) -> None:
        super().__init__()
        num = len(HELPSTEER_WEIGHTS)
        self.score = nn.Linear(width, 2 * num, bias=False)
        if is_weighted:
            self.weights = nn.Linear(width, num, bias=has_bias)
        else:
            self.register_buffer("fixed", torch.tensor(HELPSTEER_WEIGHTS), persistent=False)
        self.is_weighted = is_weighted

    def forward(self, read: Float[Tensor, "row place width"]) -> Float[Tensor, " row"]:
        """One reward a row."""
        means = self.score(read[:, 0])[:, 0::2]
        weights = self.weights(read[:, 0]) if self.is_weighted else self.fixed
        return (means * weights).sum(dim=-1)


def build_urm(config: DecoderConfig) -> HeadedModel:
    """The scorer of a URM folder."""
    folder = local_folder(config.path)
    tokenizer = load_tokenizer(str(folder))
    weights = stored_weights(folder, lambda name: name.startswith(("score.", "weights.")))
    head = attribute_head(read_config(folder)["hidden_size"], weights)
    fill(head, weights, where=folder)
    family = Family("urm", head, protocol={"weights": "learned" if head.is_weighted else list(HELPSTEER_WEIGHTS)})
    backbone = load_backbone(folder, dtype=config.dtype)
    return HeadedModel(config, family, backbone, tokenizer=tokenizer, rendering=rendering_of(config, tokenizer))


def attribute_head(width: int, weights: Mapping[str, Tensor]) -> AttributeHead:
    """The head that the names of the weights call for."""
    is_weighted = any(name.startswith("weights.") for name in weights)
    return AttributeHead(width, is_weighted=is_weighted, has_bias="weights.bias" in weights)
