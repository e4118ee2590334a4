from collections import Counter, defaultdict

import pytest

from steelyard.annotation.corruptions import DEGRADATIONS, CorpusEntry, check_entry, choose_entries
from steelyard.core.errors import ConfigError, EvidenceError, OutputError
from steelyard.core.types import Message
from steelyard.io.cases import read_cases
from steelyard.stages.simulate import (
    Config,
    Corpus,
    check_simulation,
    material_of,
    read_corpus,
    simulate,
    split_entries,
)

DEFAULT = Config()
NUM_PROMPTS = len(read_corpus().entries)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("simulate") / "out"
    simulate(out, DEFAULT)
    return out


def read(folder, name):
    return tuple(read_cases(folder / f"{name}.jsonl"))


def made_by(response):
    return (response.meta or {})["made_by"]


def test_people_the_llm_and_the_test_have_different_prompts(folder):
    cases, llm, gold, test, kinds = (read(folder, name) for name in ("cases", "llm", "gold", "test", "kinds"))
    assert [case.key for case in cases + llm] == [case.key for case in gold]
    assert (
        len({case.prompt.messages for case in cases + llm + test}) == len(cases) + len(llm) + len(test) == NUM_PROMPTS
    )
    assert {case.prompt.messages for case in kinds} == {case.prompt.messages for case in test}


def test_no_test_answer_was_seen_in_training(folder):
    """Also not as the off-topic answer to another prompt."""
    texts, good = {}, {}
    for name in ("cases", "llm", "test"):
        responses = [response for case in read(folder, name) for response in case.responses]
        texts[name] = {one.text for one in responses}
        good[name] = {one.text for one in responses if made_by(one) == "good_answer"}
    assert not (texts["cases"] | texts["llm"]) & good["test"]
    # The people's model supervises the LLM's verdicts: it must not know those answers as bad ones to other prompts.
    assert not texts["cases"] & good["llm"]


def test_annotators_see_neither_ranking_nor_quality(folder):
    for name, kind, number in (("cases", "human", 15), ("llm", "llm", 10)):
        for case in read(folder, name):
            assert case.ranking is None
            assert len(case.judgments) == number
            assert {one.kind for one in case.judgments} == {kind}
            assert all(one.judge.startswith("simulated-") for one in case.judgments)
            assert all(set(response.meta or {}) == {"made_by"} for response in case.responses)


def test_the_key_ranks_by_quality_with_the_good_answer_first(folder):
    for case in read(folder, "gold") + read(folder, "test"):
        quality = {one.id: (one.meta or {})["quality"] for one in case.responses}
        assert case.judgments == ()
        assert case.ranking is not None
        assert case.ranking[0] == tuple(one.id for one in case.responses if made_by(one) == "good_answer")
        ranked = [quality[name] for tier in case.ranking for name in tier]
        assert ranked == sorted(ranked, reverse=True)
        assert len(ranked) in (5, 8)


def test_a_test_prompt_has_a_worse_answer_of_every_kind_of_training(folder):
    for case in read(folder, "test"):
        assert {made_by(one) for one in case.responses} == {"good_answer", *DEFAULT.kinds}


def test_the_held_out_kind_is_in_kinds_alone(folder):
    for name in ("cases", "llm", "gold", "test"):
        assert "code_switched" not in {made_by(one) for case in read(folder, name) for one in case.responses}
    kinds = read(folder, "kinds")
    counted = Counter(case.prompt.category[0] for case in kinds)
    names = {kind: f"{kind} (unseen)" if kind == "code_switched" else kind for kind in DEGRADATIONS}
    assert counted == {name: len(read(folder, "test")) for name in names.values()}
    for case in kinds:
        (worse,) = {made_by(one) for one in case.responses} - {"good_answer"}
        assert names[worse] == case.prompt.category[0]


def test_everything_says_that_it_is_simulated(folder):
    assert all(case.meta["simulated"] for name in ("cases", "test", "kinds") for case in read(folder, name))
    run = simulate(folder, DEFAULT)
    assert run.summary.simulated is True
    assert run.counts.num_in == NUM_PROMPTS


def test_languages_and_categories_have_their_share_of_the_test(folder):
    share = defaultdict(lambda: [0, 0])
    for part, name in enumerate(("cases", "test")):
        for case in read(folder, name):
            share[case.prompt.language][part] += 1
    for case in read(folder, "llm"):
        share[case.prompt.language][0] += 1
    assert all(abs(test / (train + test) - DEFAULT.test_share) < 0.05 for train, test in share.values())


def test_equal_seeds_give_equal_files_and_others_other_ones(tmp_path, folder):
    again = simulate(tmp_path / "again", DEFAULT)
    assert again.outputs == simulate(folder, DEFAULT).outputs
    other = simulate(tmp_path / "other", Config(seed=1))
    assert all(other.outputs[name] != sha256 for name, sha256 in again.outputs.items())


def test_one_language_alone_is_enough(tmp_path):
    simulate(tmp_path / "out", Config(languages=("zh",), num_prompts=24))
    assert {case.prompt.language for name in ("cases", "test") for case in read(tmp_path / "out", name)} == {"zh"}


def test_refusals_leave_nothing_behind(tmp_path, folder):
    with pytest.raises(ConfigError, match="no corpus in 'xx'"):
        simulate(tmp_path / "out", Config(languages=("xx",)))
    assert not (tmp_path / "out").exists()
    with pytest.raises(OutputError):
        simulate(folder, Config(num_prompts=40))


def entry(language, category, number):
    text = f"{language} {category} {number}"
    return CorpusEntry(
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
    drawn = [choose_entries(MANY.entries, ("zh", "en"), 12, seed=seed) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(Counter(map(stratum, drawn[0])).values()) == {3}
    assert choose_entries(MANY.entries, ("zh",), None, seed=0) == tuple(
        one for one in MANY.entries if one.language == "zh"
    )


@pytest.mark.parametrize("number", [3, 41])
def test_more_prompts_than_there_are_and_hardly_any_are_refused(number):
    with pytest.raises(ConfigError, match="4 to 40"):
        choose_entries(MANY.entries, ("zh", "en"), number, seed=0)


def test_the_split_is_by_prompt_and_gives_each_stratum_its_share():
    # Of 10 entries a stratum, 3 are for the test, and of the other 7 the LLM judges two sevenths.
    parts = split_entries(MANY.entries, Config(test_share=0.3, llm_share=2 / 7))
    assert sorted(one.id for part in parts for one in part) == sorted(one.id for one in MANY.entries)
    for part, number in zip(parts, (5, 2, 3), strict=True):
        assert Counter(map(stratum, part)) == dict.fromkeys(map(stratum, MANY.entries), number)


def test_answers_are_lent_by_the_own_part_alone():
    for part in split_entries(MANY.entries, Config()):
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


LANGUAGES = ("en", "zh")


def test_the_held_out_kind_is_not_among_those_of_training():
    assert set(Config(held_out_kind="garbled").kinds) == set(DEGRADATIONS) - {"garbled"}
    assert set(Config(held_out_kind=None).kinds) == set(DEGRADATIONS)


def test_the_defaults_are_allowed():
    check_simulation(Config(), LANGUAGES)


@pytest.mark.parametrize(
    ("config", "found"),
    [
        (Config(languages=("cn",)), "no corpus in 'cn'"),
        (Config(languages=()), r"languages \[\]"),
        (Config(held_out_kind="garbeld"), "did you mean 'garbled'"),
        (Config(test_share=0.0), "test_share 0.0"),
        (Config(llm_share=1.0), "llm_share 1.0"),
        (Config(test_share=1.0), "test_share 1.0"),
        (Config(num_worse=1), "num_worse is 1"),
        (Config(num_worse=8), "2 to 7"),
    ],
)
def test_what_the_corpus_cannot_serve_is_refused(config, found):
    with pytest.raises(ConfigError, match=found):
        check_simulation(config, LANGUAGES)
