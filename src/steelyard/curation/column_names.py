"""Names that columns have in tables of preference data, and a guess of a table's columns by names and cells.

The guess is made once, before the rows are read: what it finds becomes explicit settings, which the record of the
conversion holds and the user can name instead.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, takewhile
from typing import Any

from steelyard.core.types import JsonObject
from steelyard.curation.answer_names import PUBLISHED_TABLES, column_word, column_words, ordered_names, pair_names
from steelyard.curation.nested_columns import has_column, rows_of_items
from steelyard.curation.verdict_labels import LABELS, choice_of, label_word, named_side, only_label

_PROMPTS = column_words(
    "prompt", "question", "query", "instruction", "input", "user_prompt", "user_input", "problem", "frage", "pregunta",
    "pergunta", "domanda", "вопрос", "سؤال", "प्रश्न", "問題", "質問", "질문", "问题", "提示", "提示词", "指令",
    "题目", "题干", "提问", "السؤال", "user_message", "user_query",
)  # fmt: skip
_CONVERSATIONS = ("messages", "conversation", "dialogue", "dialog", "history", "trajectory")
"""Names of prompts that are turns."""
_DOUBTFUL = ("user", "human", "context", "request", "task", "post")
"""Names of prompts, or of a person, a passage beside a question, or a kind of task."""
_OF_PEOPLE = ("user", "human", "task")
"""Those whose cells can be short names."""
_OF_ROWS = re.compile(
    r"(?:^|_)(?:id|ids|hash|url|link|date|time|source|model|dataset|subset|split|type|kind|category|lang\w*|system\w*|"
    r"note\w*|comment\w*|reason\w*|explanation|rationale|licen[cs]e|name|tags?|title|meta\w*|author|domain|topic)$"
)
"""Names of fields other than prompts."""
_LONG_NAME = 24
_SENTENCE_ENDS = (".", "?", "!", "。", "？", "！", "؟", "।")
_EXTRA = ("instruction", "input")
"""The two columns that are one prompt together, after Alpaca."""
_HISTORIES = ("history", "chat_history", "previous_turns", "历史", "对话历史")
_SYSTEMS = ("system", "system_prompt", "system_message")
_ANSWERS = column_words(
    "answer", "response", "output", "completion", "reply", "generation", "text", "candidate", "assistant", "回答",
    "答案", "antwort", "respuesta", "resposta", "réponse", "risposta", "ответ", "جواب", "إجابة", "الجواب", "الإجابة",
    "उत्तर", "답변", "回复", "رد", "الرد",
)  # fmt: skip
LISTS = ("responses", "completions", "outputs", "candidates", "generations", "samples", "replies")
_LABELS = column_words(
    "winner", "preference", "preferred", "label", "labels", "choice", "verdict", "vote", "better", "comparison",
    "judgment", "judgement", "decision", "selected", "human_preference", "更好", "胜者", "偏好", "标签", "结果",
    "besser", "mejor", "melhor", "meilleur", "migliore", "лучше", "кто лучше", "лучший ответ", "победитель", "الأفضل",
    "gold", "बेहतर", "良い", "勝者", "勝った方",
)  # fmt: skip
_SCORES = column_words(
    "score", "scores", "rating", "ratings", "reward", "rewards", "grade", "bewertung", "punkte", "点数", "評点", "得分",
    "评分", "التقييم", "الدرجة", "점수",
)  # fmt: skip
_RANKS = column_words(
    "rank", "ranks", "ranking", "rankings", "position", "排名", "名次", "排序", "順位", "순위", "الترتيب"
)
_RATINGS = (*_SCORES, *_RANKS)
ANNOTATORS = column_words(
    "annotator", "judge", "annotator_id", "judge_id", "annotator_name", "worker", "worker_id", "workerid", "rater",
    "rater_id", "labeler", "labeller", "completed_by", "evaluator", "reviewer", "标注员", "标注人", "标注者", "评审",
    "評価者", "평가자", "المقيم", "anotador", "annotateur", "аннотатор", "разметчик", "эксперт", "prüfer", "bewerter",
)  # fmt: skip
"""Names of columns of those who judged."""
_JUDGES = (*ANNOTATORS, "user", "user_id", "username", "who", "wer")
ASPECTS = re.compile(r"overall|help|harm|safe|accura|correct|fluen|quality|style|relevan|coheren|complex|verbos|truth|"
                      r"factual|clarity|creativ|informative|concise|总体|有用|安全|质量|流畅|准确")  # fmt: skip
"""Parts of names of what is judged; columns of labels under other names are those of people."""
_TIMES = ("time", "timestamp", "tstamp", "created_at", "submitted_at")
_BATCHES = ("batch", "batch_id")
_AUTHORS = ("model", "model_name", "generator", "author", "model_id", "models", "模型", "modell", "modelo", "modèle")
_LANGUAGES, _IDS = ("language", "lang"), ("prompt_id", "id")
_CATEGORIES = column_words(
    "category", "类别", "分类", "カテゴリ", "카테고리", "kategorie", "categoría", "categoria", "catégorie", "категория",
    "الفئة", "التصنيف", "श्रेणी",
)  # fmt: skip
_ENDS = tuple(column_words(*ends) for ends in (
    tuple("abcdefgh"), tuple("123456789"), tuple("0123456789"), ("left", "right"), ("first", "second"), ("甲", "乙"),
    tuple("абвг"), tuple("أبج"), ("الأول", "الثاني", "الثالث", "الرابع", "الخامس"), ("左", "右"), tuple("一二三四五"),
))  # fmt: skip
_REFERENCES = ("reference", "reference_answer", "ground_truth", "gold_answer")
_OF_REFERENCES = re.compile(r"best|gold|correct|reference|ideal|正确|最佳|标准|参考|正解|模範|эталон|صحيح|सही|정답")
"""Parts of names of answers that others are compared with."""
_BEST_OF = ("prompt", "scores", "sampled_conflict_pairs", "response_1")
"""The columns of PPE's best-of-k sets (lmarena-ai): answers from ``response_1`` on, and a list of their scores."""
_OTHERS = ("turn", "turns", "split", "source", "subset", "difficulty", "seed", "index")
_DIGITS = {"0", "1", "2", "3"}
_GRADE = re.compile(r"[+-]?(?:\d|10)")
"""A cell with a whole number of a scale: up to ten, also below zero."""
_SHORT_LABEL, _MOST_LABELS = 24, 6


def prompt_name(row: JsonObject) -> str | None:
    """Return the field that has a name of prompts, and a text or turns; null without one."""
    words = {column_word(name): name for name, value in row.items() if _is_answer(value)}
    open_words = {word: name for word, name in words.items() if _is_open(row[name])}
    sure = ((word, words) for word in _PROMPTS), ((word, open_words) for word in _CONVERSATIONS)
    doubtful = ((word, words) for word in _DOUBTFUL)
    return next((names[word] for word, names in chain(*sure, doubtful) if word in names), None)


def may_hold_prompt(row: JsonObject, sides: Collection[str]) -> bool:
    """Return whether a field beside two answers could be their prompt: a text of several words under no known name."""
    return any(_is_prose(name, value) for name, value in row.items() if name not in sides)


def _is_prose(name: str, value: Any) -> bool:
    """Return whether a cell reads as a sentence, under a name that may be a prompt's."""
    text = value.strip() if isinstance(value, str) else ""
    # A long word of Latin letters is a hash or an address.
    is_long = len(text) > _LONG_NAME and not text.isascii()
    is_sentence = any(map(str.isspace, text)) or is_long or text.endswith(_SENTENCE_ENDS)
    return is_sentence and not _OF_ROWS.search(name.casefold())


class ColumnGuess:
    """The columns of a table: those that the settings name, and those that its names and first rows tell.

    ``settings`` are those of the format ``columns``.
    """

    def __init__(self, rows: Sequence[JsonObject], settings: JsonObject) -> None:
        labels = {name for name in chain.from_iterable(rows) if column_word(name) in _LABELS}
        self._rows = [row | {name: only_label(row[name]) for name in labels & row.keys()} for row in rows]
        if annotations := _annotation_columns(self._rows):
            self._rows = [each for row in self._rows for each in rows_of_items(row, annotations.values())]
        names = list(dict.fromkeys(chain.from_iterable(self._rows)))
        self._by_word = annotations | {column_word(name): name for name in reversed(names) if name not in annotations}
        self.settings: JsonObject = dict(settings)

    def complete(self) -> bool:
        """Add the columns that names tell without doubt; return whether answers and their prompt have columns."""
        names = set(self.settings)
        is_named = self._has_answers()
        if not is_named:
            self._add_answers()
            # A prompt that is named alone is a table of prompts, also with one answer beside it.
            if "prompt_column" in names:
                self.settings.pop("response_column", None)
        if not self._has_answers():
            return False
        self._add_prompt()
        self._add_parts(is_named=is_named)
        return "prompt_column" in self.settings

    def suggest(self) -> None:
        """Add the columns that names and cells make likely, for a command that the user checks.

        Labels of 0 and 1 get a meaning: as the columns are numbered, else 1 for the first answer; beside 2, 0 is a tie.
        So do numbers on both sides of 0: those below for the first answer.
        """
        self._add_prompt()
        if not self._has_answers():
            self._add_answers(is_sure=False)
        self._add_ratings()
        judges = self.settings.get("judge_column")
        labels = [label] if (label := self.settings.get("label_column")) else judges if isinstance(judges, list) else ()
        if labels and "first_column" in self.settings:
            values = {str(row.get(name)) for row in self._rows for name in labels}
            if "0" in values and values <= {"0", "1"}:
                from_zero = str(self.settings["first_column"]).endswith("0")
                self.settings["labels"] = {"0": "left", "1": "right"} if from_zero else {"1": "left", "0": "right"}
            elif "0" in values and values <= {"0", "1", "2"}:
                self.settings["labels"] = {"0": "tie", "1": "left", "2": "right"}
            elif any(re.fullmatch(r"-\d+", value) for value in values):
                signs = ((value, -1 if value.startswith("-") else value != "0") for value in sorted(values))
                sides = {-1: "left", False: "tie", True: "right"}
                self.settings["labels"] = {value: sides[sign] for value, sign in signs if re.fullmatch(r"-?\d+", value)}
        if "label_column" in self.settings or "rating_column" in self.settings:
            self._add("judge_column", _JUDGES, _is_name)
        self._suggest_prompt()

    def _suggest_prompt(self) -> None:
        """Add a column that may be the prompt, unless any of several texts could be an answer."""
        texts = [name for name in self._free(_is_text) if not _OF_ROWS.search(name.casefold())]
        texts = [name for name in texts if column_word(name) not in (*_JUDGES, *_TIMES, *_LABELS, *_AUTHORS)]
        if not self._has_answers():
            # Names of models and scores are no prompts.
            texts = [n for n in texts if any(_is_prose(n, r.get(n)) or not str(r.get(n)).isascii() for r in self._rows)]
        turns = self._first((*_CONVERSATIONS, "conversations"), _is_answer)
        if "prompt_column" not in self.settings and turns:
            self.settings["prompt_column"] = turns
        elif "prompt_column" not in self.settings and texts:
            self.settings["prompt_column"] = max(
                texts, key=lambda name: (any(word in column_word(name) for word in _PROMPTS), self._mean_length(name))
            )
        elif self.settings.keys() == {"prompt_column"} and len(texts) > 1:
            # Which of the texts are answers is not known: without them, the table would be prompts alone.
            self.settings.clear()
        if "prompt_column" not in self.settings and "response_column" in self.settings:
            self.settings["prompt_column"] = self.settings.pop("response_column")

    def _add_ratings(self) -> None:
        if "response_column" not in self.settings:
            return
        columns = self.settings["response_column"]
        scores = [group for stem, group in self._groups().items() if stem in _SCORES and len(group) == len(columns)]
        if isinstance(columns, list) and scores:
            self.settings.setdefault("rating_column", scores[0])
        self._add("rating_column", (*_SCORES, "quality"), lambda value: isinstance(value, str | int | float | list))
        is_rated = isinstance(columns, list) or "rating_column" in self.settings
        if judges := [] if is_rated else self._annotators(_is_number):
            self.settings["judge_column"] = judges
        ranks = self._first(_RANKS, lambda value: isinstance(value, int | list) or str(value).strip().isdecimal())
        if ranks and not {"rating_column", "judge_column"} & self.settings.keys():
            self.settings |= {"rating_column": ranks, "lower_is_better": True}

    def _has_answers(self) -> bool:
        keys = ("chosen_column", "rejected_column", "first_column", "second_column", "label_column", "response_column")
        return any(self.settings.get(key) for key in keys)

    def _add_answers(self, *, is_sure: bool = True) -> None:
        """Add the columns of the answers: of pairs, of labelled pairs, or of answers alone."""
        if published := self._published():
            self.settings.update(published)
            return
        free = set(self._free(_is_answer))
        numbers = self._free(_is_number)
        pairs = set(self._free(lambda value: _is_answer(value) or isinstance(value, list)))
        # Beside answers, winner and loser are names of models.
        are_texts = not is_sure and not any(stem in _ANSWERS for stem in self._groups())
        sure, doubtful = pair_names()
        for better, worse in (*sure, *(doubtful if are_texts else ())):
            columns = [self._by_word.get(word) for word in (better, worse)]
            if pairs.issuperset(columns):
                self.settings.update(chosen_column=columns[0], rejected_column=columns[1])
                return
        groups = [
            group
            for stem, group in sorted(self._groups().items(), key=lambda item: item[0] not in ("", *_ANSWERS))
            if free.issuperset(group)
            and (stem in ("", *_ANSWERS) or not (is_sure or stem in (*_AUTHORS, *_RATINGS) or {*group} <= {*numbers}))
        ]
        pair = next((group for group in groups if len(group) == 2), None)
        judges = (
            []
            if is_sure
            else self._annotators(lambda cell: bool(_GRADE.fullmatch(cell) or choice_of(cell, pair or ())))
        )
        scores = {
            name for stem, group in self._groups().items() if stem in _SCORES and len(group) == 2 for name in group
        }
        judges = [name for name in judges if name not in {*(pair or ()), *scores}]
        if pair is not None and (label := judges or self._label(pair, is_sure=is_sure)):
            self.settings.update(first_column=pair[0], second_column=pair[1])
            self.settings["judge_column" if judges else "label_column"] = label
            return
        if is_sure and self._may_hold_evidence():
            return
        single = self._first(_ANSWERS, _is_answer)
        if groups:
            # Best_Answer1 and on, beside a model's answer, are what it is compared with.
            are_references = not is_sure and bool(_OF_REFERENCES.search(groups[0][0].casefold()))
            self.settings["response_column"] = single if are_references and single else groups[0]
        elif lists := self._first((*LISTS, *(() if is_sure else ("answers",))), _is_list):
            self.settings["response_column"] = lists
        elif single and (self._first(_AUTHORS, _is_text) or not is_sure):
            self.settings["response_column"] = single

    def _published(self) -> JsonObject | None:
        """Return the settings of the published table that has these columns."""
        for known in PUBLISHED_TABLES:
            columns = (value for key, value in known.items() if key.endswith("_column"))
            wanted, *others = ([value] if isinstance(value, str) else value for value in columns)
            # Of several columns of prompts, as of posts and of articles, a file may have one.
            prompts = [name for name in wanted if has_column(self._rows, name)]
            if bool(prompts) == bool(wanted) and all(
                has_column(self._rows, name) for name in chain.from_iterable(others)
            ):
                return known | {"prompt_column": prompts}
        if not all(has_column(self._rows, name) for name in _BEST_OF):
            return None
        return {"response_column": self._groups()["response"], "rating_column": "scores"}

    def _may_hold_evidence(self) -> bool:
        """Return whether a column beside answers could hold a verdict or a rating, by its name or its cells."""
        names = [name for name in self._by_word if any(word in name for word in (*_LABELS, *_RATINGS, "annotat"))]
        objects = self._free(lambda value: isinstance(value, dict) and not _is_turn(value))
        known = {*_LANGUAGES, *_CATEGORIES, *_IDS, *_OTHERS}
        labels = [name for name in self._free(_is_label) if column_word(name) not in known]
        cells = [{str(row.get(name) or "").strip().casefold() for row in self._rows} - {""} for name in labels]
        # Two columns or more of grades, as of seven points, are those of annotators.
        num_graded = sum(all(map(_GRADE.fullmatch, values)) for values in cells)
        return bool(names or objects or num_graded > 1 or any(values <= LABELS.keys() | _DIGITS for values in cells))

    def _label(self, pair: Sequence[str], *, is_sure: bool) -> str | None:
        """Return the column whose cells are labels."""
        models = [name for group in self._groups().values() for name in group]
        labels = self.settings.get("labels")
        words = (str(label).casefold() for label in (labels if isinstance(labels, dict) else ()))
        known = {*LABELS, *words, *(name.casefold() for name in pair)}
        chosen = {
            f"{name}.choices.0": {row[name]["choices"][0] for row in self._rows if row.get(name)}
            for name in ([] if is_sure else self._free(_is_choice))
        }
        if chosen:
            # Of several questions, the one on the two answers.
            verdicts = {name: sum(choice_of(cell, pair) is not None for cell in chosen[name]) for name in chosen}
            return max(verdicts, key=verdicts.__getitem__)
        for name in filter(None, map(self._by_word.get, _LABELS)):
            cells = [row[name] for row in self._rows if row.get(name) not in (None, "")]
            is_known = all(
                label_word(str(cell)) in known
                or str(cell).strip().casefold() in known
                or named_side(str(cell), pair)
                or any(row.get(model) == cell for row in self._rows for model in models)
                for cell in cells
            )
            if name not in pair and (is_known or not is_sure):
                return name
        # Cells that are the names of both columns are labels in any column.
        labels = [name for name in self._free(_is_label) if name not in pair and not _OF_ROWS.search(name.casefold())]
        cells = {name: {str(row.get(name) or "").strip() for row in self._rows} - {""} for name in labels}
        certain = next((name for name, values in cells.items() if values and values <= {*pair}), None)
        if is_sure or certain:
            return certain
        known_cells = {name: sum(choice_of(value, pair) is not None for value in cells[name]) for name in cells}
        authors = {name for stem, group in self._groups().items() if stem in _AUTHORS for name in group}
        few = [name for name, values in cells.items() if known_cells[name] or 1 < len(values) <= _MOST_LABELS]
        few = [name for name in few if name not in authors]
        candidates = [name for name in reversed(few) if column_word(name) not in _JUDGES]
        return max(candidates, key=known_cells.__getitem__, default=None)

    def _annotators(self, is_evidence: Callable[[str], bool]) -> list[str]:
        """Return the columns of labels or ratings by people; none for one alone, or where one is of an aspect."""
        free = self._free(lambda value: _is_label(value) and is_evidence(str(value).strip()))[::-1]
        names = [name for name in free if not _OF_ROWS.search(name.casefold())]
        words = {column_word(name) for name in names}
        is_other = not words.isdisjoint((*_LABELS, *_RATINGS, *_OTHERS, *_IDS)) or any(map(ASPECTS.search, words))
        return [] if is_other or len(names) < 2 else names

    def _add_prompt(self) -> None:
        prompt = self.settings.get("prompt_column")
        if prompt is None:
            prompt = self._first(_PROMPTS, _is_answer) or self._first(_CONVERSATIONS, _is_open) or self._doubtful()
        both = [self._by_word.get(word) for word in _EXTRA]
        if prompt in (both[0], [both[0]], (both[0],)) and both[1] in self._free(_is_text):
            prompt = both
        if prompt is not None:
            self.settings["prompt_column"] = prompt

    def _doubtful(self) -> str | None:
        """Return the column of a doubtful name that holds prompts: turns, or the only prose beside the answers."""
        name = self._first(_DOUBTFUL, _is_answer)
        if name is None or any(not isinstance(row.get(name), str) for row in self._rows):
            return name
        columns = [name, *(other for other in self._free(_is_text) if other != name)]
        prose = [column for column in columns if any(_is_prose(column, row.get(column)) for row in self._rows)]
        # The names of people and of kinds of tasks come again.
        may_be = name.strip().casefold() not in _OF_PEOPLE or 1 < len({row[name] for row in self._rows}) == len(
            self._rows
        )
        return name if prose == [name] or (may_be and not prose) else None

    def _add_parts(self, *, is_named: bool) -> None:
        """Add the columns beside prompt and answers; those of the prompt only where the user named no columns."""
        has_labels = "label_column" in self.settings
        is_alone = "response_column" in self.settings and "rating_column" not in self.settings
        self._add("system_column", _SYSTEMS, _is_text)
        self._add("history_column", _HISTORIES, _is_history)
        if is_alone:
            self._add("reference_column", _REFERENCES, _is_text)
        if has_labels or "rating_column" in self.settings:
            self._add("judge_column", _JUDGES, lambda value: _is_name(value) or isinstance(value, dict))
            self._add("time_column", _TIMES, _is_name)
            self._add("batch_column", _BATCHES, _is_name)
        if "author_column" not in self.settings and (authors := self._authors()):
            self.settings["author_column"] = authors
        if not is_named:
            self._add("language_column", _LANGUAGES, _is_text)
            self._add("category_column", _CATEGORIES, lambda value: isinstance(value, str | list))
            if is_alone and not isinstance(self.settings["response_column"], str):
                self._add("id_column", _IDS, _is_name)

    def _authors(self) -> str | list[str] | None:
        """Return the columns of the answers' authors: one beside each answer, or one for all."""
        sides = [self.settings.get(key) for key in ("chosen_column", "rejected_column")]
        if sides == ["chosen", "rejected"]:
            pair = [self._by_word.get(f"{side}_model") for side in sides]
            return None if None in pair else [name for name in pair if name]
        if "first_column" in self.settings:
            groups = [group for stem, group in self._groups().items() if stem in _AUTHORS and len(group) == 2]
            return groups[0] if groups and set(groups[0]) <= set(self._free(_is_name)) else None
        column = self.settings.get("response_column")
        return self._first(_AUTHORS, lambda value: isinstance(value, str | list)) if isinstance(column, str) else None

    def _groups(self) -> dict[str, list[str]]:
        """Return the names that differ by a last letter or number alone, by what they share: response_a, response_b."""
        groups: dict[str, list[str]] = {}
        for ends in _ENDS:
            for word in self._by_word:
                for last in (f"{ends[0]}", f"{ends[0]}_name"):
                    stem = word.removesuffix(last)
                    names = [self._by_word.get(f"{stem}{end}{last.removeprefix(ends[0])}") for end in ends]
                    number = names.index(None) if None in names else len(names)
                    # Names of nothing but the end are columns of answers where they are two words.
                    if stem != word and number > 1 and (stem or not last.isascii() or len(last) > 1):
                        groups.setdefault(stem.rstrip(" _-"), [name for name in names[:number] if name])
        for words in ordered_names():
            ordered = [self._by_word[word] for word in takewhile(self._by_word.__contains__, words)]
            if len(ordered) > 1:
                groups.setdefault(_ANSWERS[0], ordered)
        return groups

    def _add(self, key: str, words: Iterable[str], fits: Callable[[Any], bool]) -> None:
        if self.settings.get(key) is None and (name := self._first(words, fits)):
            self.settings[key] = name

    def _first(self, words: Iterable[str], fits: Callable[[Any], bool]) -> str | None:
        free = self._free(fits)
        return next((name for word in words if (name := self._by_word.get(word)) in free), None)

    def _free(self, fits: Callable[[Any], bool]) -> list[str]:
        """Return the columns that no setting names and whose cells fit; empty cells fit, but not alone."""
        used = {
            name
            for key, value in self.settings.items()
            if key.endswith("_column")
            for name in ([value] if isinstance(value, str) else value or ())
        }
        cells = {
            name: [row[name] for row in self._rows if row.get(name) not in (None, "")]
            for name in self._by_word.values()
        }
        return [name for name, values in cells.items() if name not in used and values and all(map(fits, values))]

    def _mean_length(self, name: str) -> float:
        return sum(len(str(row.get(name) or "")) for row in self._rows) / len(self._rows)


def _annotation_columns(rows: Sequence[JsonObject]) -> dict[str, str]:
    """Return the columns of the items of a list of annotations by their words; none without a judge and evidence."""
    for name in dict.fromkeys(chain.from_iterable(rows)):
        lists = [row[name] for row in rows if row.get(name) is not None]
        if not all(isinstance(items, list) for items in lists):
            continue
        items = [item for items in lists for item in items]
        if not items or not all(isinstance(item, dict) for item in items):
            continue
        words = {column_word(key): f"{name}.{key}" for key in dict.fromkeys(chain.from_iterable(items))}
        if not words.keys().isdisjoint(_JUDGES) and not words.keys().isdisjoint((*_LABELS, *_SCORES)):
            return words
    return {}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_answer(value: Any) -> bool:
    """Return whether a cell can be a text, or turns."""
    items = [value] if isinstance(value, dict) else value
    return isinstance(value, str) or (isinstance(items, list) and bool(items) and all(_is_turn(item) for item in items))


def _is_history(value: Any) -> bool:
    """Return whether a cell is earlier exchanges: pairs of texts, or turns."""
    items = value if isinstance(value, list) else [None]
    return all(_is_turn(item) or (isinstance(item, list) and len(item) == 2) for item in items)


def _is_open(value: Any) -> bool:
    """Return whether a cell is turns that end before an answer."""
    last = value[-1] if isinstance(value, list) and value else None
    return isinstance(last, dict) and last.get("role", last.get("from", "gpt")) not in ("assistant", "gpt")


def _is_turn(value: Any) -> bool:
    return isinstance(value, dict) and ("role" in value or "from" in value)


def _is_list(value: Any) -> bool:
    """Return whether a cell is a list of answers: texts, lists of turns, or objects with a text; or its JSON text."""
    if isinstance(value, str):
        return value.lstrip().startswith("[")
    return isinstance(value, list) and bool(value) and not any(map(_is_turn, value))


def _is_choice(value: Any) -> bool:
    """Return whether a cell is one choice, as Label Studio's JSON_MIN has it: ``{"choices": ["A"]}``."""
    choices = value.get("choices") if isinstance(value, dict) else None
    return isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], str)


def _is_number(value: Any) -> bool:
    return re.fullmatch(r"-?\d+(?:[.,]\d+)?", str(value).strip()) is not None


def _is_label(value: Any) -> bool:
    return isinstance(value, str | int) and len(str(value)) <= _SHORT_LABEL
