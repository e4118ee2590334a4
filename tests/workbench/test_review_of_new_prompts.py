"""The second source of prompts, from a file of open data to reviewed prompts with responses."""

import json

from chat_server import record
from steelyard.core.types import Case, Message, Prompt
from steelyard.io.cases import read_cases, write_cases
from steelyard.stages.sample import sample
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.simulated_projects import import_batch, start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.tables import StoredProject
from task_kind_cases import rules_for

SUBJECTS = (
    "重力",
    "光合作用",
    "潮汐",
    "النوم",
    "नींद",
    "memory",
    "trade",
    "rhythm",
    "ज्वार",
    "ريح",
    "גשם",
    "雪",
    "rust",
    "yeast",
    "glass",
    "salt",
    "debt",
    "maps",
    "ink",
    "bees",
    "ice",
)
NEW = "Explain {} to a ten-year-old who has just asked you about it on a walk, in at most eighty words: {}."


def planned(folder, name, replies, **plan):
    chat = record(folder / f"{name}.jsonl", *replies) | {"name": name}
    (folder / f"{name}.json").write_text(json.dumps({"models": [{"chat": chat}], **plan}), "utf-8")
    return folder / f"{name}.json"


def test_open_prompts_are_rewritten_reviewed_and_answered(database, tmp_path):
    opened = [
        Case(prompt=Prompt(id=f"p{number}", messages=(Message(role="user", content=f"{subject}?"),)), responses=())
        for number, subject in enumerate(SUBJECTS)
    ]
    write_cases(tmp_path / "open.jsonl", opened)
    replies = [{"contains": [f"\n{each}?\n"], "text": NEW.format(each, each * 9)} for each in SUBJECTS]
    plan = planned(tmp_path, "writer", replies, rewrite={"ways": ["situate"], "near_duplicates": 1.0})
    sample(tmp_path / "open.jsonl", plan, tmp_path / "new")
    new = list(read_cases(tmp_path / "new" / "cases.jsonl"))
    assert [case.prompt.meta["rewritten"]["parent"] for case in new] == [case.prompt.id for case in opened]

    simulation = start_project(database, new, seed=3, begun_at=0.0, num_annotators=4, tasks=rules_for("prompt_review"))
    import_batch(simulation, new, "b")
    states = work_until_finished(simulation)
    assert set(states) <= {"finished", "dropped"}
    with database.reading() as session:
        project = session.get_one(StoredProject, simulation.crew.project)
        reviewed = list(export_cases(session, project, evidence="both"))
    texts = {case.prompt.id: case.prompt.messages[-1].content for case in new}
    decisions = [case.meta["prompt_review"]["decision"] for case in reviewed]
    assert {*decisions} <= {"keep", "revise"}
    assert 0 < len(reviewed) < len(new)  # some are refused
    for case, decision in zip(reviewed, decisions, strict=True):
        assert (case.prompt.messages[-1].content == texts[case.prompt.id]) == (decision == "keep")
        assert case.prompt.meta["rewritten"]["way"] == "situate"

    write_cases(tmp_path / "reviewed.jsonl", reviewed)
    sample(tmp_path / "reviewed.jsonl", planned(tmp_path, "model", [{"text": "An answer."}]), tmp_path / "sampled")
    assert all(len(case.responses) == 1 for case in read_cases(tmp_path / "sampled" / "cases.jsonl"))
