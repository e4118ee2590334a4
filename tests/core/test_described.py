from typing import Literal

import msgspec
import pytest
from msgspec import inspect

from steelyard.core.config import Config, resolve_config
from steelyard.core.described import described
from steelyard.core.errors import ConfigError


class Inner(Config, frozen=True):
    spread: float = 0.5
    names: tuple[str, ...] = ()
    kinds: tuple[Literal["human", "llm"], ...] = ()


class Settings(Config, frozen=True):
    epochs: int = 1
    most: int | None = None
    strict: bool = False
    pairs: Literal["tiers", "judged"] | None = None
    near: float | Literal["off"] = 0.8
    parts: dict[str, float] | None = None
    inner: Inner = Inner()


@pytest.mark.parametrize(
    ("settings", "found", "allowed"),
    [
        ({"epochs": "two"}, "epochs is 'two'", "a whole number"),
        ({"epochs": True}, "epochs is true", "a whole number"),
        ({"most": "all"}, "most is 'all'", "a whole number"),
        ({"strict": 1}, "strict is 1", "true or false"),
        ({"pairs": "teirs"}, "pairs is 'teirs'", "did you mean 'tiers'? judged, tiers"),
        ({"pairs": "xyz"}, "pairs is 'xyz'", "judged, tiers"),
        ({"near": "of"}, "near is 'of'", "did you mean 'off'? a number or off"),
        ({"parts": {"train": "most"}}, "parts is {'train': 'most'}", "KEY=VALUE pairs; each value: a number"),
        ({"inner": 3}, "inner is 3", "settings of its own: spread, names, kinds"),
        ({"inner": {"spread": "wide"}}, "inner.spread is 'wide'", "a number"),
        ({"inner": {"names": ["a", 1]}}, "inner.names is ['a', 1]", "a list; each item: a text"),
        ({"inner": {"kinds": ["llm", "humn"]}}, "inner.kinds is 'humn'", "did you mean 'human'? human, llm"),
        ({"inner": {"spred": 1}}, "unknown setting 'inner.spred'", "did you mean 'spread'? kinds, names, spread"),
    ],
)
def test_which_setting_what_it_is_and_what_it_may_be(settings, found, allowed):
    with pytest.raises(ConfigError) as refused:
        resolve_config(Settings, settings, where="train")
    assert str(refused.value) == f"train: {found}\n  allowed: {allowed}"


def test_what_is_required_and_absent_is_named():
    class Needs(Config, frozen=True):
        path: str

    with pytest.raises(ConfigError, match="missing required field `path`"):
        resolve_config(Needs, {}, where="models.classifier")


def test_every_kind_of_value_has_words():
    assert described(inspect.type_info(int | str)) == "a whole number or a text"
    assert described(inspect.type_info(msgspec.Raw)) == "raw"
