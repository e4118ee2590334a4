from steelyard.core.config import parse_settings, resolve_config
from steelyard.stages.resolve.settings import Config


def test_settings_by_hand():
    settings = parse_settings(["quality=false", "author_ties=davidson", "only.kind=['human']"])
    found = resolve_config(Config, settings, where="resolve")
    assert (found.quality, found.author_ties, found.only.kind) == (False, "davidson", ("human",))
    assert Config().quality
    assert Config().aggregate == "none"
