r"""Published reward models with a head of their own over a decoder: one entry of `KINDS` a family.

A folder in the layout of a family is scored by its published rules: the head's weights, the place that it reads, and
the text around the conversation. To add a family, write its head in ``_heads.py`` if it is a new one, and its entry.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from steelyard.core.errors import ModelError
from steelyard.core.plugins import Plugin
from steelyard.core.types import JsonObject
from steelyard.networks.settings import DecoderConfig

if TYPE_CHECKING:
    from torch import Tensor, nn

    from steelyard.networks.conversation import Rendering
    from steelyard.networks.published import HeadedModel, ReadPlaces

_TURNS = (
    "{%% for message in messages %%}{%% if message.role == 'system' %%}{{ raise_exception('no system role') }}"
    "{%% elif message.role == 'assistant' %%} [%sINST] {{ message.content }}"
    "{%% if not loop.last %%}%s{%% endif %%}{%% else %%}[INST] {{ message.content }}{%% endif %%}{%% endfor %%}"
)
CARD_TEMPLATE = _TURNS % ("\\", " ")
MISTRAL_TEMPLATE = _TURNS % ("/", "{{ eos_token }}") + "{{ eos_token }}"
_REWARD_ID = 0
_Weights = Mapping[str, "Tensor"]
_MakeHead = Callable[[JsonObject, _Weights], "nn.Module"]


class CheemsrmConfig(DecoderConfig, frozen=True):
    """Settings of the official CheemsRM layout; ``strip`` is on, as there."""

    strip: bool = True
    """Remove white space at the end of the text."""
    as_published: bool = False
    """Also write the BOS token twice where the official code does: when both template and tokenizer write it."""


class EurusConfig(DecoderConfig, frozen=True):
    """Settings of Eurus-RM and UltraRM. A ``chat_template`` goes before both marks; UltraRM needs one."""

    marks: Literal["card", "mistral"] = "card"
    """The instruction marks of the text: card as the model card prints them, mistral as RewardBench runs it."""


def _model(
    config: DecoderConfig,
    name: str,
    make_head: _MakeHead,
    weights_of: Callable[[Path], dict[str, "Tensor"]],
    *,
    read: "Callable[[Any], ReadPlaces] | None" = None,
    before: "Callable[[Any, Rendering], tuple[int, ...]] | None" = None,
    template: str | None = None,
    protocol: "Callable[[nn.Module], JsonObject] | None" = None,
) -> "HeadedModel":
    """Load a family's folder. Raises ModelError for a checkpoint of another layout.

    ``read`` and ``before`` are made from the tokenizer. ``template`` is used where the settings name none.
    """
    from steelyard.networks.loading import fill, load_backbone, load_tokenizer, local_folder, read_config
    from steelyard.networks.published import Family, HeadedModel, read_last
    from steelyard.networks.settings import decoder_rendering

    folder = local_folder(config.path)
    tokenizer = load_tokenizer(str(folder))
    settings, weights = read_config(folder), weights_of(folder)
    head = make_head(settings, weights)
    fill(head, weights, where=folder)
    places = read(tokenizer) if read else read_last
    backbone = load_backbone(folder, dtype=config.dtype)
    rendering = decoder_rendering(config, tokenizer, template=template)
    family = Family(
        name,
        head,
        read=places,
        before=before(tokenizer, rendering) if before else (),
        protocol=protocol(head) if protocol else {},
    )
    return HeadedModel(config, family, backbone, tokenizer=tokenizer, rendering=rendering)


def _stored_weights(*prefixes: str, strip: str = "") -> Callable[[Path], dict[str, "Tensor"]]:
    """Return a reader of the weights whose names begin so, without the prefix ``strip``."""

    def weights(folder: Path) -> dict[str, "Tensor"]:
        from steelyard.networks.loading import stored_weights

        stored = stored_weights(folder, lambda name: name.startswith(prefixes))
        return {name.removeprefix(strip): value for name, value in stored.items()}

    return weights


def _linear(settings: JsonObject, _: _Weights) -> "nn.Module":
    from steelyard.plugins.models._heads import LinearHead

    return LinearHead(settings["hidden_size"])


_GATE = ("regression_layer.", "gating.", "reward_transform_matrix")


def _armorm(config: DecoderConfig) -> "HeadedModel":
    """Return an ArmoRM model: a folder in the layout of RLHFlow/ArmoRM-Llama3-8B-v0.1.

    Read from public copies of the ``modeling_custom.py`` that is published with it (class
    ``LlamaForRewardModelWithGating``) and from ``armo-rm/stage-2_train.py`` of RLHFlow/RLHF-Reward-Modeling.

    Differs from: that file, which computes in bfloat16 throughout: here everything behind the decoder is float32.
    """
    from steelyard.plugins.models._heads import armorm_head, turn_reader

    def read(tokenizer: Any) -> "ReadPlaces":
        return turn_reader(tokenizer, where=config.path)

    return _model(config, "armorm", lambda settings, _: armorm_head(settings), _stored_weights(*_GATE), read=read)


def _qrm(config: DecoderConfig) -> "HeadedModel":
    """Return a QRM model: a folder in the layout of nicolinho/QRM-Llama3.1-8B or nicolinho/QRM-Llama3-8B.

    Read from ``rewardbench/models/qrm.py`` of allenai/reward-bench (classes ``LlamaForRewardModelWithGating3`` and
    ``…31``, which give the same score).
    """
    from steelyard.plugins.models._heads import qrm_head, turn_reader

    def read(tokenizer: Any) -> "ReadPlaces":
        return turn_reader(tokenizer, where=config.path)

    def head(settings: JsonObject, _: _Weights) -> "nn.Module":
        return qrm_head(settings, where=config.path)

    return _model(config, "qrm", head, _stored_weights(*_GATE), read=read)


def _grm(config: DecoderConfig) -> "HeadedModel":
    """Return a GRM model: a folder in the layout of Ray2333/GRM-llama3-8B-sftreg.

    The ``rewardmodel-ft`` and ``distill`` checkpoints have a plain head: those are of the kind ``classifier``. Read
    from ``rewardbench/models/grm.py`` of allenai/reward-bench (classes ``ValueHead`` and ``GRewardModel``).
    """
    from steelyard.plugins.models._heads import ValueHead

    return _model(config, "grm", lambda settings, _: ValueHead(settings), _stored_weights("v_head.", strip="v_head."))


def _urm(config: DecoderConfig) -> "HeadedModel":
    """Return a URM model: a folder of LxzGordon/URM-LLaMa-3.1-8B or URM-LLaMa-3-8B.

    Unverified: the modelling file that is published with the model could not be read.

    Known from the two model cards: five attributes of HelpSteer2, each the two parameters of a normal distribution; in
    URM-LLaMa-3-8B weighted by 0.3, 0.74, 0.46, 0.47 and -0.33, in URM-LLaMa-3.1-8B by a learned layer. Known from
    public code that calls it: ten outputs in pairs of mean and spread, a layer named ``weights`` with five outputs at
    the same token, and the score their product with the means, not normalised. Assumed: the outputs' layer is
    ``score``, and ``weights`` is one linear layer. A checkpoint that has other names is refused, never guessed at.
    """
    from steelyard.plugins.models._heads import HELPSTEER_WEIGHTS, attribute_head

    def protocol(head: "nn.Module") -> JsonObject:
        return {"weights": "learned" if head.is_weighted else list(HELPSTEER_WEIGHTS)}

    def make_head(settings: JsonObject, weights: _Weights) -> "nn.Module":
        return attribute_head(settings["hidden_size"], weights)

    return _model(config, "urm", make_head, _stored_weights("score.", "weights."), protocol=protocol)


def _cheemsrm(config: CheemsrmConfig) -> "HeadedModel":
    """Return a model in the official CheemsRM layout, as its training code saves it.

    Read from ``cheems/train/model.py`` (the head), ``cheems/train/dataset.py`` (``build_sample``) and
    ``cheems/eval/rm_predictor.py`` of AlignRM/CheemsRM.

    Differs from: the published code, whose head computes in bfloat16, so that unequal rewards tie; which writes the
    BOS token twice (``as_published`` keeps that); and which replaces ids beyond the vocabulary by padding.
    """
    return _model(
        config,
        "cheemsrm",
        _linear,
        _stored_weights("v_head.", strip="v_head."),
        before=_second_mark if config.as_published else None,
        protocol=lambda _: {"as_published": config.as_published},
    )


def _second_mark(tokenizer: Any, rendering: "Rendering") -> tuple[int, ...]:
    """Return the BOS token that the published code writes once more: the tokenizer's, before the template's."""
    bos = tokenizer.bos_token_id
    if bos is None or rendering.special_tokens != "template":
        return ()
    return (bos,) if tokenizer("a").input_ids[:1] == [bos] else ()


def _eurus_rm(config: EurusConfig) -> "HeadedModel":
    r"""Return a Eurus-RM or UltraRM model: a folder in the layout of openbmb/Eurus-RM-7b or openbmb/UltraRM-13b.

    Read from public copies of the ``modeling_eurus_rm.py`` that is published with openbmb/Eurus-RM-7b (class
    ``EurusRewardModel``) and from ``rewardbench/models/openbmb.py`` of allenai/reward-bench (the same head on Llama);
    the text from the model card's example, which prints ``[\INST]`` where Mistral's template has ``[/INST]``.
    """
    template = {"card": CARD_TEMPLATE, "mistral": MISTRAL_TEMPLATE}[config.marks]
    weights = _stored_weights("regression_head.", strip="regression_head.")
    return _model(config, "eurus_rm", _linear, weights, template=template)


def _nemotron_reward(config: DecoderConfig) -> "HeadedModel":
    """Return a Nemotron reward model: a folder of nvidia/Llama-3.1-Nemotron-70B-Reward-HF.

    Read from ``cheems/eval/rm_predictor.py`` of AlignRM/CheemsRM (class ``NemotronPredictor``), which follows the model
    card: generate one token behind the whole conversation and take the score of id 0.

    Differs from: that code, which computes every logit, in bfloat16, and passes it through generation's own settings:
    here the row of id 0 alone is applied, in float32, to the last token.
    """
    return _model(config, "nemotron_reward", _linear, _reward_row)


def _reward_row(folder: Path) -> dict[str, "Tensor"]:
    """Return the output layer's row of the reward id; the output layer may be the embedding."""
    from steelyard.networks.loading import read_config, stored_weights

    is_tied = read_config(folder).get("tie_word_embeddings")
    name = "model.embed_tokens.weight" if is_tied else "lm_head.weight"
    weights = stored_weights(folder, lambda stored: stored == name)
    if not weights:
        raise ModelError(f"has no {name}", where=str(folder), allowed="a causal language model")
    return {"weight": weights[name][_REWARD_ID : _REWARD_ID + 1]}


def _internlm2_reward(config: DecoderConfig) -> "HeadedModel":
    """Return an InternLM2-reward model: internlm/internlm2-1_8b-reward, -7b-reward or -20b-reward.

    Its tokenizer class is code that comes with the model, and such code is never run: the folder needs the same
    tokenizer as ``tokenizer.json``.
    """
    from steelyard.plugins.models._internlm2 import internlm2_reward

    return internlm2_reward(config)


KINDS = {
    "armorm": Plugin(
        DecoderConfig,
        _armorm,
        "ArmoRM: nineteen objectives, weighted for each prompt by a gate that reads where the answer begins.",
    ),
    "cheemsrm": Plugin(
        CheemsrmConfig,
        _cheemsrm,
        "The official CheemsRM layout: a causal language model with a ``v_head``, read at the last attended token.",
    ),
    "eurus_rm": Plugin(
        EurusConfig,
        _eurus_rm,
        "Eurus-RM (and UltraRM): one weight vector, read at the last token of a text between instruction marks.",
    ),
    "grm": Plugin(
        DecoderConfig,
        _grm,
        "GRM with its value head: a small network read at the last token (the ``sftreg`` checkpoints).",
    ),
    "internlm2_reward": Plugin(
        DecoderConfig,
        _internlm2_reward,
        "InternLM2-reward: a ``v_head`` read at a reward token that is put behind the conversation.",
    ),
    "nemotron_reward": Plugin(
        DecoderConfig,
        _nemotron_reward,
        "Llama-3.1-Nemotron-70B-Reward: a causal language model whose logit for its first id is the reward.",
    ),
    "qrm": Plugin(
        DecoderConfig,
        _qrm,
        "QRM: the quantiles of nineteen objectives, their means weighted for each prompt by a gate.",
    ),
    "urm": Plugin(
        DecoderConfig,
        _urm,
        "URM: five attributes, each a mean and a spread, summed with weights that are fixed or read from the answer.",
    ),
}
