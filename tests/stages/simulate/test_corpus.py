from collections import Counter

import pytest

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.types import Message
from steelyard.methods.annotation.corpus import Entry, check_entry
from steelyard.stages.simulate.corpus import Corpus, choose_entries, material_of, read_corpus, split_entries
from steelyard.stages.simulate.settings import Config


def entry(language, category, number):
    text = f"{language} {category} {number}"
    return Entry(
        id=text,
        language=language,
        category=(category,),
        messages=(Message(role="user", content=text + "?"),),
        answer=text + ".",
        facts=((category, "nothing"),),
    )


PHRASES = read_corpus().phrases
MANY = Corpus(
    tuple(entry(language, name, number) for language in ("en", "zh") for name in ("a", "b") for number in range(10)),
    PHRASES,
)


def stratum(one):
    return (one.language, one.category[0])


def test_the_built_in_corpus_is_read_whole_and_checked():
    corpus = read_corpus()
    assert corpus.languages == ("en", "zh")
    assert set(corpus.phrases) == {"en", "zh"}
    assert len({one.id for one in corpus.entries}) == len(corpus.entries)
    for one in corpus.entries:
        check_entry(one)


def test_a_part_of_the_corpus_is_drawn_evenly_and_by_the_seed():
    drawn = [choose_entries(MANY, Config(num_prompts=12, seed=seed)) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(Counter(map(stratum, drawn[0])).values()) == {3}
    assert choose_entries(MANY, Config(languages=("zh",))) == tuple(one for one in MANY.entries if one.language == "zh")


@pytest.mark.parametrize("number", [3, 41])
def test_more_prompts_than_there_are_and_hardly_any_are_refused(number):
    with pytest.raises(ConfigError, match="4 to 40"):
        choose_entries(MANY, Config(num_prompts=number))


def test_the_split_is_by_prompt_and_gives_each_stratum_its_share():
    train, test = split_entries(MANY.entries, Config(test_share=0.3))
    assert sorted(one.id for one in train + test) == sorted(one.id for one in MANY.entries)
    assert Counter(map(stratum, test)) == dict.fromkeys(map(stratum, MANY.entries), 3)


def test_answers_are_lent_by_the_own_part_alone():
    train, test = split_entries(MANY.entries, Config())
    for part in (train, test):
        material = material_of(part[0], part, MANY)
        assert set(material.others) | set(material.foreign) <= set(part)
        assert {one.language for one in material.others} == {part[0].language}
        assert part[0].category[0] not in {one.category[0] for one in material.others}
        assert part[0].language not in {one.language for one in material.foreign}


def test_a_part_in_one_language_borrows_another_from_the_corpus():
    part = [one for one in MANY.entries if one.language == "zh"]
    assert {one.language for one in material_of(part[0], part, MANY).foreign} == {"en"}


def test_a_part_without_another_category_cannot_lend():
    part = [one for one in MANY.entries if stratum(one) == ("zh", "a")]
    with pytest.raises(EvidenceError, match="too few"):
        material_of(part[0], part, MANY)
