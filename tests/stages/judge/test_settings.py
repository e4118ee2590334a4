import pytest

from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError
from steelyard.stages.judge import Config


def test_members_of_a_panel_come_from_tables():
    settings = {
        "members": [{"chat": {"kind": "recorded", "path": "r"}, "judge": {"style": "qwen"}, "price": [1.0, 2.0]}]
    }
    (member,) = resolve_config(Config, settings, where="judge").members
    assert (member.chat["kind"], member.judge, member.price) == ("recorded", {"style": "qwen"}, (1.0, 2.0))


@pytest.mark.parametrize(
    "settings", [{"compare": "fours"}, {"write": "all"}, {"members": [{"chats": {}}]}, {"style": "x"}]
)
def test_what_is_misspelt_is_refused(settings):
    with pytest.raises(ConfigError):
        resolve_config(Config, settings, where="judge")
