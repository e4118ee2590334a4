"""A folder with bench.toml is a benchmark: a headline, a rank on the leaderboard, and a name for what is missing."""

import hashlib
import json

import msgspec
import pytest

from steelyard.core.errors import ConfigError, EvidenceError, RecordError
from steelyard.core.types import Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.run_folder import read_run
from steelyard.stages.evaluate import Config, evaluate, read_bench_kind
from steelyard.stages.languages import Config as LanguagesConfig
from steelyard.stages.languages import languages
from steelyard.stages.leaderboard import leaderboard
from steelyard.views.language_table import VIEW as TABLE_VIEW
from steelyard.views.languages import VIEW as ALONE_VIEW
from steelyard.views.view import StageRun
from strategies import case

COUNTS = {"chat": 6, "数学": 4}
BENCH = 'version = "1.0"\nmeasures = ["accuracy", "exact_match"]\n[subsets]\nchat = 6\n"数学" = 4\n'


def made_case(subset, number):
    """The better answer is the longer one in chat, and in every second case of 数学."""
    better = "long" * 9 if subset == "chat" or number % 2 else "a"
    responses = (Response(id="a", text=better), Response(id="b", text="short"))
    one = case(f"{subset}{number}", "ab", subset=subset, ranking=(("a",), ("b",)))
    return msgspec.structs.replace(one, responses=responses)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "mine"
    made.mkdir()
    cases = [made_case(subset, number) for subset, total in COUNTS.items() for number in range(total)]
    write_cases(made / "cases.jsonl", cases)
    (made / "bench.toml").write_text(BENCH, encoding="utf-8")
    return made


def add_hash(folder):
    sha256 = hashlib.sha256((folder / "cases.jsonl").read_bytes()).hexdigest()
    with (folder / "bench.toml").open("a", encoding="utf-8") as file:
        file.write(f'[files]\n"cases.jsonl" = "{sha256}"\n')


def evaluated(folder, out, model="longer", **settings):
    config = Config(**{"num_resamples": 50, "baselines": (), **settings})
    return evaluate([folder], out, config, model=model)


def test_a_folder_with_the_file_has_a_headline_and_a_rank(folder, tmp_path):
    add_hash(folder)
    summary = evaluated(folder, tmp_path / "longer").summary
    # chat is all right, 数学 is half right; pairs and prompts are the same here.
    assert (summary.bench, summary.headline, summary.overall.value) == ("mine 1.0", "overall", 0.75)
    assert summary.overall.low < 0.75 < summary.overall.high
    evaluated(folder, tmp_path / "shorter", "shorter")
    board = leaderboard([tmp_path / "shorter", tmp_path / "longer"], out=tmp_path / "board").summary
    assert (board.bench, board.ranked_by) == ("mine 1.0", "overall")
    assert [(row.name, row.value) for row in board.rows] == [("longer", 0.75), ("shorter", 0.25)]
    assert board.missing == {}


def test_an_incomplete_bench_is_named_and_ranked_by_accuracy(folder, tmp_path):
    write_cases(folder / "cases.jsonl", list(read_cases(folder / "cases.jsonl"))[1:])
    for model in ("longer", "shorter"):
        assert evaluated(folder, tmp_path / model, model).summary.headline is None
    board = leaderboard([tmp_path / "longer", tmp_path / "shorter"], out=tmp_path / "board").summary
    assert board.missing == {"chat": "5 prompts, expected 6"}
    assert board.ranked_by == "accuracy"


def test_a_file_that_has_changed_is_refused_with_its_name(folder, tmp_path):
    add_hash(folder)
    write_cases(folder / "cases.jsonl", list(read_cases(folder / "cases.jsonl"))[1:])
    with pytest.raises(EvidenceError, match=r"cases\.jsonl: this file has changed since.* mine 1\.0"):
        evaluated(folder, tmp_path / "out")
    permitted = evaluated(folder, tmp_path / "out", bench={"files": {}}).summary
    assert permitted.missing == {"chat": "5 prompts, expected 6"}


def test_a_file_beside_the_listed_ones_is_refused(folder, tmp_path):
    add_hash(folder)
    write_cases(folder / "more.jsonl", [made_case("chat", 9)])
    with pytest.raises(EvidenceError, match=r"more\.jsonl: this file is not in the list"):
        evaluated(folder, tmp_path / "out")


def test_a_listed_file_that_is_not_in_the_folder_is_refused(folder, tmp_path):
    add_hash(folder)
    with (folder / "bench.toml").open("a", encoding="utf-8") as file:
        file.write('"gone.jsonl" = "0a"\n')
    with pytest.raises(EvidenceError, match=r"lists gone\.jsonl, which is not here"):
        evaluated(folder, tmp_path / "out")
    assert evaluated(folder, tmp_path / "out", bench={"files": {}}).summary.overall.value == 0.75


def test_the_table_that_is_read_is_not_among_the_files_left_out(folder, tmp_path, capsys):
    (folder / "notes.md").write_text("mine", encoding="utf-8")
    evaluated(folder, tmp_path / "out")
    shown = f"{folder}: data files: 1; settings: bench.toml; other files, left out: 1 (notes.md)\n"
    assert shown in capsys.readouterr().err


def test_settings_of_the_call_come_before_those_of_the_file(folder, tmp_path):
    bench = {"measures": ["accuracy"], "subsets": {"chat": 7}}
    run = evaluated(folder, tmp_path / "out", bench=bench)
    assert read_run(tmp_path / "out").config["bench"]["subsets"] == {"chat": 7, "数学": 4}
    assert run.config["bench"]["measures"] == ["accuracy"]
    assert run.summary.missing == {"chat": "6 prompts, expected 7"}


def test_files_of_subsets_are_read_beside_the_table(folder, tmp_path):
    for subset in COUNTS:
        chosen = [one for one in read_cases(folder / "cases.jsonl") if one.prompt.subset == subset]
        write_cases(folder / f"{subset}.jsonl", chosen)
    inputs = {"benches": [f"subsets={folder / subset}.jsonl" for subset in COUNTS]}
    settings = {}
    read_bench_kind(inputs, settings)
    config = Config(num_resamples=50, baselines=(), **settings)
    summary = evaluate(inputs["benches"], tmp_path / "out", config, model="longer").summary
    assert summary.overall.value == 0.75
    # A case file by itself is a plain benchmark, whatever lies beside it.
    plain = evaluate(
        [folder / "cases.jsonl"], tmp_path / "plain", Config(num_resamples=50, baselines=()), model="longer"
    )
    assert plain.summary.headline == "accuracy"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[subsets]\nchat = 6\n[subsets]\n", "bench.toml: not valid TOML"),
        ("[subset]\nchat = 6\n", "bench.toml:1: unknown setting 'subset'"),
        ("[subsets]\nchat = -1\n", "bench.toml:2: subsets.chat is -1"),
        ("[section.A]\nchat = 6\n", "bench.toml:1: unknown setting 'section'"),
        ("[sections.A]\nchat = 0\n", "bench.toml:2: sections.A.chat is 0\n  allowed: a number above 0"),
        (
            "[sections.A]\nchat = 6\n'数学' = 'x'\n",
            "bench.toml:3: sections.A.数学 is 'x'\n  allowed: a number above 0",
        ),
        (
            "[sections.A]\nchat = 1\n[sections.B]\nchat = 1\n",
            "bench.toml:1 at sections: the subset 'chat' is in 2 sections",
        ),
        ("[subsets]\nlaw = 1\n", "is of subset 'chat', which mine does not have"),
    ],
)
def test_a_wrong_table_is_named_with_its_file(folder, tmp_path, text, message):
    (folder / "bench.toml").write_text(text, encoding="utf-8")
    with pytest.raises((ConfigError, EvidenceError)) as refused:
        evaluated(folder, tmp_path / "out")
    assert message in str(refused.value)
    assert not (tmp_path / "out" / "run.json").exists()


@pytest.mark.parametrize(
    "text", ["[subsets]\nchat = 6\n数学 = 4\n", "[subsets]\nchat = 6\n[sections.数学]\nchat = 1\n"]
)
def test_a_name_in_other_letters_without_quotes_is_shown_with_them(folder, tmp_path, text):
    (folder / "bench.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="not valid TOML") as refused:
        evaluated(folder, tmp_path / "out")
    assert 'in quotes: "数学"' in refused.value.do


def test_two_benches_at_once_are_refused(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "bench.toml").write_text(BENCH, encoding="utf-8")
    write_cases(other / "cases.jsonl", [made_case("chat", 9)])
    with pytest.raises(ConfigError, match="two benchmarks at once"):
        evaluate([folder, other], tmp_path / "out", Config(), model="longer")


def test_the_kind_without_a_table_says_what_to_write(folder, tmp_path):
    (folder / "bench.toml").unlink()
    with pytest.raises(ConfigError, match="has no subset") as refused:
        evaluated(folder, tmp_path / "out", bench_kind="subsets")
    assert "bench.toml" in refused.value.do


def test_scores_of_the_whole_bench_are_those_of_its_kept_prompts_too(folder, tmp_path):
    """They were refused as scores of more cases, so that each list of kept prompts needed a file of its own."""
    cases = list(read_cases(folder / "cases.jsonl"))
    scores, kept = tmp_path / "scores.jsonl", tmp_path / "kept.json"
    lines = [{"prompt": case.prompt.id, "scores": {"a": 1.0, "b": 0.0}} for case in cases]
    scores.write_text("".join(json.dumps(line) + "\n" for line in lines))
    kept.write_text(json.dumps({"kept": [case.prompt.id for case in cases[3:]]}))
    config = Config(num_resamples=50, baselines=())
    run = evaluate([folder], tmp_path / "out", config, scores=scores, kept_prompts=kept)
    assert (run.counts.num_used, run.counts.noted["not among the kept prompts"]) == (7, 3)
    lines.append({"prompt": "chat99", "scores": {"a": 1.0, "b": 0.0}})
    scores.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(RecordError, match=r"scores\.jsonl:11: unknown prompt id 'chat99'"):
        evaluate([folder], tmp_path / "other", config, scores=scores, kept_prompts=kept)


def test_a_bench_takes_cases_that_spell_its_languages_in_another_way(tmp_path):
    """Cases in FLORES codes were no language of a bench in BCP 47, and other spellings had no cases."""
    made = tmp_path / "bench"
    made.mkdir()
    spellings = ("eng_Latn", "deu_Latn", "zho_Hans", "zho_Hant")
    cases = [
        case(f"p{number}", "ab", subset="chat", language=language, ranking=(("a",), ("b",)))
        for number in range(3)
        for language in spellings
    ]
    write_cases(made / "cases.jsonl", cases)
    columns = 'languages = ["de-DE", ["zh-CN", "zh-TW"]]\nbaseline_language = "en"\n'
    (made / "bench.toml").write_text(f"{columns}[subsets]\nchat = 3\n")
    summary = evaluated(made, tmp_path / "out").summary
    assert (summary.headline, summary.overall.n, summary.missing) == ("overall", 9, None)
    assert set(summary.languages) == {"de-DE", "zh-CN", "zh-TW", "eng_Latn"}


@pytest.mark.parametrize("has_scores", [True, False])
def test_two_items_of_a_prompt_in_one_language_are_refused_in_every_spelling(has_scores, tmp_path):
    """They counted as two items: a prompt had twice the weight of others in that language."""
    first, second = (
        case("p", "ab", subset="chat", language=language, ranking=(("a",), ("b",))) for language in ("de", "deu_Latn")
    )
    write_cases(tmp_path / "cases.jsonl", [first, second])
    lines = [
        {"prompt": "p", "language": each.prompt.language, "scores": {"a": 1.0, "b": 0.0}} for each in (first, second)
    ]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = {"scores": tmp_path / "scores.jsonl"} if has_scores else {"model": "longer"}
    with pytest.raises(
        RecordError, match=r"cases\.jsonl:2: prompt id 'p', language 'deu_Latn', is also in .*:1, as 'de'"
    ):
        evaluate([tmp_path / "cases.jsonl"], tmp_path / "out", Config(baselines=()), **source)


def test_cases_without_a_language_are_advised_to_be_converted(tmp_path):
    """The advice was a setting of the model."""
    made = tmp_path / "bench"
    made.mkdir()
    write_cases(made / "cases.jsonl", [case("p", "ab", subset="chat", ranking=(("a",), ("b",)))])
    (made / "bench.toml").write_text('languages = ["de"]\n[subsets]\nchat = 1\n')
    with pytest.raises(EvidenceError, match=r"has no language\n  do: convert each language by itself: .*convert"):
        evaluated(made, tmp_path / "out")


def test_languages_say_that_a_section_is_missing_where_their_means_leave_it_out(tmp_path):
    made = tmp_path / "bench"
    made.mkdir()
    cases = [
        msgspec.structs.replace(
            case(f"{subset}{number}", "ab", subset=subset, language=language, ranking=(("a",), ("b",))),
        )
        for subset in ("chat", "math")
        for number in range(4)
        for language in ("en", "de")
    ]
    write_cases(made / "cases.jsonl", cases)
    table = "[sections.A]\nchat = 1\n[sections.B]\nmath = 1\n"
    (made / "bench.toml").write_text(f'languages = ["de"]\nbaseline_language = "en"\n{table}')
    (tmp_path / "kept.json").write_text(json.dumps({"kept": [f"chat{number}" for number in range(4)]}))
    config = Config(num_resamples=50, baselines=())
    for model in ("longer", "shorter"):
        evaluate([made], tmp_path / model, config, model=model, kept_prompts=tmp_path / "kept.json")
    alone = languages([tmp_path / "longer"], out=tmp_path / "alone", config=LanguagesConfig(num_resamples=20))
    both = languages(
        [tmp_path / "longer", tmp_path / "shorter"], out=tmp_path / "both", config=LanguagesConfig(num_resamples=20)
    )
    for run, view in ((alone, ALONE_VIEW), (both, TABLE_VIEW)):
        sentences = {each.key: each.values for each in view.sentences(StageRun("out", None, run.summary))}
        assert sentences["say_part_of_bench"]["missing"].startswith("math (")
