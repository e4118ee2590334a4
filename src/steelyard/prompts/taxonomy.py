"""The categories of prompts: a tree with names in English and Chinese, its dimensions, and the criteria of judges.

``data/taxonomy.toml`` is the taxonomy of the package, and ``data/prompt_sources.toml`` maps the categories of published
prompt sets to it. A user's own taxonomy is a table of the same form; what it leaves out of ``criteria`` is taken from
the package, and its ``sources`` map the categories of prompt sets to its own. A prompt's ``category`` holds the keys of
its tiers, from the first tier down.

Written for CHEEMS, sections 3.1 and 4.1 and appendix A: eight main categories with dozens below them, and the
dimensions of difficulty and scenario. The figures of its trees are not copied.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal, NamedTuple

import msgspec

from steelyard.core.errors import ConfigError, choices
from steelyard.core.types import JsonObject, Record

NameLanguage = Literal["en", "zh"]
Tiers = tuple[str, ...]
_KEY = re.compile(r"[a-z][a-z0-9_]*")
CATEGORY_FROM = "category_from"
"""The entry of a case's ``meta`` that records how the category of its prompt was assigned."""
GENERAL = "general"
"""The criteria of names that no table knows."""


class Category(Record, frozen=True, kw_only=True):
    """A category: its names, the criteria that judge it, and the categories below it by key."""

    en: str
    zh: str
    about_en: str = ""
    about_zh: str = ""
    criteria: str | None = None
    below: dict[str, "Category"] = {}  # noqa: RUF012  msgspec copies the default

    def name(self, language: NameLanguage) -> str:
        """Return the name in English or Chinese."""
        return self.zh if language == "zh" else self.en

    def about(self, language: NameLanguage) -> str:
        """Return the description in English or Chinese; empty where there is none."""
        return self.about_zh if language == "zh" else self.about_en


class DimensionValue(Record, frozen=True, kw_only=True):
    """A value of a dimension, such as easy."""

    en: str
    zh: str


class Dimension(Record, frozen=True, kw_only=True):
    """A property of prompts beside the tree, such as difficulty, and its values by key."""

    en: str
    zh: str
    values: dict[str, DimensionValue]


class CriteriaNames(Record, frozen=True, kw_only=True):
    """The whole names, and the words inside names, that are judged by one table of criteria."""

    names: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class _TaxonomyFile(Record, frozen=True, kw_only=True):
    """A taxonomy file, whose head explains it."""

    categories: dict[str, Category]
    dimensions: dict[str, Dimension] = {}  # noqa: RUF012  msgspec copies the default
    criteria: dict[str, CriteriaNames] = {}  # noqa: RUF012  msgspec copies the default
    sources: dict[str, dict[str, str]] = {}  # noqa: RUF012  msgspec copies the default


class CategorySource(NamedTuple):
    """Tiers, and whether the taxonomy or the mapping of a source knows them; unknown ones are as they were given."""

    tiers: Tiers
    is_known: bool


class Taxonomy:
    """The categories of prompts, by their keys and by their names in either language."""

    def __init__(
        self,
        categories: Mapping[str, Category],
        dimensions: Mapping[str, Dimension],
        criteria: Mapping[str, CriteriaNames],
        sources: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.categories = categories
        self.dimensions = dimensions
        self.criteria = criteria
        self.sources = sources

    def paths(self) -> Iterator[Tiers]:
        """Yield the tiers of every category, each above those below it."""
        return (tiers for tiers, _ in _walk(self.categories))

    def find(self, tiers: Sequence[str]) -> Category | None:
        """Return the category of these keys, null if there is none."""
        category, below = None, self.categories
        for key in tiers:
            category = below.get(key)
            if category is None:
                return None
            below = category.below
        return category

    def names(self, tiers: Sequence[str], language: NameLanguage) -> Tiers:
        """Return the names of the tiers; one that the taxonomy lacks stays as it is."""
        categories = [self.find(tiers[: place + 1]) for place in range(len(tiers))]
        pairs = zip(tiers, categories, strict=True)
        return tuple(key if category is None else category.name(language) for key, category in pairs)

    def tiers_of(self, name: str) -> Tiers | None:
        """Return the tiers of a category by its key or its name; null if it has none, or several have it.

        ``mathematics/algebra`` is a path. Case, spaces, hyphens and underscores do not matter.
        """
        tiers = self._by_name.get(plain_name(name), ())
        return tiers[0] if len(tiers) == 1 else None

    def read_path(self, text: str) -> Tiers | None:
        """Return the tiers of a path of keys or names, such as 数学/代数, or of one name as `tiers_of` reads it."""
        by_name = self.tiers_of(text)
        if by_name is not None:
            return by_name
        tiers: Tiers = ()
        below = self.categories
        for part in map(plain_name, text.split("/")):
            names = {key: {plain_name(name) for name in (key, each.en, each.zh)} for key, each in below.items()}
            key = next((key for key, of_key in names.items() if part and part in of_key), None)
            if key is None:
                return None
            tiers, below = (*tiers, key), below[key].below
        return tiers

    def criteria_of(self, tiers: Sequence[str]) -> str | None:
        """Return the criteria of a category: its own, or those of the nearest category above; null if it has none."""
        for end in range(len(tiers), 0, -1):
            category = self.find(tiers[:end])
            if category is not None and category.criteria is not None:
                return category.criteria
        return None

    def criteria_named(self, categories: Sequence[str], subset: str | None) -> str:
        """Return the criteria that a prompt of these tiers and this subset is judged by, from any naming."""
        tier_names = [plain_name(name) for name in categories]
        subset_names = [plain_name(subset)] if subset else []
        for name in subset_names + tier_names:
            for criterion, table in self.criteria.items():
                if name in table.names:
                    return criterion
        of_category = self.criteria_of(categories) if self.find(categories) is not None else None
        if of_category is not None:
            return of_category
        for name in tier_names + subset_names:
            criteria = self._criteria_in(name)
            if criteria is not None:
                return criteria
        return GENERAL

    def _criteria_in(self, name: str) -> str | None:
        """Return the criteria of a name: those of its category, or the first table that has one of its words."""
        tiers = self.tiers_of(name)
        if tiers is not None and (criteria := self.criteria_of(tiers)) is not None:
            return criteria
        pattern, by_word = self._words
        matches = {by_word[word] for word in pattern.findall(name)}
        return next((criterion for criterion in self.criteria if criterion in matches), None)

    @cached_property
    def _by_name(self) -> dict[str, tuple[Tiers, ...]]:
        """The tiers by key, path and names. A main category comes before others of the same name."""
        paths: dict[str, dict[Tiers, None]] = {}
        for tiers, category in _walk(self.categories):
            for name in (tiers[-1], "/".join(tiers), category.en, category.zh):
                others = paths.setdefault(plain_name(name), {})
                if not others or len(next(iter(others))) == len(tiers):
                    others[tiers] = None
        return {name: tuple(tiers) for name, tiers in paths.items()}

    @cached_property
    def _words(self) -> tuple[re.Pattern[str], dict[str, str]]:
        """The pattern of all words, longer ones first, and the criteria of each word."""
        criteria: dict[str, str] = {}
        for name, table in self.criteria.items():
            criteria |= dict.fromkeys(table.words, name)
        longest_first = sorted(criteria, key=len, reverse=True)
        # The bounds hold for Latin words alone: Chinese text has no word boundaries.
        whole = (rf"(?<![a-z0-9]){word}(?![a-z0-9])" if word.isascii() else word for word in longest_first)
        return re.compile("|".join(whole) or r"(?!)"), criteria


def parse_taxonomy(table: JsonObject, *, where: str) -> Taxonomy:
    """Return the taxonomy of a table of ``categories``, ``dimensions``, ``criteria`` and ``sources``.

    Raises ConfigError for another form, a key that is not in lower case, a name that two categories of one parent have,
    criteria that no table names, and a category of a source that is mapped to none of the taxonomy.
    """
    try:
        parsed = msgspec.convert(table, _TaxonomyFile)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"not a taxonomy: {error}", where=where, allowed="categories, dimensions, criteria, sources"
        ) from error
    criteria = parsed.criteria if where == _BUILT_IN else {**taxonomy().criteria, **parsed.criteria}
    for tiers, category in _walk(parsed.categories):
        place = f"{where}: categories.{'.below.'.join(tiers)}"
        if not _KEY.fullmatch(tiers[-1]):
            raise ConfigError(f"{tiers[-1]!r} is not a key", where=place, allowed="lower-case letters, digits and _")
        if category.criteria is not None and category.criteria not in criteria:
            problem = f"there are no criteria {category.criteria!r}"
            raise ConfigError(problem, where=place, allowed=choices(category.criteria, criteria))
        _check_names(category.below, place)
    if not parsed.categories:
        raise ConfigError("a taxonomy without categories", where=where, do="add [categories.NAME] with en and zh")
    _check_names(parsed.categories, where)
    tree = Taxonomy(parsed.categories, parsed.dimensions, criteria, parsed.sources)
    for source, mapping in parsed.sources.items():
        for path in mapping.values():
            if tree.find(path.split("/")) is None:
                allowed = choices(path, ("/".join(tiers) for tiers in tree.paths()))
                raise ConfigError(f"there is no category {path!r}", where=f"{where}: sources.{source}", allowed=allowed)
    return tree


def _check_names(categories: Mapping[str, Category], where: str) -> None:
    for language in ("en", "zh"):
        names = [plain_name(category.name(language)) for category in categories.values()]
        again = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if again is not None:
            raise ConfigError(f"two categories are named {again!r}", where=where, allowed="names that are unique")


_BUILT_IN = "taxonomy.toml"


@cache
def taxonomy() -> Taxonomy:
    """Return the taxonomy of the package."""
    return parse_taxonomy(read_data(_BUILT_IN), where=_BUILT_IN)


@cache
def read_data(name: str) -> JsonObject:
    """Return a TOML file of the package's data."""
    return tomllib.loads((files("steelyard") / "data" / name).read_text(encoding="utf-8"))


@cache
def _mappings() -> dict[str, dict[str, str]]:
    """Return the categories of each source, as paths of the taxonomy by the source's own path."""
    return {source: row.get("categories", {}) for source, row in read_data("prompt_sources.toml").items()}


def categorise(source: str, category: Sequence[str], tree: Taxonomy | None = None) -> CategorySource:
    """Return the tiers of a source's own category, from its first tier down.

    The whole path is looked up in the taxonomy's own row of the source, then in that of ``prompt_sources.toml``, then
    shorter ones, then ``*``; then the last tier as a name of the taxonomy. An unknown category stays as it is: nothing
    is guessed.
    """
    tree = tree or taxonomy()
    paths = [*("/".join(category[:end]) for end in range(len(category), 0, -1)), "*"]
    for mapping in (tree.sources.get(source, {}), _mappings().get(source, {})):
        mapped = next((mapping[path] for path in paths if path in mapping), None)
        # A user's taxonomy may lack what the package's has.
        if mapped is not None and tree.find(mapped.split("/")) is not None:
            return CategorySource(tuple(mapped.split("/")), is_known=True)
    by_name = next((tiers for name in reversed(category) if (tiers := tree.tiers_of(name)) is not None), None)
    if by_name is not None:
        return CategorySource(by_name, is_known=True)
    return CategorySource(tuple(category), is_known=False)


def _walk(categories: Mapping[str, Category], above: Tiers = ()) -> Iterator[tuple[Tiers, Category]]:
    for key, category in categories.items():
        yield (*above, key), category
        yield from _walk(category.below, (*above, key))


def plain_name(name: str) -> str:
    """Return a name in lower case, its words separated by one space."""
    return " ".join(re.split(r"[\W_]+", name.casefold())).strip()
