from collections import Counter, defaultdict

import pytest

from steelyard.core.errors import ConfigError, OutputError
from steelyard.files.cases import read_cases
from steelyard.methods.annotation.worsening import RULES
from steelyard.stages.simulate import Config, simulate

SMALL = Config(num_prompts=48)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("simulate") / "out"
    simulate(out, SMALL)
    return out


def read(folder, name):
    return tuple(read_cases(folder / f"{name}.jsonl"))


def made_by(response):
    return (response.meta or {})["made_by"]


def test_the_files_share_what_they_should_and_no_test_prompt_is_trained_on(folder):
    cases, llm, gold, test, kinds = (read(folder, name) for name in ("cases", "llm", "gold", "test", "kinds"))
    assert [case.key for case in cases] == [case.key for case in llm] == [case.key for case in gold]
    assert len(cases) + len(test) == 48
    trained, tested = ({case.prompt.messages for case in part} for part in (cases, test))
    assert not trained & tested
    assert {case.prompt.messages for case in kinds} == tested


def test_no_test_answer_was_seen_in_training(folder):
    """Also not as the off-topic answer to another prompt."""
    trained = {response.text for case in read(folder, "cases") for response in case.responses}
    good = {one.text for case in read(folder, "test") for one in case.responses if made_by(one) == "good_answer"}
    assert not trained & good


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
        assert len(ranked) == 5


def test_the_held_out_kind_is_in_kinds_alone(folder):
    for name in ("cases", "gold", "test"):
        assert "code_switched" not in {made_by(one) for case in read(folder, name) for one in case.responses}
    kinds = read(folder, "kinds")
    counted = Counter(case.prompt.category[0] for case in kinds)
    names = {kind: f"{kind} (unseen)" if kind == "code_switched" else kind for kind in RULES}
    assert counted == {name: len(read(folder, "test")) for name in names.values()}
    for case in kinds:
        (worse,) = {made_by(one) for one in case.responses} - {"good_answer"}
        assert names[worse] == case.prompt.category[0]


def test_everything_says_that_it_is_simulated(folder):
    assert all(case.meta["simulated"] for name in ("cases", "test", "kinds") for case in read(folder, name))
    run = simulate(folder, SMALL)
    assert run.summary["simulated"] is True
    assert run.counts.num_in == 48


def test_languages_and_categories_have_their_share_of_the_test(folder):
    share = defaultdict(lambda: [0, 0])
    for part, name in enumerate(("cases", "test")):
        for case in read(folder, name):
            share[case.prompt.language][part] += 1
    assert all(abs(test / (train + test) - SMALL.test_share) < 0.05 for train, test in share.values())


def test_equal_seeds_give_equal_files_and_others_other_ones(tmp_path, folder):
    again = simulate(tmp_path / "again", SMALL)
    assert again.outputs == simulate(folder, SMALL).outputs
    other = simulate(tmp_path / "other", Config(num_prompts=48, seed=1))
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
