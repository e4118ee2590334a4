"""The built-in corpus itself: how much of it there is, and that worse answers of every kind come out as they should."""

import re
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest

from steelyard.annotation.corruptions import DEGRADATIONS, sentences_of
from steelyard.io.cases import read_cases
from steelyard.stages.simulate import Config, material_of, read_corpus, simulate

CORPUS = read_corpus()
KINDS = {
    "language",
    "knowledge",
    "understanding",
    "reasoning",
    "mathematics",
    "code",
    "safety",
    "complex instructions",
}


@pytest.mark.parametrize("language", ["zh", "en"])
def test_each_language_has_many_prompts_of_all_eight_kinds(language):
    own = [entry for entry in CORPUS.entries if entry.language == language]
    counted = Counter(entry.category[0] for entry in own)
    assert len(own) >= 80
    assert {name.replace("_", " ") for name in counted} == KINDS
    assert min(counted.values()) >= 8


def test_prompts_and_answers_are_all_different_and_some_have_several_turns():
    for values in ([entry.messages for entry in CORPUS.entries], [entry.answer for entry in CORPUS.entries]):
        assert len(set(values)) == len(values)
    assert sum(len(entry.messages) > 1 for entry in CORPUS.entries) >= 8
    assert {len(entry.category) for entry in CORPUS.entries} == {2, 3}
    assert all(len(entry.facts) >= 2 for entry in CORPUS.entries)
    assert not any("\ufffd" in entry.answer or "TODO" in entry.answer for entry in CORPUS.entries)


ADVICE = re.compile(
    r"(?:如果|若|想要?|建议|平时|记得|小结|提醒|剩下的|做题时|约时间|这类)"
    r"|(?:If you|If it|Remember|Be careful|It would be best|Add |Next time|Try |Doing )"
)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_good_answers_rarely_end_in_advice_that_nobody_asked_for(language):
    # What is unasked in safety is often needed, and complex instructions say how to end.
    entries = [one for one in CORPUS.entries if one.language == language]
    plain = [one for one in entries if one.category[0] not in ("safety", "complex_instructions")]
    endings = {one.id: [part for part in sentences_of(one.answer) if part.strip()][-1] for one in plain}
    advising = [name for name, ending in endings.items() if ADVICE.match(ending)]
    assert len(plain) > 60
    assert len(advising) <= 0.05 * len(plain), advising


@pytest.mark.parametrize("kind", DEGRADATIONS)
def test_every_kind_makes_of_every_entry_an_answer_of_its_own(kind):
    for entry in CORPUS.entries:
        material = material_of(entry, CORPUS.entries, CORPUS)
        for severity in (0.0, 0.99):
            text = DEGRADATIONS[kind].make(material, severity, np.random.default_rng(7))
            assert text.strip()
            assert text != entry.answer, entry.id
            assert "{topic}" not in text


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """For each language, over several simulations of the whole corpus: +1 a pair whose longer end is the better one."""
    signs = defaultdict(list)
    for seed in range(4):
        out = tmp_path_factory.mktemp("corpus") / "out"
        simulate(out, Config(seed=seed))
        for name in ("gold", "test"):
            for case in read_cases(out / f"{name}.jsonl"):
                quality = [(one.meta or {})["quality"] for one in case.responses]
                length = [len(one.text or "") for one in case.responses]
                for one, other in combinations(range(len(quality)), 2):
                    order = np.sign(quality[one] - quality[other]) * np.sign(length[one] - length[other])
                    signs[case.prompt.language].append(int(order))
    return signs


@pytest.mark.parametrize("language", ["zh", "en"])
def test_length_alone_tells_nothing(compared, language):
    signs = np.array(compared[language])
    longer = np.mean(signs > 0) + np.mean(signs == 0) / 2
    # About 3,400 pairs, which lean on 85 prompts: two standard errors are about 0.02.
    assert longer == pytest.approx(0.5, abs=0.04)
