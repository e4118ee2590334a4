import json

import pytest

import tiny
from steelyard.core.errors import ConfigError, EvidenceError, FileError
from steelyard.core.remedies import Command
from steelyard.io.cases import write_cases
from steelyard.networks.conversation import Rendering, encode
from steelyard.report.case_sources import Rule
from steelyard.report.item_list import ItemFilter
from steelyard.stages.inspect import InspectOptions, inspect_item, inspect_items
from steelyard.stages.resolve import resolve
from steelyard.stages.score import score
from strategies import case


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.jsonl"
    write_cases(path, [case(f"p{n}", "ab", ["a>b", "b>a"], text="你好") for n in range(3)])
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny.save_classifier(tmp_path_factory.mktemp("m") / "model")


def test_an_item_is_opened_with_where_it_was_found(cases):
    page = inspect_item(cases, "p1")
    assert page.analysis.case.prompt.id == "p1"
    assert page.analysis.num_conflicting == 2
    assert page.looked_up == (f"item: case 2 of {cases} (the case file)",)
    assert page.rule == "CHEEMS algorithm 1"


def test_of_a_run_its_own_rule_counts_and_its_other_files_are_named(cases, tmp_path):
    resolve(cases, tmp_path / "resolved")
    page = inspect_item(tmp_path / "resolved", "p1", InspectOptions(rule=Rule(aggregate="majority")))
    own = tmp_path / "resolved" / "cases.jsonl"
    assert page.looked_up[:2] == (f"item: case 2 of {own} (written by resolve)", f"not looked at: {cases}")
    assert page.rule == "CHEEMS algorithm 1, majority vote on each pair"
    assert page.analysis.tiers == page.analysis.case.ranking == (("a", "b"),)


def test_an_item_that_only_the_input_has_is_found_there(cases, tmp_path):
    resolve(cases, tmp_path / "resolved")
    write_cases(tmp_path / "resolved" / "cases.jsonl", [case("other")])
    page = inspect_item(tmp_path / "resolved", "p1")
    assert page.looked_up[0] == f"item: case 2 of {cases} (read by resolve as cases, hash not checked)"


def test_scores_of_the_run_and_given_ones_stand_beside_each_other(cases, tmp_path):
    score(cases, tmp_path / "scored", model="longer")
    (tmp_path / "mine.jsonl").write_text(json.dumps({"prompt": "p1", "scores": {"a": 1.5, "b": 2}}) + "\n")
    page = inspect_item(tmp_path / "scored", "p1", InspectOptions(scores=(tmp_path / "mine.jsonl",)))
    assert [scored.name for scored in page.scored] == [
        str(tmp_path / "scored" / "scores.jsonl"), str(tmp_path / "mine.jsonl"),
    ]  # fmt: skip
    assert page.scored[0].scores.scores == {"a": 8, "b": 8}
    assert page.scored[1].scores.scores == {"a": 1.5, "b": 2}


def test_a_run_s_own_model_shows_its_tokens_when_asked(cases, tmp_path, model):
    score(cases, tmp_path / "scored", model=model)
    page = inspect_item(tmp_path / "scored", "p1")
    assert page.tokens == ()
    assert "tokens=true shows what the model model reads" in page.looked_up
    page = inspect_item(tmp_path / "scored", "p1", InspectOptions(with_tokens=True))
    one = page.analysis.case
    own = encode(tiny.tokenizer(), Rendering(template=tiny.CHATML, strip=False), one, one.responses[1]).ids
    assert [number for piece in page.tokens[1].pieces for number in piece.ids] == list(own)
    assert page.looked_up[-1] == f"tokens: those that the model in {model} reads"


def test_a_model_that_has_changed_since_the_run_is_said_to_have(cases, tmp_path):
    model = tiny.save_classifier(tmp_path / "model")
    score(cases, tmp_path / "scored", model=model)
    tiny.save_classifier(tmp_path / "model", template=tiny.WITH_BOS)
    page = inspect_item(tmp_path / "scored", "p1", InspectOptions(with_tokens=True))
    assert page.looked_up[-1].startswith("the model has CHANGED since the run: template_hash was ")


def test_a_named_model_takes_its_settings(cases, model):
    page = inspect_item(cases, "p1", InspectOptions(model=model, settings={"max_length": 10, "over_length": "right"}))
    assert page.model == "model"
    assert [one.num_tokens - one.num_cut for one in page.tokens] == [10, 10]


def test_tokens_without_a_model_that_has_any_are_refused(cases, tmp_path):
    with pytest.raises(ConfigError, match="no model is known here"):
        inspect_item(cases, "p1", InspectOptions(with_tokens=True))
    with pytest.raises(ConfigError, match="of kind 'longer'"):
        inspect_item(cases, "p1", InspectOptions(model="longer"))
    with pytest.raises(FileError, match="no such file or folder"):
        inspect_item(cases, "p1", InspectOptions(model=str(tmp_path / "none")))


def test_an_unknown_item_is_refused(cases):
    with pytest.raises(EvidenceError, match="no item with id 'p9'"):
        inspect_item(cases, "p9")


def test_items_are_listed_with_the_command_that_opens_them(cases, tmp_path):
    resolve(cases, tmp_path / "a run")
    items = inspect_items(tmp_path / "a run", ItemFilter(limit=2))
    assert items.opened_by == Command("inspect", (str(tmp_path / "a run"),))
    assert (len(items.rows), items.num_items, items.first, items.next_page) == (2, 3, 1, 2)
    assert items.looked_up == (
        f"items: {tmp_path / 'a run' / 'cases.jsonl'} (written by resolve)",
        f"not listed, but looked in for the id: {cases}",
    )
    last = inspect_items(cases, ItemFilter(limit=2, page=2))
    assert (len(last.rows), last.first, last.next_page) == (1, 3, None)
