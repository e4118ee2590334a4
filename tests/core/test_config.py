from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import inspect

from each_value import each
from steelyard.core.config import Config, Positive, describe_type, parse_settings, parse_toml, resolve_config, toml_line
from steelyard.core.errors import ConfigError


class Inner(Config, frozen=True):
    path: str = ""


class Settings(Config, frozen=True):
    epochs: int = 1
    rate: float = 0.5
    model: Inner = Inner()


def test_settings_become_a_config():
    settings = parse_settings(["epochs=2", "model.path=some/model", "rate=1e-3"])
    assert resolve_config(Settings, settings, where="train") == Settings(
        epochs=2, rate=1e-3, model=Inner(path="some/model")
    )
    assert resolve_config(Settings, {}, where="train") == Settings()


def test_a_misspelt_key_is_named_with_the_nearest():
    with pytest.raises(ConfigError, match=r"train: unknown setting 'epoch'\n  allowed: did you mean 'epochs'\?"):
        resolve_config(Settings, {"epoch": 2}, where="train")


def test_a_wrong_type_is_named():
    with pytest.raises(ConfigError, match=r"train: epochs is 'two'\n  allowed: a whole number"):
        resolve_config(Settings, {"epochs": "two"}, where="train")
    with pytest.raises(ConfigError, match=r"unknown setting 'model.pth'\n  allowed: did you mean 'path'\?"):
        resolve_config(Settings, {"model": {"pth": "x"}}, where="train")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("seed", 1),
        ("a", 2),
        ("a.b c", 3),
        ("a.b c.missing", 3),
        ("a.d", 4),
        ("a.d.e.f", 5),
        ("list.x", 7),
        ("a.d.e", 5),
        ("list", 6),
        ("seeds", None),
        ("", None),
    ],
)
def test_the_line_of_a_setting_is_that_of_its_key_or_of_its_table(name, line):
    lines = ("seed=1", " [ a ] # x", "'b c' = [1,2]", "[a.'d']", "e.f = {g = 1}", "[[list]]", 'x = "a = b"')
    assert toml_line("\n".join(lines), name) == line


def test_values_are_toml_and_else_text():
    settings = parse_settings(["a=true", "b=[1, 2]", 'c="x=y"', "d=杆秤", "e="])
    assert settings == {"a": True, "b": [1, 2], "c": "x=y", "d": "杆秤", "e": ""}


@pytest.mark.parametrize("broken", ["epochs", "=3", "a=1;a.b=2"])
def test_broken_assignments_are_refused(broken):
    with pytest.raises(ConfigError, match=r"^set "):
        parse_settings(broken.split(";"))


def test_toml_is_read_and_broken_toml_is_placed():
    assert parse_toml("[train]\nepochs = 2\n", where="r.toml") == {"train": {"epochs": 2}}
    with pytest.raises(ConfigError, match=r"r\.toml: not valid TOML: .*line 2"):
        parse_toml("a = 1\nb = = 2\n", where="r.toml")


@pytest.mark.parametrize("assignment", ["a=1\nb=2", "a=1\rb", "a=[1,\n2]", "a\n=1", "a=1\u2028b=2"])
def test_a_setting_with_a_line_break_is_refused(assignment):
    with pytest.raises(ConfigError, match="has a line break"):
        parse_settings([assignment])


@pytest.mark.parametrize("number", [0, -1])
def test_what_must_be_counted_is_one_or_more(number):
    class Drawn(Config, frozen=True):
        num_resamples: Positive = 3

    with pytest.raises(ConfigError, match=rf"num_resamples is {number}\n  allowed: a whole number of 1 or more"):
        resolve_config(Drawn, {"num_resamples": number}, where="evaluate")


class Noise(Config, frozen=True):
    spread: float = 0.5
    names: tuple[str, ...] = ()
    kinds: tuple[Literal["human", "llm"], ...] = ()


class Options(Config, frozen=True):
    epochs: int = 1
    most: int | None = None
    strict: bool = False
    pairs: Literal["tiers", "judged"] | None = None
    near: float | Literal["off"] = 0.8
    parts: dict[str, float] | None = None
    inner: Noise = Noise()
    shares: dict[Literal["strong", "weak"], Annotated[float, msgspec.Meta(ge=0, le=1)]] | None = None
    prices: tuple[Annotated[float, msgspec.Meta(ge=0)], Annotated[float, msgspec.Meta(ge=0)]] | None = None
    rate: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 1.0


@each(
    ("settings", "found", "allowed"),
    [
        ({"epochs": "two"}, "epochs is 'two'", "a whole number"),
        ({"epochs": True}, "epochs is true", "a whole number"),
        ({"most": "all"}, "most is 'all'", "a whole number"),
        ({"strict": 1}, "strict is 1", "true or false"),
        ({"pairs": "teirs"}, "pairs is 'teirs'", "did you mean 'tiers'? judged, tiers"),
        ({"pairs": "xyz"}, "pairs is 'xyz'", "judged, tiers"),
        ({"near": "of"}, "near is 'of'", "did you mean 'off'? a number or off"),
        ({"parts": {"train": "most"}}, "parts.train is 'most'", "a number"),
        ({"parts": {"train": 1.0, "test": True}}, "parts.test is true", "a number"),
        ({"shares": {"strong": 0.5, "weak": 1.5}}, "shares.weak is 1.5", "a number from 0 to 1"),
        ({"shares": {"strng": 0.5}}, "shares has the key 'strng'", "did you mean 'strong'? strong, weak"),
        ({"prices": [-1, 2]}, "prices is [-1, 2]", "a list of 2, each a number of 0 or more"),
        ({"rate": -1.0}, "rate is -1.0", "a number above 0, up to 1,000"),
        ({"inner": 3}, "inner is 3", "settings of its own: spread, names, kinds"),
        ({"inner": {"spread": "wide"}}, "inner.spread is 'wide'", "a number"),
        ({"inner": {"names": ["a", 1]}}, "inner.names is ['a', 1]", "a list; each item: a text"),
        ({"inner": {"kinds": ["llm", "humn"]}}, "inner.kinds is 'humn'", "did you mean 'human'? human, llm"),
        ({"inner": {"spred": 1}}, "unknown setting 'inner.spred'", "did you mean 'spread'? kinds, names, spread"),
    ],
)
def test_which_setting_what_it_is_and_what_it_may_be(settings, found, allowed):
    with pytest.raises(ConfigError) as refused:
        resolve_config(Options, settings, where="train")
    assert str(refused.value) == f"train: {found}\n  allowed: {allowed}"


def test_what_is_required_and_absent_is_named():
    class Needs(Config, frozen=True):
        path: str

    with pytest.raises(ConfigError, match=r"models\.classifier: path is missing"):
        resolve_config(Needs, {}, where="models.classifier")


def test_every_kind_of_value_has_words():
    assert describe_type(inspect.type_info(tuple[float, int] | None)) == "a list of a number and a whole number"
    assert describe_type(inspect.type_info(int | str)) == "a whole number or a text"
    assert describe_type(inspect.type_info(msgspec.Raw)) == "raw"
