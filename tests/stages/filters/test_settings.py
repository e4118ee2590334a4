import pytest

from steelyard.core.errors import ConfigError
from steelyard.stages.filters.settings import Config, check_settings


def test_what_cannot_be_done_is_named():
    check_settings(Config(judge="gpt"))
    for settings, said in (
        ({"judge": ""}, "--judge"),
        ({"quantiles": (1.0,)}, "quantiles"),
        ({"human_shares": (0.0,)}, "human_shares"),
        ({"folds": 1}, "folds"),
        ({"repetitions": 0}, "repetitions"),
        ({"most_pairs": 0}, "most_pairs"),
    ):
        with pytest.raises(ConfigError, match=said):
            check_settings(Config(**{"judge": "gpt"} | settings))
