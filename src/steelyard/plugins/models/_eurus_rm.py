r"""The torch half of Eurus-RM and UltraRM.

Read from public copies of the ``modeling_eurus_rm.py`` that is published with openbmb/Eurus-RM-7b (class
``EurusRewardModel``) and from ``rewardbench/models/openbmb.py`` of allenai/reward-bench (the same head on Llama); the
text from the model card's example, which prints ``[\INST]`` where Mistral's template has ``[/INST]``.
"""

from steelyard.plugins.models._checkpoint import fill, load_backbone, local_folder, read_config, stored_weights
from steelyard.plugins.models._headed import Family, HeadedModel
from steelyard.plugins.models._linear_head import LinearHead
from steelyard.plugins.models._network import load_tokenizer
from steelyard.plugins.models._settings import rendering_of
from steelyard.plugins.models.eurus_rm import Config

_TURNS = (
    "{%% for message in messages %%}{%% if message.role == 'system' %%}{{ raise_exception('no system role') }}"
    "{%% elif message.role == 'assistant' %%} [%sINST] {{ message.content }}"
    "{%% if not loop.last %%}%s{%% endif %%}{%% else %%}[INST] {{ message.content }}{%% endif %%}{%% endfor %%}"
)
CARD_TEMPLATE = _TURNS % ("\\", " ")
MISTRAL_TEMPLATE = _TURNS % ("/", "{{ eos_token }}") + "{{ eos_token }}"


def build_eurus_rm(config: Config) -> HeadedModel:
    """The scorer of a folder with a ``regression_head``."""
    folder = local_folder(config.path)
    tokenizer = load_tokenizer(str(folder))
    head = LinearHead(read_config(folder)["hidden_size"])
    stored = stored_weights(folder, lambda name: name.startswith("regression_head."))
    fill(head, {name.removeprefix("regression_head."): value for name, value in stored.items()}, where=folder)
    backbone = load_backbone(folder, dtype=config.dtype)
    template = {"card": CARD_TEMPLATE, "mistral": MISTRAL_TEMPLATE}[config.marks]
    rendering = rendering_of(config, tokenizer, template=template)
    return HeadedModel(config, Family("eurus_rm", head), backbone, tokenizer=tokenizer, rendering=rendering)
