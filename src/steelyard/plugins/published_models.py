"""The models in the papers' tables: the kind of each, the plug-in that scores it, and pitfalls of its scores."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec


class PublishedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of ``models/published.toml``, whose head explains the columns."""

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
    """Return every row, in the order of the file."""
    text = (files("steelyard.plugins.models") / "published.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(row, PublishedModel) for row in tomllib.loads(text)["model"])


def published_model(name: str) -> PublishedModel | None:
    """Return the model of a hub name or a name in a table, in any letter case; null for any other."""
    wanted = name.strip("/").casefold()
    for row in published_models():
        if wanted in (known.casefold() for known in (row.name, *row.names, row.hub or row.name)):
            return row
    return None
