"""Names of columns as they are compared: of published tables, and those that a language makes of a noun and a side."""

import re
import unicodedata
from functools import cache
from itertools import product

from steelyard.core.types import JsonObject
from steelyard.prompts.taxonomy import read_data

_VOWEL_SIGNS = re.compile("[\u0640\u064b-\u065f\u0670]")
"""The vowel signs of Arabic and its tatweel, with which a name of a column may be written."""
_SPELLINGS = str.maketrans("أإآٱىةئؤ", "اااايهيو")
"""Letters of Arabic that many write without their hamza and dots."""

PUBLISHED_TABLES: tuple[JsonObject, ...] = (
    # compar:IA, after utils/schemas/votes.sql of betagouv/ComparIA: the prompt is inside both conversations.
    {"prompt_column": [], "first_column": "conversation_a", "second_column": "conversation_b",
     "label_column": "chosen_model_name", "tie_column": "both_equal",
     "author_column": ["model_a_name", "model_b_name"], "judge_column": "visitor_id", "time_column": "timestamp"},
    # Arena 55k of LMSYS: lists of turns as JSON text, and a column of 0 and 1 for each vote.
    {"prompt_column": ["prompt"], "first_column": "response_a", "second_column": "response_b",
     "label_column": ["winner_model_a", "winner_model_b"], "tie_column": "winner_tie",
     "author_column": ["model_a", "model_b"]},
    # OpenAI's comparisons of summaries (openai/summarize_from_feedback): choice counts from 0.
    {"prompt_column": ["info.post", "info.article"], "first_column": "summaries.0.text",
     "second_column": "summaries.1.text", "label_column": "choice", "labels": {"0": "left", "1": "right"},
     "author_column": ["summaries.0.policy", "summaries.1.policy"], "judge_column": "worker", "batch_column": "batch"},
    # OpenAI's ratings of one summary each, beside those comparisons.
    {"prompt_column": ["info.post", "info.article"], "response_column": "summary.text",
     "rating_column": "summary.axes.overall", "author_column": "summary.policy", "judge_column": "worker"},
    # SHP of Stanford: 1 is the first answer, 0 the second.
    {"prompt_column": ["history"], "first_column": "human_ref_A", "second_column": "human_ref_B",
     "label_column": "labels", "labels": {"1": "left", "0": "right"}},
    {"prompt_column": ["question.full_text"], "response_column": ["answer_0", "answer_1"],
     "rating_column": ["score_0", "score_1"]},  # OpenAI's webgpt_comparisons: scores from -1 to 1
    # The rows of OpenAI's preference fine-tuning.
    {"prompt_column": ["input.messages"], "chosen_column": "preferred_output",
     "rejected_column": "non_preferred_output"},
    # ms-swift's rows of a query, beside those of messages.
    {"prompt_column": ["query"], "chosen_column": "response", "rejected_column": "rejected_response"},
    # HelpSteer3's pairs of edits.
    {"prompt_column": ["context"], "chosen_column": "good_edited_response", "rejected_column": "bad_edited_response",
     "language_column": "language", "category_column": "domain"},
    # Prometheus' Preference and Feedback Collection: ``instruction`` is the request to the judge.
    {"prompt_column": ["orig_instruction"], "first_column": "orig_response_A", "second_column": "orig_response_B",
     "label_column": "orig_preference", "reference_column": "orig_reference_answer", "judge_kind": "llm"},
    {"prompt_column": ["orig_instruction"], "response_column": "orig_response", "rating_column": "orig_score",
     "reference_column": "orig_reference_answer", "judge_kind": "llm"},
    # Prodigy's recipe compare: two outputs as accept and reject, in random order; the answer names the better one.
    *({"prompt_column": ["input.text"], "first_column": "accept.text", "second_column": "reject.text",
       "label_column": "answer", "labels": {"accept": "left", "reject": "right", "ignore": "none"}, **judge}
      for judge in ({"judge_column": "_session_id"}, {})),
)  # fmt: skip
"""Published tables whose columns or labels tell less than their authors do, as settings of the format ``columns``."""


def column_word(name: str) -> str:
    """Return the name of a column for comparison: in lower case, without signs that many leave out."""
    word = _VOWEL_SIGNS.sub("", unicodedata.normalize("NFKC", name))
    return " ".join(word.casefold().translate(_SPELLINGS).split())


def column_words(*names: str) -> tuple[str, ...]:
    """Return names for comparison."""
    return tuple(map(column_word, names))


@cache
def pair_names() -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the names of a better and a worse answer: those of texts, and those that may be of models."""
    sure: list[tuple[str, ...]] = []
    doubtful: list[tuple[str, ...]] = []
    for words in read_data("column_names.toml").values():
        sure += [column_words(*side) for side in words["sides"]]
        doubtful += [column_words(*side) for side in words["models"]]
        marks = (*words["sides"], *words.get("initials", ()), *words["models"])
        for noun, join, (better, worse) in product(words["nouns"], words["joins"], marks):
            sure.append(column_words(f"{better}{join}{noun}", f"{worse}{join}{noun}"))
            sure.append(column_words(f"{noun}{join}{better}", f"{noun}{join}{worse}"))
    return sure, doubtful


@cache
def ordered_names() -> tuple[tuple[str, ...], ...]:
    """Return the names of the first, the second and further answers, by an ordinal number before or behind the noun."""
    names: dict[tuple[str, ...], None] = {}
    for words in read_data("column_names.toml").values():
        joins = dict.fromkeys((*words["joins"], " ", "_"))
        for noun, join, ordinals in product(words["nouns"], joins, words["ordinals"]):
            names[column_words(*(f"{ordinal}{join}{noun}" for ordinal in ordinals))] = None
            names[column_words(*(f"{noun}{join}{ordinal}" for ordinal in ordinals))] = None
    return tuple(names)
