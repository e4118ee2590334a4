"""The statements of a benchmark's record in the words of the page: what its headline is the mean of, and what it lacks.

A record has these texts in English, for the terminal and for later versions. The page shows them in both languages:
``templates/sections/bench_texts.toml`` has their words. The text of a benchmark from elsewhere is shown as it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from steelyard.evaluation.coverage import Coverage
from steelyard.evaluation.tables import Grouped, Panel, count, language_word, percent, table, word
from steelyard.report.missing_verdicts import text_key
from steelyard.report.page import COLON, COMMA, first_names

_MOST_LANGUAGES = 6
_OPEN, _CLOSE = word("bracket_open", " ("), word("bracket_close", ")")
_PHRASES: dict[str, Callable[[re.Match[str]], str]] = {
    r"([\d,]+) prompts, expected ([\d,]+)": lambda found: (
        f"{found[1]}{word('lacks_prompts', ' prompts, expected ')}{found[2]}"
    ),
    r"\b1 prompt, expected ([\d,]+)": lambda found: f"{word('lacks_one_prompt', '1 prompt, expected ')}{found[1]}",
    r"([\d,]+) subsets incomplete": lambda found: f"{found[1]}{word('lacks_subsets', ' subsets incomplete')}",
    r"\b1 subset incomplete": lambda found: word("lacks_one_subset", "1 subset incomplete"),
    r",? and ([\d,]+) more": lambda found: f"{word('lacks_and', ' and ')}{found[1]}{word('lacks_more', ' more')}",
    "no cases of it|most pairs have no score or verdict|evaluated by an earlier version; evaluate it again": (
        lambda found: word(f"lacks_{text_key(found[0])}", found[0])
    ),
}
"""The reasons for which a benchmark has no headline, and their words; numbers and names in them stay."""
_FACT = re.compile(r"(.+) \((family|model) (.*)\)", re.DOTALL)


def headline_word(about: str) -> str:
    """Return what a headline is the mean of (`Headline.about`)."""
    return word(f"about_{text_key(about)}", about)


def reason_words(why: str) -> str:
    """Return why a part or a headline is missing (`missing_parts`, `what_lacks`)."""
    for pattern, shown in _PHRASES.items():
        why = re.sub(pattern, shown, why)
    return why


def missing_panels(missing: Mapping[str, str]) -> Iterator[Panel]:
    """Yield the missing parts of a benchmark with the reasons, where there are any."""
    if missing:
        rows = table(("part", "n"), [(name, reason_words(why)) for name, why in missing.items()])
        yield Panel(word("missing_of_bench"), None, (Grouped("", rows),))


def missing_words(missing: Mapping[str, str]) -> str:
    """Return the first missing parts of a benchmark, each with the reason, and how many more there are."""
    return first_names([f"{name}{_OPEN}{reason_words(why)}{_CLOSE}" for name, why in missing.items()])


def fact_words(fact: str) -> str:
    """Return the title of a setting that differs between evaluations, with the family or the model that it is of."""
    parts = _FACT.fullmatch(fact)
    if parts is None:
        return fact
    name, of, owner = parts.groups()
    return f"{name} \N{MIDDLE DOT} {word(f'fact_{of}', of)} {owner}"


def coverage_words(coverage: Coverage) -> str:
    """Return how many responses were cut and how many have no score, by language; or that all were read whole."""
    return word("list_comma", "; ").join(_coverage_parts(coverage)) or word("read_whole")


def _coverage_parts(coverage: Coverage) -> Iterator[str]:
    numbers = {"share_cut": coverage.num_cut, "share_unscored": coverage.num_unscored}
    for place, (key, number) in enumerate(numbers.items()):
        if not number:
            continue
        shares = {language: counts.shares[place] for language, counts in coverage.by_language.items()}
        highest = sorted(shares.items(), key=lambda item: -item[1])[:_MOST_LANGUAGES]
        languages = COMMA.join(f"{language_word(name)} {percent(share)}" for name, share in highest if share)
        total = coverage.num_responses
        of_all = COMMA.join([percent(number / total), *([languages] if len(shares) > 1 else [])])
        yield f"{word(key)}{COLON}{count(number)} / {count(total)}{_OPEN}{of_all}{_CLOSE}"
