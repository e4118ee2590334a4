"""The languages of parallel items: which are compared, with which baseline, and the groups that they belong to.

Families, scripts and classes of languages are facts of ``data/languages.toml``.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import msgspec

from steelyard.core.errors import EvidenceError, choices
from steelyard.core.languages import is_simplified_chinese, language_key
from steelyard.prompts.taxonomy import read_data


class Kin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The groups of a language: family, script, resource level, and class of Joshi et al. (2020); null if unknown.

    Languages of the same ``column`` are averaged first (Chinese in two scripts; M-RewardBench, Table 9). ``subgroup``
    is the branch of the family.
    """

    family: str | None = None
    script: str | None = None
    resource: str | None = None
    resource_class: int | None = None
    column: str | None = None
    subgroup: str | None = None


GROUPED_BY = ("family", "script", "resource", "resource_class")
"""The groups of one model's languages."""
GROUPED_BY_OF_MODELS = ("family", "subgroup", "script", "resource", "resource_class")
"""The groups of the languages of several models: a branch of one language says little of one model."""


class KnownLanguage(NamedTuple):
    """A language of the table: its name, and its groups."""

    name: str
    kin: Kin


def known_languages(codes: Iterable[str]) -> dict[str, KnownLanguage]:
    """Return the codes that name a language of the table, with its name and groups."""
    known: dict[tuple[str, bool], KnownLanguage] = {}
    for name, row in read_data("languages.toml").items():
        groups = {field: value for field, value in row.items() if field != "codes"}
        language = KnownLanguage(name, msgspec.convert(groups, Kin))
        known |= {(language_key(code), is_simplified_chinese(code)): language for code in row["codes"]}
    # Simplified Chinese has the identity of Chinese, and another class of resources where it is named.
    language_of = {code: known.get((language_key(code), is_simplified_chinese(code))) for code in codes}
    return {code: language for code, language in language_of.items() if language is not None}


def kin_of(codes: Iterable[str]) -> dict[str, Kin]:
    """Return the groups of the codes that name a language of the table."""
    return {code: language.kin for code, language in known_languages(codes).items()}


def compared_languages(present: Set[str], chosen: Sequence[str] | None, *, where: str) -> set[str]:
    """Return the languages to compare. Raises EvidenceError for one that no item has, or fewer than two."""
    compared = {*present} if chosen is None else {_find_language(name, present, where=where) for name in chosen}
    if len(compared) < 2:
        problem = f"the only language is {', '.join(compared)}" if compared else "no item has a language"
        raise EvidenceError(problem, where=where, do="evaluate parallel items in several languages")
    return compared


def _find_language(name: str, present: Set[str], *, where: str) -> str:
    """Return the language of that identity as the items spell it. Raises EvidenceError if none has it."""
    language = next((each for each in present if language_key(each) == language_key(name)), None)
    if language is None:
        raise EvidenceError(f"no item is in {name!r}", where=where, allowed=choices(name, present))
    return language


def english_of(languages: Iterable[str]) -> list[str]:
    """Return the codes among these that name English, sorted."""
    return sorted(code for code, language in known_languages(languages).items() if language.name == "english")


def baseline_of(num_items: Mapping[str, int], chosen: str | None, *, where: str) -> str:
    """Return the language that others are compared with: the chosen one, or English, or the one with the most items.

    Of languages with equal numbers it is that of the highest class of resources (Joshi et al., 2020), then the first by
    code. Raises EvidenceError for a chosen one that no item has.
    """
    if chosen is not None:
        return _find_language(chosen, num_items.keys(), where=where)
    kin = kin_of(num_items)
    return min(
        english_of(num_items) or num_items,
        key=lambda code: (-num_items[code], -(kin.get(code, Kin()).resource_class or 0), code),
    )


def members_of_columns(languages: Iterable[str], kin: Mapping[str, Kin]) -> dict[str, list[str]]:
    """Return the languages of each column: most are a column alone, Chinese in two scripts is one."""
    members: dict[str, list[str]] = {}
    for name in languages:
        members.setdefault(kin.get(name, Kin()).column or name, []).append(name)
    return members


def members_of_groups(languages: Iterable[str], kin: Mapping[str, Kin], field: str) -> dict[str, list[str]]:
    """Return the languages of each group of one field, sorted by the group. Class 0 is omitted, as in the paper."""
    members: dict[str, list[str]] = {}
    for name in languages:
        value = getattr(kin.get(name, Kin()), field)
        if value is not None and value != 0:
            members.setdefault(str(value), []).append(name)
    return dict(sorted(members.items()))
