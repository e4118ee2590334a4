import msgspec

from report_figures import accepted, rows
from report_sections import section_of
from steelyard.evaluation.tables import word
from steelyard.io.cases import write_cases
from steelyard.report.page import render
from steelyard.report.sources import read_sources
from steelyard.stages.audit import audit
from steelyard.views.audit import VIEW, conflicted_examples, length_figure
from steelyard.views.page import page_of, read_data
from strategies import case

HOSTILE = "</script><script>alert(1)</script><b>"


def audited(tmp_path, cases, name="audited"):
    write_cases(tmp_path / f"{name}.jsonl", cases)
    return audit(tmp_path / f"{name}.jsonl", tmp_path / name).summary


def many(number=24):
    return [
        case(
            id=f"p{at}", responses="ab", text=f"שאלה {at} {chr(0x4E00 + 53 * at)}",
            ranking=(("a",), ("b",)) if at else (("b",), ("a",)),
        )
        for at in range(number)
    ]  # fmt: skip


def test_every_finding_has_its_panel_and_its_sentence(tmp_path):
    circle = case(id="c", responses="abc", judgments=["a>b", "b>c", "c>a"], text="为什么？")
    same = case(id="same", responses="ab")
    empty = tuple(msgspec.structs.replace(response, text="") for response in same.responses)
    same = msgspec.structs.replace(same, responses=empty)
    twins = [case(id=name, responses="ab", text=f"请用三句话解释为什么天空是蓝色的{name}") for name in ("x", "y")]
    cases = [*many(), circle, same, *twins]
    section = section_of(VIEW, audited(tmp_path, cases), {"a": cases})
    assert [panel.title for panel in section.panels] == [
        word("disputed_labels"), word("conflicted_prompts"), word("duplicate_prompts"), word("equal_responses"),
        word("lengths"), word("odd_lengths"),
    ]  # fmt: skip
    assert [sentence.key for sentence in section.sentences][1:] == [
        "say_conflicted_prompts", "say_duplicate_prompts", "say_equal_responses", "say_empty_responses",
    ]  # fmt: skip
    shown = section.panels[1].examples[0]
    assert shown.about.values == {"cycle": "A > B > C > A"}
    assert [title for title, _ in shown.answers] == ["A", "B", "C"]
    assert section.panels[1].tables[0].table.rows[0][2] == "A > B > C > A"


def test_without_a_finding_one_sentence_says_so(tmp_path):
    section = section_of(VIEW, audited(tmp_path, [case(responses="ab")]))
    assert [sentence.key for sentence in section.sentences] == ["say_nothing_to_check"]
    assert section.panels == ()


def test_the_lengths_of_better_and_worse_answers_are_shares(tmp_path):
    spec = accepted(length_figure(audited(tmp_path, many()).lengths))
    assert [(row["row"], row["share"], row["n"]) for row in rows(spec)] == [("1–9", 1.0, 24), ("1–9", 1.0, 24)]


def test_lengths_by_author_need_two_authors(tmp_path):
    def of(*authors):
        cases = [
            msgspec.structs.replace(
                one, responses=tuple(
                    msgspec.structs.replace(response, author=author)
                    for response, author in zip(one.responses, authors, strict=True)
                ),
            )
            for one in many(2)
        ]  # fmt: skip
        return section_of(VIEW, audited(tmp_path, cases, "-".join(map(str, authors)))).panels

    assert word("lengths_by_author") not in [panel.title for panel in of(None, None)]
    (panel,) = [panel for panel in of("模型甲", None) if panel.title == word("lengths_by_author")]
    assert [row[:2] for row in panel.tables[0].table.rows] == [(word("no_author"), "2"), ("模型甲", "2")]


def test_the_page_of_an_audit_alone_has_the_texts_and_nothing_in_them_runs(tmp_path):
    hostile = case(id=HOSTILE, responses="abc", judgments=["a>b", "b>c", "c>a"], text=HOSTILE)
    audited(tmp_path, [hostile])
    page = page_of(
        read_data(read_sources([tmp_path / "audited"])), title=None, language="zh", budget=10**6, version="0"
    )
    html = render(page)
    assert HOSTILE not in html
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in html
    assert "#item=%3C/script%3E" in html
    assert "answer a" in html


def test_examples_of_unknown_prompts_are_left_out(tmp_path):
    summary = audited(tmp_path, [case(responses="abc", judgments=["a>b", "b>c", "c>a"])])
    assert list(conflicted_examples(summary.conflicted, {})) == []
