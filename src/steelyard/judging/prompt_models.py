"""Language models that help to prepare prompts: one screens for harm, one gives categories. Asked, or forecast."""

from collections.abc import Callable, Container, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from steelyard.core.comparison import Question
from steelyard.core.types import Case, Meta
from steelyard.io.ledger import Ledger
from steelyard.judging.forecast import Forecast
from steelyard.judging.panel import ChatChoice, build_chat, choose_chat
from steelyard.judging.prompt_questions import PromptChat, ask_about_prompts, forecast_questions
from steelyard.prompts.category_agreement import LabelledPrompt, category_agreement
from steelyard.prompts.classification import (
    NO_CATEGORY,
    Classification,
    ClassifiedPrompts,
    category_question,
    is_asked,
    read_category,
)
from steelyard.prompts.harmful import harm_question, read_harm_reply
from steelyard.prompts.selection import Selection
from steelyard.prompts.taxonomy import Taxonomy, Tiers
from steelyard.statistics.groups import prompt_names
from steelyard.translation.screening import language_bound_question, read_language_bound_reply


class PromptModels(NamedTuple):
    """The chosen language models; null where none is given. ``max_tokens`` is the longest reply."""

    harm: ChatChoice | None
    classify: ChatChoice | None
    max_tokens: int

    @classmethod
    def of(cls, *, chat: Meta, classify: Meta, max_tokens: int) -> "PromptModels":
        """Return the models of these settings. Raises ConfigError for settings of no chat."""
        return cls(
            choose_chat(chat) if chat else None,
            choose_chat(classify, where="classify") if classify else None,
            max_tokens,
        )

    def by_setting(self) -> dict[str, ChatChoice]:
        """Return the models by the names of their settings."""
        choices = {"chat": self.harm, "classify": self.classify}
        return {name: choice for name, choice in choices.items() if choice is not None}

    def inputs(self) -> dict[str, Path]:
        """Return the files among the settings by role."""
        choices = self.by_setting().items()
        return {f"{name}.{key}": path for name, choice in choices for key, path in choice.files.items()}


class Categories(NamedTuple):
    """The taxonomy, whether a user gave it, and the prompts whose category people know, with how many have none."""

    tree: Taxonomy
    is_own: bool
    people: tuple[tuple[Case, Tiers], ...]
    num_unlabelled: int


class ModelQuestions(NamedTuple):
    """The questions to the models about the prompts that ``read`` yields; ``which`` of them get a category.

    With ``asks_language`` the model that screens for harm is also asked what of English a prompt depends on.
    """

    read: Callable[[], Iterator[Case]]
    models: PromptModels
    categories: Categories
    which: ClassifiedPrompts
    asks_language: bool

    def harm(self, ledger: Ledger, *, allow_failed: bool) -> dict[int, str | None]:
        """Ask which prompts are harmful, and return the answers by place; none without a model."""
        if self.models.harm is None:
            return {}
        chat = self._chat(self.models.harm)
        replies = ask_about_prompts(chat, self._harm_questions, ledger, allow_failed=allow_failed)
        return dict(enumerate(map(read_harm_reply, replies)))

    def language_bound(self, ledger: Ledger, *, allow_failed: bool) -> dict[int, str | None]:
        """Ask what of English the prompts depend on, and return the answers by place; none without a model."""
        if self.models.harm is None or not self.asks_language:
            return {}
        chat = self._chat(self.models.harm)
        replies = ask_about_prompts(chat, self._language_questions, ledger, allow_failed=allow_failed)
        return dict(enumerate(map(read_language_bound_reply, replies)))

    def classify(
        self, selection: Selection, ledger: Ledger, *, allow_failed: bool, seed: int
    ) -> tuple[dict[int, Tiers], Classification | None]:
        """Ask for categories, give them to the selection, and return them by place, with their counts and agreement."""
        if self.models.classify is None:
            return {}, None
        chat, places = self._chat(self.models.classify), self._asked_places(selection)
        questions = partial(self._category_questions, frozenset(places))
        replies = ask_about_prompts(chat, questions, ledger, allow_failed=allow_failed)
        answers = (read_category(reply, self.categories.tree) for reply in replies)
        labelled = [LabelledPrompt(prompt_names(case), tiers, next(answers)) for case, tiers in self.categories.people]
        read = dict(zip(places, answers, strict=True))
        for place, tiers in read.items():
            selection.assign(place, tiers)
        agreement = category_agreement(labelled, num_unlabelled=self.categories.num_unlabelled, seed=seed)
        categories = {place: tiers for place, tiers in read.items() if tiers}
        classification = Classification(
            chat=chat.name,
            num_asked=len(places),
            num_assigned=len(categories),
            num_none=sum(tiers == NO_CATEGORY for tiers in read.values()),
            num_unparsed=sum(tiers is None for tiers in read.values()),
            agreement=agreement if labelled else None,
        )
        return categories, classification

    def forecasts(self, selection: Selection, ledger: Ledger | None) -> Iterator[Forecast]:
        """Yield what each model would be asked, the one for harm first."""
        if self.models.harm is not None:
            yield forecast_questions(self._chat(self.models.harm), self._harm_questions, ledger)
            if self.asks_language:
                yield forecast_questions(self._chat(self.models.harm), self._language_questions, ledger)
        if self.models.classify is not None:
            questions = partial(self._category_questions, frozenset(self._asked_places(selection)))
            yield forecast_questions(self._chat(self.models.classify), questions, ledger)

    def _chat(self, choice: ChatChoice) -> PromptChat:
        return PromptChat(build_chat(choice), self.models.max_tokens)

    def _harm_questions(self) -> Iterator[Question]:
        for case in self.read():
            yield harm_question(_user_turns(case), max_tokens=self.models.max_tokens)

    def _language_questions(self) -> Iterator[Question]:
        for case in self.read():
            yield language_bound_question(_user_turns(case), max_tokens=self.models.max_tokens)

    def _category_questions(self, places: Container[int]) -> Iterator[Question]:
        """Yield the questions about the prompts of people's sample, then about those at the places."""
        sample = (case for case, _ in self.categories.people)
        of_places = (case for place, case in enumerate(self.read()) if place in places)
        for case in chain(sample, of_places):
            yield category_question(case.prompt.messages, self.categories.tree, max_tokens=self.models.max_tokens)

    def _asked_places(self, selection: Selection) -> list[int]:
        """Return the places of the prompts that stay and need a category by the language model."""
        return [
            place
            for place, case in enumerate(self.read())
            if place not in selection.dropped and is_asked(case.prompt, self.categories.tree, self.which)
        ]


def _user_turns(case: Case) -> list[str]:
    return [message.content for message in case.prompt.messages if message.role == "user"]
