import pytest

from steelyard.core.errors import ConfigError
from steelyard.networks.reading import FeatureSettings, check_reading


def test_what_no_backbone_can_follow_is_refused_by_its_name():
    check_reading(FeatureSettings(path="folder"))
    for settings, said in (
        ({"path": ""}, "path"),
        ({"poolings": ()}, "poolings"),
        ({"poolings": ("last", "last")}, "poolings"),
        ({"max_length": 0}, "max_length"),
    ):
        with pytest.raises(ConfigError, match=said):
            check_reading(FeatureSettings(**{"path": "folder"} | settings))
