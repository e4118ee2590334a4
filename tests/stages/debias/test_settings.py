import pytest

from steelyard.core.errors import ConfigError
from steelyard.stages.debias.settings import Config, check_settings


@pytest.mark.parametrize("config", [Config(matched=-0.1), Config(matched=1.0), Config(by="author", tokenizer="t")])
def test_what_makes_no_sense_is_refused(config):
    with pytest.raises(ConfigError):
        check_settings(config, with_scores=True)


def test_what_can_do_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"matched is 0\.1, and there are no scores\n  do: give --scores FILE"):
        check_settings(Config(matched=0.1), with_scores=False)
    check_settings(Config(matched=0.1), with_scores=True)


@pytest.mark.parametrize("config", [Config(), Config(matched=0.0), Config(by="markdown", tokenizer="t", within="both")])
def test_what_fits_is_taken(config):
    check_settings(config, with_scores=True)


def test_pairs_are_matched_within_a_tenth_unless_asked_otherwise():
    check_settings(Config(), with_scores=False)
    assert (Config().closeness, Config(matched=0.0).closeness) == (0.1, 0.0)
