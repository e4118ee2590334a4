import pytest

from steelyard.core.errors import ConfigError
from steelyard.stages.debias.settings import Config, check_settings


@pytest.mark.parametrize("config", [Config(matched=-0.1), Config(matched=1.0), Config(by="author", tokenizer="t")])
def test_what_makes_no_sense_is_refused(config):
    with pytest.raises(ConfigError):
        check_settings(config)


@pytest.mark.parametrize("config", [Config(), Config(matched=0.0), Config(by="markdown", tokenizer="t", within="both")])
def test_what_fits_is_taken(config):
    check_settings(config)
