import pytest

import tiny
import tiny_families
from steelyard.core.errors import ConfigError, ModelError
from steelyard.networks.settings import DecoderConfig, FeatureSettings, decoder_rendering


def test_a_model_is_rendered_as_published_unless_told_otherwise():
    own = decoder_rendering(DecoderConfig(path="m"), tiny.tokenizer())
    assert (own.template, own.strip, own.max_length, own.over_length) == (tiny.CHATML, False, 2048, "unscored")
    told = DecoderConfig(path="m", strip=True, max_length=9, over_length="left", chat_template="plain")
    assert decoder_rendering(told, tiny.tokenizer()).template != tiny.CHATML
    assert decoder_rendering(told, tiny.tokenizer(), template="own").template != "own"
    assert (decoder_rendering(told, tiny.tokenizer()).strip, decoder_rendering(told, tiny.tokenizer()).max_length) == (
        True,
        9,
    )


def test_a_family_s_own_template_stands_in_for_none():
    assert decoder_rendering(DecoderConfig(path="m"), tiny.tokenizer(None), template="own").template == "own"
    with pytest.raises(ModelError, match="no chat template"):
        decoder_rendering(DecoderConfig(path="m"), tiny.tokenizer(None))


def test_the_tokenizer_adds_its_mark_only_where_the_template_does_not():
    adding = tiny_families.adding_bos(tiny.tokenizer())
    assert decoder_rendering(DecoderConfig(path="m"), adding).special_tokens == "tokenizer"
    adding.chat_template = tiny.WITH_BOS
    assert decoder_rendering(DecoderConfig(path="m"), adding).special_tokens == "template"


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"path": ""}, "path"), ({"poolings": ()}, "poolings"), ({"poolings": ("last", "last")}, "poolings"),
     ({"max_length": 0}, "max_length")],
)  # fmt: skip
def test_settings_that_no_backbone_can_follow_are_refused_by_name(settings, name):
    FeatureSettings(path="folder")
    with pytest.raises(ConfigError, match=name):
        FeatureSettings(**{"path": "folder"} | settings)
