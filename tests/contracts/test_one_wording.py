"""One wording for one fact: the terminal, both languages of the page, the list of runs, JSON and tables agree.

Every verb of `RUNS` runs once on small data. Each check yields what differs in one result; a test collects these.
"""

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from chat_server import chatting, completion
from example_folder import done
from steelyard.core.types import Run
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.run_folder import read_run
from steelyard.report.page import Page, page_strings, read_texts
from steelyard.report.run_records import rule_word
from steelyard.report.sources import read_sources
from steelyard.viewing.runs import RunOverview, headline_of
from steelyard.views.page import page_of, read_data
from steelyard.views.text import csv_table, result_sentences, result_tables

LANGUAGES = ("en", "zh")
LEVEL = {"en": "95% interval", "zh": "95% 置信区间"}
CHEAP = ["--set", "num_resamples=50"]
RUNS = {
    "score": ["score", "data/cases.jsonl", "--model", "longer"],
    "scored": ["score", "data/llm.jsonl", "--model", "longer"],
    "resolve": ["resolve", "data/cases.jsonl"],
    "majority": ["resolve", "data/cases.jsonl", "--aggregate", "majority"],
    "audit": ["audit", "resolve/cases.jsonl", "--scores", "score/scores.jsonl"],
    "small": ["audit", "few.jsonl"],
    "debias": ["debias", "resolve/cases.jsonl", "--scores", "score/scores.jsonl"],
    "supervise": ["supervise", "data/llm.jsonl", "--scores", "scored/scores.jsonl"],
    "cycles": ["supervise", "data/llm.jsonl", "--scores", "scored/scores.jsonl", "--policy", "cycles"],
    "split": ["split", "data/gold.jsonl", "--part", "train=0.7", "--part", "test=0.3"],
    "clean": ["clean", "few.jsonl"],
    "merge": ["merge", "data/gold.jsonl", "data/cases.jsonl"],
    "prompts": ["prompts", "parallel.jsonl", "--against", "few.jsonl"],
    "inspect": ["inspect", "resolve/cases.jsonl"],
    "evaluate": ["evaluate", "--bench", "parallel.jsonl", "--model", "longer", *CHEAP],
    "other": ["evaluate", "--bench", "parallel.jsonl", "--model", "shorter", *CHEAP],
    "compare": ["compare", "evaluate", "other", *CHEAP],
    "leaderboard": ["leaderboard", "evaluate", "other", *CHEAP],
    "correlate": ["correlate", "table.csv", "--columns", "bench", "--outcomes", "table.csv"],
    "no_few": ["evaluate", "--human", "half.jsonl", "--judged", "many.jsonl", "--model", "longer", *CHEAP],
    "few_models": ["correlate", "short.csv", "--columns", "bench", "--outcomes", "short.csv"],
    "few": ["evaluate", "--human", "few.jsonl", "--judged", "many.jsonl", "--model", "longer", "--width", "0.1"],
    "languages": ["languages", "evaluate"],
    "language_table": ["languages", "evaluate", "other"],
    "best": ["best-of-n", "data/cases.jsonl", "--scores", "score/scores.jsonl", "--gold", "judgments", *CHEAP],
    "judge": ["judge", "asked.jsonl", "--chat", "openai_compatible", "--base-url", "URL", "--chat-model", "m", *CHEAP],
    "translate": ["translate", "parallel.jsonl", "--check-only"],
}  # fmt: skip
NUMBER = re.compile(r"(?<![A-Za-z0-9_.−+\-])[+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?(?![A-Za-z0-9_]|\.\d)")
INTERVAL = re.compile(r"[\d.,]+\.\d+(?:–| … )[+−]?[\d.,]+")
ENGLISH = re.compile(r"(?:\b[a-z]{2,} ){2,}[a-z]{2,}")
SPACED = re.compile(r"[\u4e00-\u9fff，。：；）] +[\u4e00-\u9fff（，。：；]|[，。：；（] ")
NOUN = re.compile(r"(?<![\w.−+\-,])(\d[\d,]*)\u00a0?(?: (?:of|/) ([\d,]+))? ?((?:strict )?[a-z]{3,})")
NO_NOUNS = {"with", "and", "the", "more", "stay", "groups"}
STRINGS = page_strings(read_texts("view/strings.toml"))


class Result(NamedTuple):
    """A run with what the terminal, the page, the tables and the list of runs say of it, by language."""

    run: Run[Any]
    printed: str
    page: Page
    sentences: dict[str, list[str]]
    tables: dict[str, str]
    headline: dict[str, list[str]]

    def cards(self, language):
        """The cards of the page."""
        texts = ((card.title, card.number, card.below, card.about) for card in self.page.cards)
        return [" ".join(STRINGS.translate(part, language) for part in parts) for parts in texts]

    def texts(self, language):
        """All sentences, cards and the headline."""
        return [*self.sentences[language], *self.cards(language), " ".join(self.headline[language])]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Every run of RUNS by its name."""
    with pytest.MonkeyPatch.context() as patch, chatting(_verdict) as server:
        patch.chdir(tmp_path_factory.mktemp("wording"))
        _write_data()
        made = {}
        for name, words in RUNS.items():
            told = done(*(server.url if word == "URL" else word for word in words), "--out", name, "--verbose")
            made[name] = _result(name, told.stdout)
        return made


def _verdict(question):
    """A judge with strict verdicts, ties, replies without a verdict, and a preference for the answer shown first."""
    text = question["messages"][-1]["content"]
    reply = ["[[A]]", "[[A]]", "[[B]]", "[[C]]", "Neither."][sum(place * ord(x) for place, x in enumerate(text)) % 5]
    return completion(reply, model=question["model"])


def _write_data():
    done("demo", "--data", "--out", "data", "--set", "num_prompts=72", "--set", "llm_share=0.4")
    tested = list(read_cases(Path("data/test.jsonl")))
    english = [case for case in tested if case.prompt.language == "en"]
    german = [
        msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, language="de")) for case in english
    ]
    turned = [
        msgspec.structs.replace(case, ranking=case.ranking[::-1] if number % 7 == 3 else case.ranking)
        for number, case in enumerate(tested)
    ]
    files = {
        "parallel": [*english, *german],
        "few": [case for number, case in enumerate(tested) if number % 3],
        "half": tested[::2],
        "many": turned,
        "asked": tested[:3],
    }
    for name, cases in files.items():
        write_cases(Path(f"{name}.jsonl"), cases)
    rows = [f"m{number},{0.5 + number / 31:.4f},{(number * 7 % 12) / 13:.4f}\n" for number in range(12)]
    for name, number in (("table", 12), ("short", 4)):
        Path(f"{name}.csv").write_text("model,bench,downstream\n" + "".join(rows[:number]), encoding="utf-8")


def _result(name, printed):
    folder = Path(name)
    run = read_run(folder)
    overview = msgspec.json.decode((folder / "run.json").read_bytes(), type=RunOverview)
    return Result(
        run,
        printed,
        page_of(read_data(read_sources([folder])), title=None, language="en", budget=2**20, version="1"),
        {language: list(result_sentences(run, folder, language)) for language in LANGUAGES},
        {language: "\n".join(_cells(run, folder, language)) for language in LANGUAGES},
        {language: [STRINGS.translate(part, language) for part in headline_of(overview)] for language in LANGUAGES},
    )


def _cells(run, folder, language):
    """Yield the cells of every row of the tables that the CSV of a report has, apart from each other."""
    for table in result_tables(run, folder, language):
        yield from (" | ".join(row) for row in csv.reader(io.StringIO(csv_table(table))))


def findings(results, check):
    return [f"{name}: {found}" for name, result in results.items() for found in check(result)]


def numbers(text):
    return [token.strip(",") for token in NUMBER.findall(text)]


def missing_on_page(result):
    sentences = [*result.page.sentences, *(one for section in result.page.sections for one in section.sentences)]
    for language in LANGUAGES:
        shown = [STRINGS.fill(STRINGS.table[one.key][language], one.values, language) for one in sentences]
        for text in result.sentences[language]:
            if not any(text[1:] in other for other in shown):
                yield text


def test_the_page_has_every_sentence_of_the_terminal_in_both_languages(results):
    assert findings(results, missing_on_page) == []


def test_the_terminal_prints_every_sentence_of_the_result(results):
    def unprinted(result):
        return (text for text in result.sentences["en"] if text not in result.printed)

    assert findings(results, unprinted) == []


def other_numbers(result):
    for english, chinese in zip(result.sentences["en"], result.sentences["zh"], strict=True):
        if Counter(numbers(english)) != Counter(numbers(chinese)):
            yield f"{english} / {chinese}"
    for surface in ("headline", "tables"):
        english, chinese = (str(getattr(result, surface)[language]) for language in LANGUAGES)
        if Counter(numbers(english)) != Counter(numbers(chinese)):
            yield f"{surface}: {Counter(numbers(english)) - Counter(numbers(chinese))}"


def test_both_languages_state_the_same_numbers(results):
    assert findings(results, other_numbers) == []


def english_in_chinese(result):
    for text in [*result.texts("zh"), *result.tables["zh"].splitlines()]:
        yield from (f"{found!r} in {text}" for found in (*ENGLISH.findall(text), *SPACED.findall(text)))


def test_chinese_has_no_english_clause_and_no_space_between_its_words(results):
    assert findings(results, english_in_chinese) == []


def without_level(result):
    for language in LANGUAGES:
        for text in result.texts(language):
            if (found := INTERVAL.search(text)) is not None and LEVEL[language] not in text[: found.start()]:
                yield text


def test_every_interval_outside_tables_states_its_level(results):
    assert findings(results, without_level) == []


def other_digits(result):
    in_tables = set(numbers(result.tables["en"]))
    for text in result.texts("en"):
        for token in numbers(text):
            if "." in token and not {token, token.lstrip("+−")} & in_tables:
                yield from (f"{token} and {other}: {text}" for other in in_tables if _is_rounded(token, other))


def _is_rounded(token, other):
    """Whether the token is the other number with fewer digits, and of its unit."""
    if "." not in other or token.endswith("%") != other.endswith("%") or len(other) <= len(token):
        return False
    first, second = (float(each.strip("+%").replace("−", "-").replace(",", "")) for each in (token, other))
    return round(second, len(token.rstrip("%").partition(".")[2])) == first


def test_a_number_has_the_same_digits_in_sentences_headline_and_tables(results):
    assert findings(results, other_digits) == []


def untraced(result):
    """Yield the numbers that are neither in the record of the run nor a ratio of two numbers of the text."""
    record = json.loads(msgspec.json.encode(result.run))
    values = {abs(value) for part in ("summary", "counts", "config") for value in leaves(record[part])}
    for text in result.texts("en"):
        whole = [int(token.replace(",", "")) for token in numbers(text) if re.fullmatch(r"[\d,]+", token)]
        ratios = {value / total for total in whole if total for value in values if value <= total}
        for token in set(numbers(text)) - {"95%"}:
            bare = token.strip("+−%").replace(",", "")
            places = len(bare.partition(".")[2])
            if not any(f"{value * unit:.{places}f}" == bare for value in values | ratios for unit in (1, 100)):
                yield f"{token} in {text}"


def leaves(value):
    """Yield every number of a record, the sizes of its lists and tables, and the sums of tables of counts."""
    if isinstance(value, dict | list):
        inner = list(value.values()) if isinstance(value, dict) else value
        yield len(inner)
        yield sum(each for each in inner if isinstance(each, int))
        for each in inner:
            yield from leaves(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def test_every_number_is_in_the_record_that_json_and_python_give(results):
    assert findings(results, untraced) == []


def other_nouns(result):
    said = {}
    for *counts, noun in NOUN.findall("\n".join(result.sentences["en"])):
        for number in filter(None, counts if noun not in NO_NOUNS else ()):
            said.setdefault(number, set()).add(noun)
    for *counts, noun in NOUN.findall("\n".join([*result.cards("en"), " ".join(result.headline["en"])])):
        for number in filter(None, counts if "cases used" not in result.headline["en"][1] else ()):
            if noun not in said.get(number, {noun}):
                yield f"{number} {noun}, but {sorted(said[number])}"


def test_a_count_of_the_headline_and_the_cards_has_the_noun_of_the_sentences(results):
    assert findings(results, other_nouns) == []


def lone_headline(result):
    for language in LANGUAGES:
        shown = " ".join([*result.sentences[language], *result.cards(language), result.tables[language]])
        counts = {f"{result.run.counts.num_in:,}", f"{result.run.counts.num_used:,}"}
        text = " ".join(result.headline[language][:2])
        yield from (f"{token} of {text}" for token in set(numbers(text)) - set(numbers(shown)) - counts - {"95%"})
        if "view_" in text or "@@" in text:
            yield f"a word is missing: {text}"


def test_the_headline_in_the_list_of_runs_is_a_number_of_the_page(results):
    assert findings(results, lone_headline) == []


def other_rules(result):
    line = next((line for line in result.printed.splitlines() if re.match(r"[\d,]+ in, ", line)), None)
    shown = [] if line is None else re.split(r"dropped: |noted: ", line)[1:]
    counts = result.run.counts
    words = {STRINGS.translate(rule_word(rule), "en") for rule in {**counts.dropped, **counts.noted}}
    for rule in re.split(r"[,;] ", "; ".join(shown).strip()):
        if rule and not any(rule.startswith(word.split(", ")[0]) for word in words):
            yield rule


def test_the_terminal_names_rules_in_the_words_of_the_page(results):
    assert findings(results, other_rules) == []


def test_an_interval_in_a_sentence_template_has_its_level():
    lone = re.compile(r"[\[(（]\{(?:interval|spread|low)\w*(?::(?!@95%)[^}]*)?\}")
    wrong = [key for key, texts in page_strings().table.items() for text in texts.values() if lone.search(text)]
    assert wrong == []


def test_the_csv_of_a_report_has_the_numbers_of_the_cards(results):
    result = results["evaluate"]
    model = next(row for row in result.tables["en"].splitlines() if row.startswith("longer | "))
    accuracy, exact, *_ = result.cards("en")
    assert [numbers(cell)[0] for cell in model.split(" | ")[1:3]] == [numbers(accuracy)[0], numbers(exact)[0]]
