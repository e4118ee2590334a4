import re

import msgspec
import pytest

from report_runs import all_runs, evaluate_run, made_cases, resolve_run, train_run
from steelyard.core.types import InputFinding, Rating
from steelyard.evaluation.tables import Sentence, word
from steelyard.io.cases import write_cases
from steelyard.report.page import page_strings, render
from steelyard.report.sources import read_sources
from steelyard.stages.audit import audit
from steelyard.stages.backbone import Config as BackboneConfig
from steelyard.stages.backbone import backbone
from steelyard.stages.compare import Config as CompareConfig
from steelyard.stages.compare import compare
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.languages import Config as LanguagesConfig
from steelyard.stages.languages import languages
from steelyard.stages.leaderboard import Config as BoardConfig
from steelyard.stages.leaderboard import leaderboard
from steelyard.stages.report import report
from steelyard.stages.split import Config as SplitConfig
from steelyard.stages.split import split
from steelyard.views.page import page_of, read_data
from strategies import case, judgment


def page(runs):
    return page_of(read_data(read_sources(runs)), title=None, language="en", budget=2**20, version="1")


def test_a_whole_path_has_every_section(tmp_path):
    made = page(all_runs(tmp_path, 12))
    assert [section.anchor for section in made.sections] == ["accuracy", "losses", "rewards", "conflicts", "training"]
    assert [section.anchor for section in made.sections if section.is_folded] == ["rewards", "conflicts", "training"]
    lost = made.sections[1].panels[0].tables[0].table
    assert [row[:3] for row in lost.rows] == [
        (source.name, str(source.run.counts.num_in), str(source.run.counts.num_used))
        for source in read_sources([tmp_path / row[0] for row in lost.rows])
    ]
    assert [one.stage for one in made.protocols] == ["resolve", "train", "evaluate"]
    assert len(made.packed.lines) == 12


@pytest.mark.parametrize(
    ("make", "anchors", "num_items"),
    [
        (lambda parent: resolve_run(parent / "r", made_cases(5)), ["conflicts"], 5),
        (lambda parent: train_run(parent / "t"), ["training"], 0),
        (lambda parent: evaluate_run(parent / "e", made_cases(5)), ["accuracy", "rewards"], 5),
    ],
)
def test_any_run_alone_makes_a_page(tmp_path, make, anchors, num_items):
    made = page([make(tmp_path)])
    assert [section.anchor for section in made.sections] == anchors
    assert len(made.packed.lines) == num_items
    assert made.sentences


@pytest.mark.parametrize("num_findings", [0, 1])
def test_no_sentence_of_a_page_stands_at_its_top_and_in_a_section(tmp_path, num_findings):
    """The findings of the input have a section of their own, beside which that of the stage repeated its sentences."""
    write_cases(tmp_path / "c.jsonl", made_cases(5))
    audit(tmp_path / "c.jsonl", tmp_path / "a")
    run = read_sources([tmp_path / "a"])[0]
    findings = (InputFinding(check="repeated_prompts", count=1, total=5),) * num_findings
    runs = [run._replace(run=msgspec.structs.replace(run.run, findings=findings))]
    made = page_of(read_data(runs), title=None, language="en", budget=2**20, version="1")
    assert made.sentences
    assert [section.anchor for section in made.sections if section.sentences] == ["input_checks"] * num_findings


def test_a_page_explains_only_the_terms_that_it_uses(tmp_path):
    """Settings have names of measures; definitions and longer words have those of other terms."""
    write_cases(tmp_path / "c.jsonl", made_cases(5))
    audit(tmp_path / "c.jsonl", tmp_path / "a")
    source = read_sources([tmp_path / "a"])[0]
    run = msgspec.structs.replace(source.run, config={"metric": "exact match"})
    html = render(page_of(read_data([source._replace(run=run)]), title=None, language="en", budget=9, version="1"))
    assert "exact match" in html
    terms = re.findall(r'<dt><span class="t" lang="en">(.*?)</span>', html)
    assert "Accuracy" in terms
    assert "Exact match" not in terms
    strings = page_strings()
    strings.text("first-tier frontiers")
    assert not strings.mentions("tier")
    strings.text("in two tiers")
    assert strings.mentions("tier")


def test_a_page_explains_no_term_of_a_part_that_it_does_not_have(tmp_path):
    """Words of the template counted as shown once it was compiled: each page explained tiers."""
    (tmp_path / "table.csv").write_text("model,de,fr\nm,60,70\n")
    languages(out=tmp_path / "out", table=tmp_path / "table.csv")
    report([tmp_path / "out"], out=tmp_path / "report.html")
    terms = re.findall(r'<dt><span class="t" lang="en">(.*?)</span>', (tmp_path / "report.html").read_text("utf-8"))
    assert "Tier" not in terms


def test_no_line_of_a_page_breaks_within_an_interval():
    strings = page_strings()
    for text in ("95.1–96.4%", "+0.6 … +17.5", "−3.3 … +4.5", "1,000.5–2,000"):
        assert strings.text(f"n = 4: {text} <b>") == f'<bdi>n = 4: <span class="range">{text}</span> &lt;b&gt;</bdi>'
        sentence = Sentence("say_not_disputed", {"why": text})
        assert f'<b><bdi><span class="range">{text}</span></bdi></b>' in strings.sentence(sentence)


def test_two_evaluations_of_one_model_are_told_apart_by_their_runs(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    cases = made_cases(5)
    runs = [evaluate_run(tmp_path / number / "e", cases, seed=int(number)) for number in "12"]
    made = page(runs)
    assert made.models == ("测试模型-0.5b (e)", "测试模型-0.5b (2/e)")
    # Each has its first card and sentence at the top; none of them stands for the others.
    assert [(card.title, card.about) for card in made.cards] == [(word("accuracy"), name) for name in made.models]
    assert [sentence.values.get("model") for sentence in made.sentences] == list(made.models)
    assert [group.title for group in made.groups] == list(made.models)
    assert made.groups[1].sentences[0].values["model"] == made.models[1]
    assert len(made.groups[0].cards) > 1
    numbers = [float(card.number.removesuffix("%")) for card in made.cards]
    assert numbers == sorted(numbers)  # the hardest evaluation is first
    assert all(word("lead_over_best") in card.below for card in made.cards)
    assert page(runs[:1]).groups == ()
    assert len(page(runs[:1]).cards) > 1
    assert len(made.packed.lines) == 5
    assert [len(msgspec.json.decode(line)[4]) for line in made.packed.lines] == [2] * 5


def test_simulated_data_are_said_to_be(tmp_path):
    cases = made_cases(3)
    assert page([resolve_run(tmp_path / "a", cases)]).is_simulated
    assert not page([resolve_run(tmp_path / "b", cases, simulated=False)]).is_simulated


def test_what_evaluate_measures_other_measures_has_a_section_in_both_languages(tmp_path):
    ratings = tuple(Rating(response=name, rater="r", kind="human", dimension="d", value=1) for name in "abc")
    said = [judgment("a>b", judge=name) for name in ("ann", "bob")]
    shared = {"ranking": (("a",), ("b",), ("c",)), "ratings": ratings}
    places = [
        {"language": "zh" if index % 2 else "he", "category": ("数学" if index % 3 else "code",)} for index in range(12)
    ]
    cases = [case(f"p{index}", "abc", said, **own, **shared) for index, own in enumerate(places)]
    write_cases(tmp_path / "bench.jsonl", cases)
    evaluate([tmp_path / "bench.jsonl"], tmp_path / "out", EvaluateConfig(num_resamples=20), model="random")
    made = page([tmp_path / "out"])
    (section,) = [section for section in made.sections if section.anchor == "more_measures"]
    assert len(section.panels) == 7
    strings = page_strings().table
    told = re.findall(r"@@([a-z0-9_]+)\|", msgspec.json.encode(section).decode())
    for key in {*told, section.anchor, *(panel.note for panel in section.panels if panel.note)}:
        assert set(strings[key]) == {"en", "zh"}, key
    assert 'id="more_measures"' in render(made)


def compared(folder):
    """A comparison of three models on 40 prompts, and the folder of one of the evaluations."""
    write_cases(folder / "bench.jsonl", [case(f"p{index}", "abc", ranking=(("a",), ("b", "c"))) for index in range(40)])
    runs = []
    for model in ("first", "longer", "random"):
        runs.append(folder / model)
        evaluate([folder / "bench.jsonl"], runs[-1], EvaluateConfig(num_resamples=20, baselines=()), model=model)
    compare(runs, folder / "compared", CompareConfig(num_resamples=100))
    return folder / "compared", runs[0]


def test_a_comparison_alone_has_its_section_in_both_languages(tmp_path):
    made = page([compared(tmp_path)[0]])
    assert [section.anchor for section in made.sections] == ["comparison"]
    (section,) = made.sections
    assert len(section.panels[0].tables[0].table.rows) == len(section.panels[1].tables[0].table.rows) == 3
    assert made.sentences[0].values["models"] == "3"
    strings = page_strings().table
    told = re.findall(r"@@([a-z0-9_]+)\|", msgspec.json.encode(section).decode())
    for key in {*told, section.anchor, "say_compared", *(panel.note for panel in section.panels)}:
        assert set(strings[key]) == {"en", "zh"}, key
    assert 'id="comparison"' in render(made)


def test_runs_of_stages_without_a_section_show_their_records(tmp_path):
    comparison, _ = compared(tmp_path)
    write_cases(tmp_path / "texts.jsonl", made_cases(3))
    backbone(tmp_path / "texts.jsonl", tmp_path / "base", BackboneConfig(vocabulary=300))
    made = page([tmp_path / "base"])
    (section,) = made.sections
    assert section.anchor == "other_runs"
    counts, numbers = section.panels[0].tables
    assert (word("used"), "3") in counts.table.rows
    assert (word("record_vocabulary", "vocabulary"), "300") in numbers.table.rows
    assert made.sentences[0].values == {"runs": "1", "stages": "backbone"}
    check_words(section)
    assert [each.anchor for each in page([comparison, tmp_path / "base"]).sections] == [
        "losses",
        "comparison",
        "other_runs",
    ]
    report([tmp_path / "base"], tmp_path / "page")
    assert 'id="other_runs"' in (tmp_path / "page" / "report.html").read_text(encoding="utf-8")


def test_a_leaderboard_alone_has_its_section_in_both_languages(tmp_path):
    compared(tmp_path)
    leaderboard(
        [tmp_path / name for name in ("first", "random")], out=tmp_path / "board", config=BoardConfig(num_resamples=50)
    )
    made = page([tmp_path / "board"])
    (section,) = made.sections
    rows = section.panels[0].tables[0].table.rows
    # `first` is always right, and on 40 prompts of two pairs beyond doubt better than chance.
    assert [row[:4] for row in rows] == [("first", "1", "a", "100.0%"), ("random", "2", "b", rows[1][3])]
    check_words(section)


def test_languages_alone_have_their_section_in_both_languages(tmp_path):
    cases = [case(f"p{n}", "ab", language=name, ranking=(("a",), ("b",))) for name in ("en", "he") for n in range(20)]
    write_cases(tmp_path / "bench.jsonl", cases)
    evaluate(
        [tmp_path / "bench.jsonl"], tmp_path / "run", EvaluateConfig(num_resamples=20, baselines=()), model="first"
    )
    languages([tmp_path / "run"], out=tmp_path / "languages", config=LanguagesConfig(num_resamples=20))
    made = page([tmp_path / "languages"])
    (section,) = made.sections
    english, hebrew = section.panels[0].tables[0].table.rows
    assert (english[0], english[1], english[3]) == (word("name_of_en", "English"), "100.0%", "\N{EN DASH}")
    assert (hebrew[0], hebrew[1], hebrew[3]) == (word("name_of_he", "Hebrew"), "100.0%", "0.0")
    assert made.sentences[0].key == "say_languages"
    assert made.sentences[0].values["baseline"] == word("name_of_en", "English")
    check_words(section)


def test_the_baseline_language_is_named(tmp_path):
    cases = [case(f"p{n}", "ab", language=name, ranking=(("a",), ("b",))) for name in ("zh", "he") for n in range(20)]
    write_cases(tmp_path / "bench.jsonl", cases)
    evaluate(
        [tmp_path / "bench.jsonl"], tmp_path / "run", EvaluateConfig(num_resamples=20, baselines=()), model="first"
    )
    languages(
        [tmp_path / "run"], out=tmp_path / "out", config=LanguagesConfig(baseline_language="zh", num_resamples=20)
    )
    made = page([tmp_path / "out"])
    assert made.sentences[0].values["baseline"] == word("name_of_zh", "Chinese")
    strings = page_strings()
    assert "the drop from <b><bdi>Chinese</bdi></b>" in strings.sentence(made.sentences[0])
    assert "say_chosen_baseline" not in [sentence.key for sentence in made.sentences]
    languages([tmp_path / "run"], out=tmp_path / "chosen", config=LanguagesConfig(num_resamples=20))
    chosen = page([tmp_path / "chosen"]).sentences[1]
    assert "the baseline is <b><bdi>Chinese</bdi></b>" in strings.sentence(chosen)
    texts = [
        strings.table[key]["en"] for key in ("drop", "relative_drop", "note_languages", "note_languages_not_alike")
    ]
    assert not [text for text in texts if "English" in text]


def check_words(section):
    """Every word of a section stands in both languages."""
    strings = page_strings().table
    told = re.findall(r"@@([a-z0-9_]+)\|", msgspec.json.encode(section).decode())
    for key in {*told, section.anchor, *(panel.note for panel in section.panels)} - {""}:
        if not key.startswith("why_"):
            assert set(strings[key]) == {"en", "zh"}, key


def test_a_page_is_titled_after_what_it_shows(tmp_path):
    (tmp_path / "我的数据").mkdir()
    resolved = resolve_run(tmp_path / "我的数据" / "resolved", made_cases(3))
    evaluated = evaluate_run(tmp_path / "我的数据" / "e", made_cases(3))
    other = evaluate_run(tmp_path / "我的数据" / "f", made_cases(3), seed=1)
    title = page([resolved]).title
    shown = [page_strings().translate(title, language) for language in ("en", "zh")]
    assert shown == ["Conflicts · resolved", "判断冲突 · resolved"]
    assert page([resolved, evaluated]).title.startswith("测试模型-0.5b · ")
    assert page([resolved, evaluated, other]).title == "我的数据"


def test_a_long_table_shows_its_first_rows_and_folds_the_rest(tmp_path):
    cases = [case(f"p{n}", "ab", text=f"{n * 7919}", category=(f"category {n}",)) for n in range(20)]
    write_cases(tmp_path / "cases.jsonl", cases)
    split(tmp_path / "cases.jsonl", tmp_path / "out", SplitConfig(parts={"a": 0.5, "b": 0.5}, near_duplicates="off"))
    html = render(page([tmp_path / "out"]))
    section = html.split('<section id="splits">')[1].split("</section>")[0]
    assert section.count('<tr class="rest">') == 12
    # Eight of the twenty categories, and the two parts in the table before.
    assert section.count('<tr><th scope="row"') == 8 + 2
    assert '<div class="folded"><details>' in section


def test_benches_have_the_names_of_their_files_and_folders_tell_equal_ones_apart(tmp_path):
    for name, best in (("one", "a"), ("other", "b")):
        (tmp_path / name).mkdir()
        ranking = ((best,), tuple({"a", "b"} - {best}))
        write_cases(tmp_path / name / "test.jsonl", [case(f"p{index}", "ab", ranking=ranking) for index in range(20)])
    runs = []
    for name, model in (("one", "longer"), ("one", "random"), ("other", "longer")):
        runs.append(tmp_path / f"{name}-{model}")
        config = EvaluateConfig(num_resamples=20, baselines=())
        evaluate([tmp_path / name / "test.jsonl"], runs[-1], config, model=model)
    accuracy = page(runs).sections[0]
    assert [panel.title for panel in accuracy.panels[:2]] == ["one/test", "longer (other-longer) · other/test"]
    assert page(runs[:1]).title == "longer · test"
    assert page(runs[:2]).sections[0].panels[0].title == "test"
