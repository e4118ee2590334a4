"""The models that the papers' tables name: what each is, what scores it here, and what moves its scores unnoticed."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec


class PublishedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of ``models/published.toml``, whose head says what the columns mean."""

    name: str
    kind: Literal["classifier", "implicit", "generative"]
    adapter: str
    state: Literal["tested", "unverified", "endpoint", "api"]
    papers: tuple[Literal["cheems", "m-rewardbench"], ...]
    names: tuple[str, ...] = ()
    hub: str | None = None
    settings: dict[str, str] = {}
    dtype: Literal["float32", "bfloat16", "float16"] | None = None
    quirks: tuple[str, ...] = ()


@cache
def published_models() -> tuple[PublishedModel, ...]:
    """Every row, in the order of the file."""
    text = (files("steelyard.plugins.models") / "published.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(row, PublishedModel) for row in tomllib.loads(text)["model"])


def published_model(name: str) -> PublishedModel | None:
    """The model of that hub name or name in a table, whatever the letters' case; null for any other."""
    asked = name.strip("/").casefold()
    for row in published_models():
        if asked in (one.casefold() for one in (row.name, *row.names, row.hub or row.name)):
            return row
    return None
