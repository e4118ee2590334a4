"""A translator, chosen and built: a chat of any kind, the languages, and the requests for each item of a bench."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from steelyard.core.errors import ConfigError
from steelyard.core.languages import english_name, language_key, language_named, nearest_languages
from steelyard.core.protocols import TranslationEngine
from steelyard.core.remedies import CODE, KIND, NUMBER, Advice, Remedy
from steelyard.core.types import Case, JsonObject, Meta
from steelyard.judging.asking import PricedChat
from steelyard.judging.panel import ChatChoice, asked_settings, build_chat, choose_chat
from steelyard.judging.token_use import AnyPrice
from steelyard.translation.characters import check_characters
from steelyard.translation.items import ItemText, is_of_subsets, item_texts
from steelyard.translation.passages import Passage, PassagePair
from steelyard.translation.requests import TranslationRules
from steelyard.translation.wording import (
    TargetLanguage,
    check_frame,
    check_language,
    check_leftovers,
    identified_languages,
)

_CODE = re.compile(r"[A-Za-z0-9]+(?:[-_@][A-Za-z0-9]+)*")
_SEVERAL = re.compile(r"[A-Za-z][;,./|+\s]+[A-Za-z]")


class TranslatorChoice(NamedTuple):
    """A translator's settings, checked, with the languages that it translates between; nothing is built or sent."""

    chat: ChatChoice
    price: AnyPrice | None
    source: str
    targets: tuple[str, ...]

    @classmethod
    def of(cls, chat: Meta, price: AnyPrice | None, source: str | None, targets: Sequence[str]) -> "TranslatorChoice":
        """Return the choice of these settings.

        Raises ConfigError for settings of no chat, for no target, and for one that is unknown, named twice or the
        source.
        """
        from_code = source or "en"
        check_languages(from_code, targets)
        if not chat:
            do = Advice("name its kind: ", Remedy("chat.kind", KIND))
            raise ConfigError("no translator is chosen", where="chat", do=do)
        return cls(choose_chat(chat), price, from_code, tuple(targets))

    def settings(self) -> JsonObject:
        """Return the settings of the chat that decide its replies."""
        return asked_settings(self.chat.settings)

    def inputs(self) -> dict[str, Path]:
        """Return the files among the settings by role."""
        return {f"chat.{key}": path for key, path in self.chat.files.items()}

    def check_has_paid_tokens(self) -> None:
        """Raise ConfigError for a ceiling of cost on a program that translates: its replies have no price by tokens."""
        if isinstance(build_chat(self.chat), TranslationEngine):
            problem = f"{self.chat.settings['kind']} has no price by tokens"
            do = Advice("leave out ", Remedy("max_cost"), ", or limit the time: ", Remedy("max_hours", NUMBER))
            raise ConfigError(problem, where="max_cost", do=do)

    def build(
        self,
        max_tokens: int,
        max_characters: int,
        *,
        prompt_only: tuple[str, ...],
        present: frozenset[tuple[str, str]],
    ) -> "Translation":
        """Build the translator. Raises ConfigError for languages that it does not have, ModelError as `build_chat`."""
        chat = build_chat(self.chat)
        if isinstance(chat, TranslationEngine):
            for target in self.targets:
                chat.check_languages(self.source, target)
        model = PricedChat(chat.name, chat, self.price)
        return Translation(
            model, self.source, self.targets, max_tokens, max_characters, prompt_only, present, ExaminedReplies()
        )


def check_languages(source: str, targets: Sequence[str]) -> None:
    """Raise ConfigError for no language, one that is unknown or named twice, and for the source itself."""
    if not targets:
        raise ConfigError("no language to translate into", where="to", do=Advice("name them: ", Remedy("to", CODE)))
    seen: dict[str, str] = {}
    for code, where in ((source, "source"), *((target, "to") for target in targets)):
        if english_name(code) is None or not (_CODE.fullmatch(code) or language_named(code)):
            allowed = f"codes such as {', '.join(nearest_languages(code))}, zh-Hans, arb_Arab"
            do = "write several with commas, without blanks" if _SEVERAL.search(code) else None
            raise ConfigError(f"{code!r} is no known language", where=where, allowed=allowed, do=do)
        key = language_key(code)
        if key in seen:
            problem = (
                f"{code!r} is named twice" if seen[key] == code else f"{seen[key]!r} and {code!r} are one language"
            )
            raise ConfigError(problem, where=where, do="name each language once, and not the one of the sources")
        seen[key] = code


class Translation(NamedTuple):
    """A translator and its work: the languages, the limits of a request, and the subsets with responses of code.

    ``present`` are the items, by prompt and identity of the language, that are translated already.
    """

    model: PricedChat
    source: str
    targets: tuple[str, ...]
    max_tokens: int
    max_characters: int
    prompt_only: tuple[str, ...]
    present: frozenset[tuple[str, str]]
    examined: "ExaminedReplies"

    @property
    def is_engine(self) -> bool:
        """True for a translator that reads texts alone, and no instructions."""
        return isinstance(self.model.chat, TranslationEngine)

    def jobs(self, case: Case) -> Iterator[tuple[str, tuple[ItemText, ...], TranslationRules]]:
        """Yield the translations of a case that are missing: language, texts, and the rules of the requests."""
        texts = item_texts(case, is_prompt_only=is_of_subsets(case, self.prompt_only))
        for target in self.targets:
            if (case.prompt.id, language_key(target)) not in self.present:
                languages = self.source, target
                examine = partial(self.examined.problem, languages)
                rules = TranslationRules(*languages, self.is_engine, self.max_tokens, self.max_characters, examine)
                yield target, texts, rules


class ExaminedReplies:
    """Why texts cannot be translations: in another language, left as they were, answers, framed, or broken characters.

    What was found is kept by the hash of both texts, since each is examined in every round.
    """

    def __init__(self) -> None:
        self._problems: dict[int, str | None] = {}
        self._identifies = True

    def problem(self, languages: tuple[str, str], source: str, translated: str) -> str | None:
        """Return the problem of a translation between two languages; null if there is none."""
        place = hash((languages, source, translated))
        if place not in self._problems:
            pair = PassagePair(Passage("", source, languages[0]), Passage("", translated, languages[1]))
            checks = {
                "not translated": check_language(pair, self._language(pair.target)),
                "answered": check_leftovers(pair),
                "framed": check_frame(pair),
                "characters": check_characters(pair),
            }
            self._problems[place] = next(
                (name for name, findings in checks.items() if any(True for _ in findings)), None
            )
        return self._problems[place]

    def _language(self, passage: Passage) -> TargetLanguage | None:
        """Return the identified language; null without the extra ``multilingual``, where scripts decide alone."""
        if not self._identifies:
            return None
        try:
            (language,) = identified_languages([passage.prose])
        except ModuleNotFoundError:
            self._identifies = False
            return None
        return language
