"""Queues by priority, on both databases: who gets what first, what is recorded of it, and files that are wrong."""

import json
import re
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from steelyard.cli.main import build_app
from steelyard.core.errors import ConfigError, EvidenceError, RecordError
from steelyard.core.types import Judgment
from steelyard.io.cases import read_cases, write_cases
from steelyard.stages.resolve import resolve
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.external_priorities import set_priorities
from steelyard.workbench.pipeline.projects import import_cases
from steelyard.workbench.pipeline.queue_sources import key_of, read_committee
from steelyard.workbench.pipeline.task_ordering import cases_of, plan_queue, store_queue
from steelyard.workbench.storage.queue_tables import StoredQueue, StoredQueuePlace
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredEvent,
    StoredItem,
    StoredProject,
    StoredTask,
)
from workbench_people import NOON, answer, answer_all, cases, make_project, send, take

NUM = 12
SURE = {"r0": 9.0, "r1": 0.0, "r2": -9.0}
TIED = {"r0": 0.0, "r1": 0.0, "r2": 0.0}


def rows(database, table):
    with database.reading() as session:
        return session.scalars(select(table).order_by(table.id)).all()


def score_lines(path, scores):
    """Write a file of scores: by the number of the question."""
    lines = [json.dumps({"prompt": f"q{number}", "scores": of_case}) for number, of_case in scores.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def unsure_from(first):
    """Scores by which questions from a number on are unsure."""
    return {number: TIED if number >= first else SURE for number in range(NUM)}


def order(database, project, scores=(), judged=(), *, share=0.0):
    """Order the open items; returns the plan."""

    def of(session):
        return session.get_one(StoredProject, project)

    with database.reading() as session:
        known = cases_of(session, of(session))
    committee = read_committee(scores, judged, known, is_complete=False)
    with database.reading() as session:
        plan = plan_queue(session, of(session), committee, random_share=share)
    database.write(lambda session: store_queue(session, of(session), plan, by=None, at=NOON))
    return plan


def prompts_of(database, taken):
    """The questions of assignments, in their order."""
    found = (
        select(StoredAssignment.id, StoredItem.prompt)
        .join(StoredTask, StoredAssignment.task_id == StoredTask.id)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
    )
    with database.reading() as session:
        prompts = dict(session.execute(found).all())
    return [prompts[number] for number, _ in taken]


def work_through(database, project, person):
    """Let a person answer everything; returns the questions in order."""
    seen = []
    while taken := take(database, project, person):
        seen += prompts_of(database, taken)
        send(database, taken[0][0], answer(taken[0][1]))
    return seen


def test_people_get_what_the_model_is_unsure_of_first(database, tmp_path):
    project, (ada, _) = make_project(database, NUM)
    plan = order(database, project, [score_lines(tmp_path / "model.jsonl", unsure_from(8))])
    seen = work_through(database, project, ada)
    assert set(seen[:4]) == {"q8", "q9", "q10", "q11"}
    assert seen == [item.prompt for item in plan.items]
    assert [item.priority for item in plan.items[:4]] == [1.0] * 4


def test_the_same_order_again_is_recorded_once(database, tmp_path):
    project, (ada, _) = make_project(database, NUM)
    path = score_lines(tmp_path / "model.jsonl", unsure_from(8))
    first = order(database, project, [path], share=0.5)
    assert order(database, project, [path], share=0.5) == first
    assert len(rows(database, StoredQueue)) == 1
    # Somebody has begun an item since, or another share is asked for: these are other orders.
    take(database, project, ada)
    order(database, project, [path], share=0.5)
    order(database, project, [path], share=0.25)
    assert len(rows(database, StoredQueue)) == 3


def test_items_by_chance_are_spread_over_the_queue_and_stay_the_same(database, tmp_path):
    project, (ada, _) = make_project(database, NUM)
    path = score_lines(tmp_path / "model.jsonl", unsure_from(8))
    first = order(database, project, [path], share=0.5)
    by_chance = [item.prompt for item in first.items if item.is_random]
    assert len(by_chance) == first.num_random
    assert 2 <= first.num_random <= 10
    again = order(database, project, [score_lines(tmp_path / "other.jsonl", unsure_from(2))], share=0.5)
    assert [item.prompt for item in again.items if item.is_random] == by_chance
    assert work_through(database, project, ada) == [item.prompt for item in again.items]


def test_two_judges_who_disagree_are_asked_about(database, tmp_path):
    project, (ada, _) = make_project(database, 3)
    verdicts = {"q0": ("left", "left"), "q1": ("left", "right"), "q2": ("tie", "left")}

    def judged(case):
        made = [
            Judgment(left=left, right=right, verdict=verdict, judge=judge, kind="llm")
            for judge, verdict in zip("ab", verdicts[case.prompt.id], strict=True)
            for left, right in (("r0", "r1"), ("r0", "r2"), ("r1", "r2"))
        ]
        return msgspec.structs.replace(case, judgments=tuple(made))

    path = tmp_path / "judged.jsonl"
    write_cases(path, map(judged, cases(3)))
    plan = order(database, project, judged=[path])
    found = {item.prompt: item for item in plan.items}
    # 0.75 and 0.25 of two judges who contradict each other have the mean 0.5.
    assert found["q1"].priority == pytest.approx(1.0)
    assert found["q1"].disagreement == pytest.approx(1 - 0.8112781)
    assert found["q0"].priority == found["q0"].uncertainty == pytest.approx(0.8112781)
    assert [item.prompt for item in plan.items] == ["q1", "q2", "q0"]
    assert [source.name for source in plan.sources] == ["a", "b"]
    assert work_through(database, project, ada) == ["q1", "q2", "q0"]


def judged_file(path, judge, numbers, verdict="left"):
    """Write a case file in which a judge has compared the first two responses of some questions."""
    judgment = Judgment(left="r0", right="r1", verdict=verdict, judge=judge, kind="llm")
    write_cases(path, [msgspec.structs.replace(cases(1, first=each)[0], judgments=(judgment,)) for each in numbers])
    return path


def test_a_judge_in_two_files_is_refused_with_a_remedy_that_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = {key_of(case): case for case in cases(4)}
    halves = [judged_file(Path(f"{name}.jsonl"), "gpt", part) for name, part in (("one", (0, 1)), ("two", (2, 3)))]
    with pytest.raises(ConfigError, match=r"'gpt' is in one\.jsonl and in two\.jsonl") as error:
        read_committee([], halves, known, is_complete=False)
    command, option = re.search(r"steelyard (.+), then --judged (\S+)", str(error.value)).groups()
    assert CliRunner().invoke(build_app(), command.split()).exit_code == 0
    (member,) = read_committee([], [Path(option)], known, is_complete=True)
    assert member.name == "gpt"


def test_a_copy_of_a_file_counts_once(tmp_path):
    known = {key_of(case): case for case in cases(2)}
    path = score_lines(tmp_path / "model.jsonl", {0: SURE, 1: TIED})
    copy = shutil.copy(path, tmp_path / "copy.jsonl")
    with pytest.raises(ConfigError, match=r"copy\.jsonl has the same lines as .*model\.jsonl"):
        read_committee([path, copy], [], known, is_complete=True)
    judged = judged_file(tmp_path / "judged.jsonl", "gpt", (0, 1))
    with pytest.raises(ConfigError, match="has the same lines"):
        read_committee([], [judged, shutil.copy(judged, tmp_path / "again.jsonl")], known, is_complete=True)
    other = judged_file(tmp_path / "other.jsonl", "llama", (0, 1))
    assert [member.name for member in read_committee([path], [judged, other], known, is_complete=True)] == [
        "model",
        "gpt",
        "llama",
    ]


def test_numbers_of_a_program_replace_the_record_but_not_the_random_part(database, tmp_path):
    project, people = make_project(database, NUM)
    plan = order(database, project, [score_lines(tmp_path / "model.jsonl", unsure_from(8))], share=0.3)
    ((number, shown),) = take(database, project, people[0])
    (begun,) = prompts_of(database, [(number, shown)])
    by_chance = {item.prompt for item in plan.items if item.is_random}
    chosen = [item.prompt for item in plan.items if not item.is_random and item.prompt != begun]
    sent = {prompt: float(place) for place, prompt in enumerate(sorted(chosen))} | dict.fromkeys(by_chance, 99.0)

    def send_numbers(session):
        return set_priorities(session, session.get_one(StoredProject, project), sent, by=people[0], at=NOON)

    assert database.write(send_numbers) == (len(chosen), len(by_chance), 0)
    send(database, number, answer(shown))
    answer_all(database, project, people)

    def finish(session):
        for item in session.scalars(select(StoredItem)):
            item.state = "finished"

    database.write(finish)
    with database.reading() as session:
        exported = export_cases(session, session.get_one(StoredProject, project), evidence="aligned")
        notes = {case.prompt.id: case.meta["queue"] for case in exported}
    for prompt, note in notes.items():
        by_program = prompt in chosen
        assert [source["name"] for source in note["sources"]] == ["REST interface" if by_program else "model"]
        assert note["random"] == (prompt in by_chance)
        assert note["priority"] == (sent[prompt] if by_program else note["priority"])
    assert [notes[prompt]["place"] for prompt in sorted(chosen)] == list(range(len(chosen), 0, -1))


def test_what_was_begun_keeps_its_record_and_comes_first(database, tmp_path):
    project, (ada, bob) = make_project(database, NUM)
    order(database, project, [score_lines(tmp_path / "one.jsonl", unsure_from(8))])
    ((number, shown),) = take(database, project, ada)
    (begun,) = prompts_of(database, [(number, shown)])
    send(database, number, answer(shown))
    plan = order(database, project, [score_lines(tmp_path / "two.jsonl", unsure_from(0) | {3: SURE})])
    assert plan.num_begun == 1
    assert begun not in [item.prompt for item in plan.items]
    assert work_through(database, project, bob)[0] == begun
    first, second = rows(database, StoredQueue)
    of_item = {place.item_id: place.queue_id for place in rows(database, StoredQueuePlace)}
    items = {item.id: item.prompt for item in rows(database, StoredItem)}
    assert {items[item] for item, queue in of_item.items() if queue == first.id} == {begun}
    assert sum(queue == second.id for queue in of_item.values()) == NUM - 1


def test_the_audit_log_and_the_export_say_how_items_were_chosen(database, tmp_path):
    project, people = make_project(database, NUM)
    path = score_lines(tmp_path / "model.jsonl", unsure_from(8))
    plan = order(database, project, [path], share=0.3)
    answer_all(database, project, people)

    def finish(session):
        for item in session.scalars(select(StoredItem)):
            item.state = "finished"

    database.write(finish)
    with database.reading() as session:
        exported = list(export_cases(session, session.get_one(StoredProject, project), evidence="aligned"))
        (event,) = session.scalars(select(StoredEvent).where(StoredEvent.action == "queue ordered"))
    source = {"name": "model", "file": str(path), "sha256": plan.sources[0].sha256}
    assert event.detail["sources"] == [source]
    assert {case.prompt.id: case.meta["queue"]["random"] for case in exported} == {
        item.prompt: item.is_random for item in plan.items
    }
    assert all(case.meta["queue"]["sources"] == [source] for case in exported)
    # The record changes nothing but itself: resolve reads the file as it reads one without it.
    plain = [
        msgspec.structs.replace(case, meta={key: value for key, value in case.meta.items() if key != "queue"})
        for case in exported
    ]
    for name, content in (("with", exported), ("without", plain)):
        write_cases(tmp_path / f"{name}.jsonl", content)
        resolve(tmp_path / f"{name}.jsonl", tmp_path / name)
    resolved = [[case.ranking for case in read_cases(tmp_path / name / "cases.jsonl")] for name in ("with", "without")]
    assert resolved[0] == resolved[1]
    assert None not in resolved[0]


def test_exactly_as_many_answers_whoever_asks_at_once(database, tmp_path):
    project, people = make_project(database, NUM, num_people=6)
    order(database, project, [score_lines(tmp_path / "model.jsonl", unsure_from(5))], share=0.2)
    path = score_lines(tmp_path / "other.jsonl", unsure_from(3))

    def work(person):
        while taken := take(database, project, person):
            send(database, taken[0][0], answer(taken[0][1]))

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    # Where everybody is faster nothing is left to be ordered.
    with suppress(ConfigError):
        order(database, project, [path], share=0.2)
    for thread in threads:
        thread.join()
    assert len(rows(database, StoredAnswer)) == 2 * NUM
    assert {task.num_answered for task in rows(database, StoredTask)} == {2}


def test_labels_of_people_give_the_scores_their_scale(database, tmp_path):
    project, people = make_project(database, NUM)
    # Twelve questions with three pairs each make 36 labels; the model is right on those of r0 alone.
    answer_all(database, project, people, order=lambda _, shown: ["r0", "r2", "r1"])

    def reopen(session):
        for item in session.scalars(select(StoredItem).where(StoredItem.prompt != "q0")):
            item.state = "finished"

    database.write(reopen)

    def add(session):
        row = session.get_one(StoredProject, project)
        import_cases(session, row, cases(2, first=50), batch="b2", by=None, at=NOON)

    database.write(add)
    lines = unsure_from(99) | {50: SURE, 51: {"r0": 1.0, "r1": 0.5, "r2": 0.0}}
    plan = order(database, project, [score_lines(tmp_path / "model.jsonl", lines)])
    assert plan.sources[0].num_labels == 33
    assert plan.sources[0].fitted > 0
    assert [item.prompt for item in plan.items] == ["q51", "q50"]


WRONG = {
    '{"prompt": "q99", "scores": {"r0": 1, "r1": 2, "r2": 3}}': "unknown prompt id 'q99'",
    '{"prompt": "q0", "language": "fr", "scores": {"r0": 1, "r1": 2, "r2": 3}}': "has no item of language 'fr'",
    '{"prompt": "q1", "scores": {"r0": NaN, "r1": 2, "r2": 3}}': "the line is not JSON",
    '{"prompt": "q1", "scores": {"r0": 1e999, "r1": 2, "r2": 3}}': "out of range",
    '{"prompt": "q0", "scores": {"r0": 1, "r1": 2, "r2": 3}}': "has its scores at",
    '{"prompt": "q1", "scores": {"r0": 1, "r1": 2}}': "gives no score for response 'r2'",
    '{"prompt": "q1", "scores": {"r0": 1, "r1": 2, "r2": 3, "x": 1}}': "scores response 'x'",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_line_of_scores_is_named(tmp_path, line):
    path = score_lines(tmp_path / "model.jsonl", {0: SURE})
    path.write_text(path.read_text() + line + "\n")
    known = {key_of(case): case for case in cases(2)}
    with pytest.raises(RecordError) as error:
        read_committee([path], [], known, is_complete=False)
    assert WRONG[line] in str(error.value)
    assert f"{path}:2" in str(error.value)


def test_a_case_without_a_line_is_named_where_all_need_one(tmp_path):
    path = score_lines(tmp_path / "model.jsonl", {0: SURE})
    known = {key_of(case): case for case in cases(2)}
    with pytest.raises(RecordError, match="no line for prompt id 'q1'"):
        read_committee([path], [], known, is_complete=True)


def test_another_text_or_response_and_a_file_without_verdicts_are_refused(tmp_path):
    path = tmp_path / "judged.jsonl"
    known = {key_of(case): case for case in cases(2)}
    mine, other = cases(1), cases(1, first=1)
    changed = msgspec.structs.replace(other[0].responses[0], text="Another answer")
    write_cases(path, [*mine, msgspec.structs.replace(other[0], responses=(changed, *other[0].responses[1:]))])
    with pytest.raises(RecordError, match="another text") as error:
        read_committee([], [path], known, is_complete=False)
    assert f"{path}:2" in str(error.value)
    write_cases(path, [*mine, msgspec.structs.replace(other[0], responses=other[0].responses[1:])])
    with pytest.raises(RecordError, match="'r0' is not among its responses"):
        read_committee([], [path], known, is_complete=False)
    write_cases(path, mine)
    with pytest.raises(EvidenceError, match="no verdict of a model"):
        read_committee([], [path], known, is_complete=False)


def test_tasks_that_compare_nothing_have_no_queue(database, tmp_path):
    project, _ = make_project(database, 2, 2, kind="prompt_review")
    path = score_lines(tmp_path / "model.jsonl", {0: {"r0": 1, "r1": 2}})
    with pytest.raises(ConfigError, match="no open item compares responses"):
        order(database, project, [path])
