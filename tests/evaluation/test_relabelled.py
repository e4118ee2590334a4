import pytest
from msgspec.structs import replace

from steelyard.core.errors import ConfigError, EvidenceError, RecordError
from steelyard.core.types import Case, Judgment, Message, Pair, Prompt, Response
from steelyard.evaluation.measures.label_error import MEASURE
from steelyard.io.cases import write_cases
from steelyard.report.leaderboard import as_markdown, as_page, ceiling_cells
from steelyard.stages.compare import Config as CompareConfig
from steelyard.stages.compare import compare
from steelyard.stages.evaluate import Config, evaluate
from steelyard.stages.leaderboard import Config as LeaderboardConfig
from steelyard.stages.leaderboard import leaderboard
from steelyard.views import bench_table
from steelyard.views import compare as compare_view
from steelyard.views.view import NO_SOURCES, StageRun

CONFIG = Config(num_resamples=200, baselines=())
TEXTS = {"a": "the longest answer", "b": "an answer", "c": "short"}


def ranked(index, ranking="abc", *, judgments=(), texts=TEXTS, **fields):
    """A case whose responses are ``texts``. ``ranking``: ids, best first; or tiers between bars; or None."""
    tiers = None if ranking is None else tuple(map(tuple, ranking.split("|") if "|" in ranking else ranking))
    prompt = Prompt(
        id=f"p{index}", messages=(Message(role="user", content=f"问题 {index}"),), category=("chat",), language="zh"
    )
    responses = tuple(Response(id=name, text=text) for name, text in texts.items())
    return Case(prompt=prompt, responses=responses, judgments=judgments, **({"ranking": tiers} | fields))


def verdict(short, judge="expert", kind="human"):
    left, sign, right = short
    name = {">": "left", "<": "right", "=": "tie", "?": "none"}[sign]
    return Judgment(left=left, right=right, verdict=name, judge=judge, kind=kind)


BENCH = [ranked(index) for index in range(60)]


@pytest.fixture
def run(tmp_path):
    def evaluated(again, *, bench=BENCH, config=CONFIG, **inputs):
        write_cases(tmp_path / "bench.jsonl", bench)
        write_cases(tmp_path / "experts.jsonl", again)
        files = {"relabelled": tmp_path / "experts.jsonl", "model": "longer"} | inputs
        return evaluate([tmp_path / "bench.jsonl"], tmp_path / "out", config, **files, force=True)

    return evaluated


def label_error(done):
    return done.summary.measures.label_error


def test_wrong_labels_are_counted_and_the_ceiling_follows(run):
    # Of 20 prompts of three pairs each, two have one pair the wrong way round and one has all of them.
    again = [ranked(0, "bac"), ranked(1, "acb"), ranked(2, "cba"), *(ranked(index) for index in range(3, 20))]
    found = label_error(run(again))
    counts = found.relabelled
    assert (counts.num_prompts, counts.num_pairs, counts.num_wrong, counts.num_complete) == (20, 60, 5, 20)
    assert (counts.num_undecided, counts.num_unlabelled, counts.num_judged, counts.effective_labels) == (0, 0, 0, 1)
    assert found.label.micro.value == pytest.approx(5 / 60)
    assert found.perfect.micro.value == pytest.approx(55 / 60)
    assert found.perfect.micro.low < 55 / 60 < found.perfect.micro.high
    # The longer answer is right on every label of the bench, and nearer to them than the truth is.
    assert found.distance.micro.value == pytest.approx(-5 / 60)
    assert found.exact_match.micro.value == pytest.approx(17 / 20)
    assert found.exact_distance.micro.value == pytest.approx(17 / 20 - 1)
    assert found.most is found.person is None


def test_the_record_counts_the_relabelled_prompts_and_hashes_the_file(run):
    done = run(BENCH[:10])
    assert done.counts.noted["relabelled prompts"] == 10
    assert "relabelled" in done.inputs


def test_pairs_left_undecided_are_counted_and_in_no_value(run):
    again = [
        ranked(0, "ab|c"),  # a and b in one tier
        ranked(1, None, judgments=(verdict("a=b"), verdict("b?c"))),  # judged, and not decided
        ranked(2, None),  # returned without a word: three pairs
        ranked(3, None, pairs=(Pair(better="a", worse="c"), Pair(better="b", worse="a"), Pair(better="a", worse="b"))),
        *(ranked(index) for index in range(4, 24)),
    ]
    found = label_error(run(again))
    # Decided are two pairs of p0, one of p3, and all of twenty prompts.
    assert (found.relabelled.num_pairs, found.relabelled.num_wrong) == (63, 0)
    assert found.relabelled.num_undecided == 1 + 2 + 3 + 1
    assert found.relabelled.num_complete == 20


def test_decided_pairs_without_a_label_are_counted(run):
    bench = [ranked(index, "ab|c") for index in range(40)]
    found = label_error(run([ranked(index) for index in range(20)], bench=bench))
    assert (found.relabelled.num_pairs, found.relabelled.num_unlabelled) == (40, 20)


def test_a_pair_of_the_responses_may_be_relabelled_alone_and_in_another_order(run):
    again = [ranked(index, "cb", texts={"c": TEXTS["c"], "b": TEXTS["b"]}) for index in range(30)]
    found = label_error(run(again))
    assert (found.relabelled.num_pairs, found.relabelled.num_wrong, found.relabelled.num_complete) == (30, 30, 0)
    assert found.label.micro.value == 1
    assert found.exact_match is None


def test_another_spelling_of_a_text_is_the_same_text(run):
    texts = TEXTS | {"b": " An  answer\r\n"}
    assert label_error(run([ranked(index, texts=texts) for index in range(20)])).relabelled.num_pairs == 60


def test_a_bench_of_single_pairs_has_no_exact_match_of_its_own(run):
    texts = {"a": TEXTS["a"], "b": TEXTS["b"]}
    bench = [ranked(index, "ab", texts=texts) for index in range(60)]
    found = label_error(run([ranked(index, "ba", texts=texts) for index in range(20)], bench=bench))
    assert found.exact_match is None
    assert found.label.micro.value == 1


def test_verdicts_of_an_llm_on_all_pairs_are_used(run):
    # Every fifth prompt has a wrong label of a and b, which the LLM contradicts.
    bench = [
        ranked(index, judgments=(verdict("a<b" if index % 5 == 0 else "a>b", "gpt", "llm"),)) for index in range(200)
    ]
    again = [ranked(index, "bac" if index % 5 == 0 else "abc") for index in range(0, 200, 3)]
    found = label_error(run(again, bench=bench)).relabelled
    assert found.num_judged == 200
    assert found.effective_labels > 1


@pytest.mark.parametrize(
    ("again", "message"),
    [
        ([ranked(0), ranked(99)], r"1 of 2 relabelled prompts are not in the bench, the first: prompt 'p99'"),
        ([ranked(0, texts=TEXTS | {"b": "other"})], r"response 'b' of prompt 'p0' has another text than in the bench"),
        ([ranked(0, "abd", texts=TEXTS | {"d": "new"})], r"response 'd' of prompt 'p0' is not in the bench"),
        ([ranked(index, None) for index in range(3)], r"none of 3 relabelled prompts has a pair that .* decided"),
    ],
    ids=["prompt", "text", "response", "undecided"],
)
def test_labels_of_something_else_are_refused_by_name(run, again, message, tmp_path):
    with pytest.raises(EvidenceError, match=message):
        run(again)
    assert not (tmp_path / "out" / "run.json").exists()
    assert not (tmp_path / "out" / "scores.jsonl").exists()


def test_another_prompt_under_the_same_id_is_refused(run):
    other = ranked(0)
    messages = (Message(role="user", content="another question"),)
    again = Case(
        prompt=Prompt(id="p0", messages=messages, category=("chat",), language="zh"),
        responses=other.responses,
        ranking=other.ranking,
    )
    with pytest.raises(EvidenceError, match="prompt 'p0' has another text than in the bench"):
        run([again])


def test_decided_pairs_that_the_bench_labels_none_of_are_refused(run):
    bench = [ranked(index, "ab|c") for index in range(20)]
    texts = {"a": TEXTS["a"], "b": TEXTS["b"]}
    with pytest.raises(EvidenceError, match="the bench labels none of 5 pairs that the better judges decided"):
        run([ranked(index, "ab", texts=texts) for index in range(5)], bench=bench)


def test_a_prompt_twice_is_refused(run):
    with pytest.raises(RecordError, match="already used"):
        run([ranked(0), ranked(0)])


def test_the_bench_itself_is_refused(run):
    with pytest.raises(EvidenceError, match="are the bench itself"):
        run(BENCH)


def test_the_bench_itself_in_another_order_is_refused(run, tmp_path):
    with pytest.raises(EvidenceError, match="are the bench itself"):
        run(BENCH[::-1])
    assert not (tmp_path / "out").exists()


def judged(index, judge="expert", *signs):
    return ranked(index, judgments=tuple(verdict(short, judge) for short in (signs or ("a>b", "b>c"))))


def test_a_part_of_the_bench_with_its_own_judgments_is_refused(run, tmp_path):
    bench = [judged(index) for index in range(60)]
    with pytest.raises(
        EvidenceError, match=r"are a part of the bench, .*: rankings, judgments and judges are the same"
    ):
        run(bench[:30], bench=bench)
    assert not (tmp_path / "out").exists()


def test_other_judges_who_agree_with_every_label_are_no_copy(run):
    bench = [judged(index) for index in range(60)]
    found = label_error(run([judged(index, "better judge") for index in range(30)], bench=bench))
    assert (found.relabelled.num_wrong, found.relabelled.num_prompts) == (0, 30)


def test_rankings_that_all_equal_those_of_the_bench_are_a_finding(run):
    findings = run(BENCH[:30]).findings
    assert [(each.count, each.total) for each in findings if each.check == "relabelled_equal"] == [(30, 30)]
    assert "relabelled_equal" not in {each.check for each in run([ranked(0, "bac"), *BENCH[1:30]]).findings}


def test_a_case_without_responses_is_not_relabelled(run):
    empty = ranked(30, None, texts={})
    found = label_error(run([ranked(0, "bac"), *BENCH[1:30], empty]))
    assert found.relabelled.num_prompts == 30


def test_judgments_alone_are_to_be_resolved_into_a_folder(run):
    again = [ranked(index, None, judgments=(verdict("a>b"),)) for index in range(3)]
    with pytest.raises(EvidenceError) as caught:
        run(again)
    assert "resolve" in str(caught.value)
    assert "out" in str(caught.value.do)


def test_better_judges_of_all_prompts_who_contradict_one_label_are_no_copy(run):
    found = label_error(run([ranked(0, "bac"), *BENCH[1:]]))
    assert found.relabelled.num_wrong == 1


@pytest.mark.parametrize(
    "name", ["P7", " p7", "p7\u200f", "\uff50\uff17", "p\u0667", "00p7"],
    ids=["case", "blank", "mark", "width", "arabic digit", "zeros"],
)  # fmt: skip
def test_an_id_in_another_spelling_is_refused_with_that_of_the_bench(run, name):
    case = ranked(7, "bac")
    again = [ranked(99), replace(case, prompt=replace(case.prompt, id=name))]
    with pytest.raises(EvidenceError, match="2 of 2 relabelled prompts are not in the bench, one of them") as refused:
        run(again)
    assert refused.value.allowed == "the bench has prompt 'p7', language 'zh'"


def test_an_id_in_another_language_is_refused_with_that_of_the_bench(run):
    case = ranked(7)
    with pytest.raises(EvidenceError, match="prompt 'p7', without a language") as refused:
        run([replace(case, prompt=replace(case.prompt, language=None))])
    assert refused.value.allowed == "the bench has prompt 'p7', language 'zh'"


@pytest.mark.parametrize(("judgments", "advised"), [((), False), ((verdict("a=b"),), True)], ids=["none", "ties"])
def test_rankings_of_judgments_are_advised_only_where_there_are_judgments(run, judgments, advised):
    with pytest.raises(EvidenceError, match="none of 1 relabelled prompt has a pair") as refused:
        run([ranked(0, None, judgments=judgments)])
    assert ("resolve" in str(refused.value.do)) == advised


def test_few_labels_of_people_are_no_bench_to_relabel(tmp_path):
    write_cases(tmp_path / "cases.jsonl", BENCH)
    path = tmp_path / "cases.jsonl"
    with pytest.raises(ConfigError, match="relabelled cases belong to a benchmark"):
        evaluate([], tmp_path / "out", CONFIG, model="longer", human=path, judged=path, relabelled=path)


def test_labels_that_never_differ_are_doubted_in_the_sentence_of_the_label_error(run):
    found = label_error(run(BENCH[:30]))
    first, *_ = MEASURE.sentences("m", found)
    assert first.key == "say_relabelled_none_wrong"
    assert "unless the second labels are copies" in MEASURE.text[first.key]["en"]


def test_the_page_states_it_in_place_of_the_range(run):
    found = label_error(run([ranked(0, "bac"), *(ranked(index) for index in range(1, 30))]))
    said = [sentence.key for sentence in MEASURE.sentences("m", found)]
    assert said == ["say_relabelled", "say_best_exact_match"]
    table, exact = (panel.tables[0].table for panel in MEASURE.panels(found))
    assert any("relabelled_pairs" in column for column in table.columns)
    assert any("best_exact_match" in column for column in exact.columns)
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert len(list(MEASURE.rows(found))) == 3


@pytest.fixture
def evaluations(tmp_path):
    """Two models on each of two benches, with 6 wrong labels of 90, in 2 of 30 prompts."""
    again = [ranked(0, "cba"), ranked(1, "cba"), *(ranked(index) for index in range(2, 30))]
    folders = {}
    for name, bench in (("first", BENCH), ("second", [ranked(index) for index in range(50)])):
        write_cases(tmp_path / f"{name}.jsonl", bench)
        write_cases(tmp_path / "experts.jsonl", again)
        for model in ("longer", "shorter"):
            folders[name, model] = tmp_path / f"{name}-{model}"
            evaluate(
                [tmp_path / f"{name}.jsonl"],
                folders[name, model],
                CONFIG,
                model=model,
                relabelled=tmp_path / "experts.jsonl",
            )
    return folders


def test_a_leaderboard_and_a_comparison_show_what_a_perfect_model_reaches(evaluations, tmp_path):
    runs = [evaluations["first", "longer"], evaluations["first", "shorter"]]
    board = leaderboard(runs, out=tmp_path / "board", config=LeaderboardConfig(num_resamples=100)).summary
    assert board.ceiling.accuracy.value == pytest.approx(84 / 90)
    assert board.ceiling.exact_match.value == pytest.approx(28 / 30)
    assert board.ceiling.least is None
    assert "accuracy 93.3% (95% interval" in as_markdown(board)
    assert "93.3%" in as_page(board)
    compared = compare(runs, tmp_path / "compared", CompareConfig(num_resamples=100)).summary
    assert compared.ceiling == board.ceiling
    (lines,) = (panel.tables[0].table.rows for panel in list(panels_of(compare_view.VIEW, compared))[:1])
    assert lines[-1][0].startswith("@@perfect_model")
    assert lines[-1][2] == "93.3%"


def panels_of(view, summary):
    return view.panels(StageRun("table", None, summary), NO_SOURCES)


def test_a_table_of_several_benches_has_a_row_of_a_perfect_model(evaluations, tmp_path):
    config = LeaderboardConfig(num_resamples=100)
    done = leaderboard(list(evaluations.values()), out=tmp_path / "board", config=config)
    assert done.stage == "bench_table"
    first, *_ = panels_of(bench_table.VIEW, done.summary)
    table = first.tables[0].table
    assert table.rows[-1][0].startswith("@@perfect_model")
    assert table.rows[-1].count("93.3%") == 4, "accuracy and exact match, on two benches"
    assert len({len(row) for row in (table.columns, *table.rows)}) == 1
    keys = [sentence.key for sentence in bench_table.VIEW.sentences(StageRun("table", None, done.summary))]
    assert keys.count("say_ceiling") == keys.count("say_ceiling_exact") == 2


def test_evaluations_without_a_label_error_have_no_ceiling(tmp_path):
    write_cases(tmp_path / "bench.jsonl", BENCH)
    runs = [tmp_path / model for model in ("longer", "shorter")]
    for run in runs:
        evaluate([tmp_path / "bench.jsonl"], run, CONFIG, model=run.name)
    board = leaderboard(runs, out=tmp_path / "board", config=LeaderboardConfig(num_resamples=100)).summary
    assert board.ceiling is None
    assert "perfect" not in as_markdown(board)


def test_people_answers_alone_give_a_range_of_ceilings(tmp_path):
    answers = (verdict("a>b", "ann"), verdict("a>b", "bob"))
    split = (verdict("a>b", "ann"), verdict("a<b", "bob"))
    write_cases(tmp_path / "bench.jsonl", [ranked(at, judgments=split if at < 18 else answers) for at in range(100)])
    runs = [tmp_path / model for model in ("longer", "shorter")]
    for run in runs:
        evaluate([tmp_path / "bench.jsonl"], run, CONFIG, model=run.name)
    ceiling = leaderboard(runs, out=tmp_path / "board", config=LeaderboardConfig(num_resamples=100)).summary.ceiling
    value, interval = ceiling_cells(ceiling)
    # A person errs on 0.1, and 18 of 100 pairs are contradictory: 90% if all err alike, 82% if on hard pairs only.
    assert (ceiling.accuracy.value, ceiling.least.value) == pytest.approx((0.9, 0.82), abs=0.005)
    assert value == f"{ceiling.least.value:.1%}–{ceiling.accuracy.value:.1%}"
    assert interval == f"{100 * ceiling.least.low:.1f}–{100 * ceiling.accuracy.high:.1f}%"
    assert ceiling.exact_match is None


def many(changed=None, number=400):
    """A bench of two categories and languages, whose labels are right; ``changed`` maps positions to other rankings."""
    bench = []
    for at in range(number):
        case = ranked(at, (changed or {}).get(at, "abc"))
        fields = {"category": (("chat", "code")[at % 2],), "language": ("zh", "en")[at // 2 % 2]}
        bench.append(replace(case, prompt=replace(case.prompt, **fields)))
    return bench


def checks(done):
    """The findings about the sample; parts of the bench stand for it, whose labels are all equal."""
    found = {each.check: each for each in done.findings if each.check.startswith("relabelled")}
    found.pop("relabelled_equal", None)
    return found


def test_a_random_sample_is_not_doubted(run):
    bench = many(dict.fromkeys(range(0, 400, 7), "cba"))
    assert checks(run(bench[:50], bench=[*bench[50:], *bench[:50]])) == {}


@pytest.mark.parametrize(
    ("chosen", "check", "again", "rest"),
    [
        (lambda at: at % 2 == 0, "relabelled_categories", "100.0%", "44.4%"),
        (lambda at: at // 2 % 2 == 1, "relabelled_languages", "100.0%", "44.4%"),
    ],
    ids=["category", "language"],
)
def test_a_sample_of_one_group_is_named_with_both_shares(run, chosen, check, again, rest):
    bench = many()
    found = checks(run([case for at, case in enumerate(bench) if chosen(at)][:40], bench=bench))
    assert found.keys() == {check}
    finding = found[check]
    assert (finding.count, finding.total) == (40, 400)
    assert (finding.details["again"], finding.details["rest"]) == (again, rest)
    assert finding.details["group"] in {"chat", "en"}


def test_a_sample_of_doubtful_prompts_is_named_with_the_accuracy_of_the_model(run):
    # The longer answer is wrong on all pairs of every fourth prompt; a third of the sample is of these.
    bench = many(dict.fromkeys(range(0, 400, 4), "cba"))
    doubtful, others = bench[0:400:4], [case for at, case in enumerate(bench) if at % 4 != 0]
    again = [*doubtful[:40], *others[:20]]
    found = checks(run(again, bench=bench))
    assert "relabelled_accuracy" in found
    assert found["relabelled_accuracy"].details == {"again": "33.3%", "rest": "82.4%"}


def test_few_prompts_are_not_tested(run):
    bench = many()
    assert checks(run([case for at, case in enumerate(bench) if at % 2 == 0][:19], bench=bench)) == {}
