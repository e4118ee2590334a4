"""The scripts of the annotator's page, run by Node: the same logic as in Python, and answers that are never lost."""

import json
import re
import shutil
import subprocess
from itertools import product

import msgspec
import pytest

from steelyard.annotation.answers import BucketComparison, TaskAnswer, contradictions, implied_ranking
from steelyard.annotation.questions import open_questions
from steelyard.annotation.task_kinds import kind_named, kind_names
from steelyard.workbench.pipeline.projects import ProjectSettings
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.views.pages import FOLDER, words_of
from task_kind_cases import simulated

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")
ABC = ("A", "B", "C")
PAIRS = (("A", "B"), ("B", "C"), ("C", "A"))
RANKINGS = [
    (),
    (("A", "B", "C"),),
    *((((x,), (y,), (z,))) for x, y, z in ("ABC", "ACB", "BAC", "BCA", "CAB", "CBA")),
    *((tuple(x), tuple(y)) for x, y in (("A", "BC"), ("B", "AC"), ("C", "AB"), ("BC", "A"), ("AC", "B"), ("AB", "C"))),
]


@pytest.fixture
def run(tmp_path):
    """Run a script that may import the page's modules, with a value as ``input``; returns what it prints as JSON."""
    static, place = FOLDER / "static", tmp_path / "annotate"
    shutil.copytree(static / "annotate", place)
    for shared in ("scrolling.js", "languages.js", "directions.js"):
        shutil.copy(static / shared, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')

    def work(script, value=None):
        start = (
            'import { readFileSync } from "node:fs"; const input = JSON.parse(readFileSync("input.json", "utf8"));\n'
        )
        (place / "input.json").write_text(json.dumps(value))
        (place / "script.js").write_text(start + script)
        done = subprocess.run([NODE, "script.js"], cwd=place, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return work


def all_answers():
    """Scores with every kind of equality, every choice of every pair or none, and every ranking; then the others."""
    scores = ({"A": a, "B": b, "C": c} for a, b, c in product((1, 3), (1, 3), (1, 2, 3)))
    for score, choices, ranking in product(scores, product(("better", "same", "worse", None), repeat=3), RANKINGS):
        comparisons = tuple(
            BucketComparison(first=first, second=second, choice=choice)
            for (first, second), choice in zip(PAIRS, choices, strict=True)
            if choice
        )
        yield TaskAnswer(scores=score, comparisons=comparisons, ranking=ranking)
    yield TaskAnswer()
    yield TaskAnswer(scores={"A": 1, "C": 2})
    yield TaskAnswer(cannot_judge="why")
    yield TaskAnswer(scores={"A": 3, "B": 4}, discarded={"C": "garbled"}, ranking=(("B",), ("A",)))
    yield TaskAnswer(scores={"A": 3, "B": 3}, discarded={"C": "garbled"})
    yield TaskAnswer(scores={"B": 3}, discarded={"A": "empty", "C": "garbled"}, ranking=(("B",),))
    yield TaskAnswer(discarded=dict.fromkeys(ABC, "garbled"))
    twice = tuple(BucketComparison(first="A", second="B", choice=choice) for choice in ("better", "worse"))
    yield TaskAnswer(scores={"A": 3, "B": 3, "C": 0}, comparisons=twice, ranking=(("B",), ("A",), ("C",)))


def test_the_page_and_the_workbench_find_the_same_contradictions_and_rankings(run):
    answers = list(all_answers())
    expected = [
        {
            "problems": [
                {"problem": each.problem, "responses": each.responses} for each in contradictions(answer, ABC)
            ],
            "ranking": implied_ranking(answer, ABC),
        }
        for answer in answers
    ]
    results = run(
        'import { contradictions, emptyAnswer, impliedRanking } from "./answer.js";\n'
        'const shown = ["A", "B", "C"], whole = (answer) => ({ ...emptyAnswer(), ...answer });\n'
        "console.log(JSON.stringify(input.map((each) => ({ problems: contradictions(whole(each), shown), "
        "ranking: impliedRanking(whole(each), shown) }))));",
        [msgspec.to_builtins(answer) for answer in answers],
    )
    assert results == json.loads(msgspec.json.encode(expected))
    assert {each["problem"] for result in results for each in result["problems"]} == {
        "missing score",
        "missing comparison",
        "circle",
        "score against ranking",
        "comparison against ranking",
    }


def test_moves_reach_every_ranking_with_ties(run):
    reached = run(
        """
import { moved } from "./answer.js";
const plain = (ranking) => JSON.stringify(ranking.map((tier) => [...tier].sort()));
const open = [[["A"], ["B"], ["C"]]], seen = new Set([plain(open[0])]);
while (open.length) {
  const ranking = open.pop();
  for (const response of ["A", "B", "C"]) for (const step of [-1, 1]) {
    const next = moved(ranking, response, step);
    if (!seen.has(plain(next))) { seen.add(plain(next)); open.push(next); }
  }
}
console.log(JSON.stringify([...seen]));
"""
    )
    assert len(reached) == 13


def test_a_changed_score_forgets_the_comparisons_that_it_makes_idle(run):
    left = run(
        """
import { compared, discarded, emptyAnswer, scored } from "./answer.js";
const both = scored(scored(emptyAnswer(), "A", 3), "B", 3), one = compared(both, "A", "B", "better");
console.log(JSON.stringify([one.comparisons.length, scored(one, "A", 3).comparisons.length, scored(one, "A", 2).comparisons.length,
  discarded(one, "B", "empty").comparisons.length, compared(one, "B", "A", "same").comparisons.length]));
"""
    )
    assert left == [1, 1, 0, 0, 1]


def test_time_counts_in_front_and_not_while_idle_or_asleep(run):
    seconds = run(
        """
import { makeClock } from "./clock.js";
let time = 0, isInFront = true;
const clock = makeClock(() => time, () => isInFront), run = (number) => { for (let n = 0; n < number; n += 1) { time += 1000; clock.tick(); } };
const results = [];
run(10); results.push(clock.take());
isInFront = false; run(50); isInFront = true; results.push(clock.take());
clock.touch(); run(500); results.push(clock.take());
clock.touch(); time += 3600000; clock.touch(); run(5); results.push(clock.take());
clock.give(7); results.push(clock.take());
// The clock is set back by an hour, and by days: what was counted before and after stays, and no time is less than none.
clock.touch(); run(4); time -= 3600000; clock.tick(); run(5); results.push(clock.take());
clock.touch(); time -= 5 * 86400000; results.push(clock.take()); run(200); results.push(clock.take());
console.log(JSON.stringify(results));
"""
    )
    assert seconds == [10, 0, 120, 5, 7, 9, 0, 120]


def test_marks_are_counted_in_code_points_of_the_raw_text(run):
    assert run(
        """
import { codePoints, rawOffset } from "./marking.js";
const raw = "a\\r\\nb😀c\\rd";
// The field shows one character for each line break; the face is two UTF-16 units.
console.log(JSON.stringify([0, 1, 2, 3, 4, 5, 6, 7, 8].map((offset) => codePoints(raw, rawOffset(raw, offset)))));
"""
    ) == [0, 1, 3, 4, 4, 5, 6, 7, 8]


OUTBOX = """
import { makeDrafts, makeOutbox } from "./outbox.js";
import { makeStore } from "./store.js";
const items = new Map(), storage = { getItem: (key) => items.get(key) ?? null, setItem: (key, value) => items.set(key, value), removeItem: (key) => items.delete(key), key: (number) => [...items.keys()][number], get length() { return items.size; } };
let network = { status: 200, data: { outcome: "stored" } };
const sent = [], waits = [], states = [];
const send = async (path, { body }) => { sent.push([path, body.scores.A]); return network; };
const open = () => makeOutbox({ store: makeStore(storage), person: 7, send, later: (run, wait) => waits.push([run, wait]), onChange: (state) => states.push(structuredClone(state)) });
const entry = (assignment) => ({ assignment, guideline: null, answer: { scores: { A: assignment } }, seconds: 1.04 });
"""


def test_answers_wait_for_the_connection_and_go_once_each_in_order(run):
    result = run(
        OUTBOX
        + """
network = { status: 0, data: null };
const first = open();
first.put(entry(1)); first.put(entry(2)); first.put(entry(1));
await first.flush(); await first.retry();
const tries = sent.length;
// The page is closed and opened again.
network = { status: 200, data: { outcome: "stored" } };
const second = open();
const before = [second.size(), second.isDone(1), second.isDone(2), second.isDone(3)];
sent.length = 0;
await Promise.all([second.flush(), second.flush()]);
console.log(JSON.stringify({ tries, waits: waits.map(([, wait]) => wait), before, sent, left: second.size(), done: [second.isDone(2, 0), second.isDone(2, Date.now() + 1)], last: states.at(-1) }));
"""
    )
    assert result == {
        "tries": 2,
        "waits": [1000],
        "before": [2, True, True, False],
        "sent": [["/annotate/1/answer?seconds=1.0", 1], ["/annotate/2/answer?seconds=1.0", 2]],
        "left": 0,
        # What was asked for before the answer was stored may name the task again; what is asked for later knows.
        "done": [True, False],
        "last": {"waiting": 0, "problem": None, "refused": [], "isKept": True},
    }


@pytest.mark.parametrize(
    ("status", "data", "left", "problem", "refused"),
    [
        (200, {"outcome": "too late"}, 0, None, [{"assignment": 1, "reason": "too late"}]),
        (400, {"error": "no"}, 0, None, [{"assignment": 1, "reason": "no"}]),
        (404, None, 0, None, [{"assignment": 1, "reason": ""}]),
        (401, {"error": "log in"}, 1, "logged out", []),
        (503, None, 1, "offline", []),
        (507, {"error": "full"}, 1, "no room", []),
        (0, None, 1, "offline", []),
    ],
)
def test_an_answer_is_dropped_only_where_sending_it_again_cannot_help(run, status, data, left, problem, refused):
    result = run(
        OUTBOX
        + """
network = input;
const box = open();
box.put(entry(1));
await box.flush();
console.log(JSON.stringify({ left: box.size(), ...states.at(-1) }));
""",
        {"status": status, "data": data},
    )
    assert result == {"left": left, "waiting": left, "problem": problem, "refused": refused, "isKept": True}


def test_an_answer_that_the_workbench_fails_at_does_not_keep_the_others(run):
    result = run(
        OUTBOX
        + """
const failing = async (path) => { sent.push(path.split("/")[2]); return path.includes("/1/") ? { status: 500, data: null } : { status: 200, data: { outcome: "stored" } }; };
const box = makeOutbox({ store: makeStore(storage), person: 7, send: failing, later: (run, wait) => waits.push([run, wait]), onChange: (state) => states.push(structuredClone(state)) });
box.put(entry(1)); box.put(entry(2)); box.put(entry(3));
await box.flush();
console.log(JSON.stringify({ sent, waits: waits.length, ...states.at(-1) }));
"""
    )
    assert (result["sent"], result["waits"]) == (["1", "2", "3"], 1)
    assert (result["waiting"], result["problem"], result["refused"]) == (1, "offline", [])


@pytest.mark.parametrize("network", [(200, {"outcome": "too late"}), (400, {"error": "no"})])
def test_a_task_whose_answer_did_not_count_is_shown_when_it_comes_again(run, network):
    status, data = network
    assert run(
        OUTBOX
        + """
network = input;
const box = open(), done = [];
box.put(entry(1)); done.push(box.isDone(1, 0));
await box.flush(); done.push(box.isDone(1, 0));
console.log(JSON.stringify(done));
""",
        {"status": status, "data": data},
    ) == [True, False]


def test_another_person_at_the_same_browser_sends_only_the_own_answers(run):
    assert run(
        OUTBOX
        + """
network = { status: 0, data: null };
const mine = open();
mine.put(entry(1));
const other = makeOutbox({ store: makeStore(storage), person: 8, send, later: () => {}, onChange: () => {} });
await other.flush();
console.log(JSON.stringify([other.size(), sent.length, other.isDone(1)]));
"""
    ) == [0, 0, False]


def test_a_draft_stays_in_the_browser_until_the_workbench_has_its_newest_form(run):
    assert run(
        OUTBOX
        + """
const clock = { seconds: 5, take() { const all = this.seconds; this.seconds = 0; return all; }, give(all) { this.seconds += all; } };
const store = makeStore(storage), drafts = makeDrafts({ store, person: 7, send, later: (run) => waits.push([run, 0]), clock });
const results = [];
network = { status: 0, data: null };
drafts.save(3, entry(3).answer); await drafts.flush();
results.push(drafts.unsent(3).scores.A, clock.seconds);
network = { status: 200, data: { outcome: "open" } };
drafts.save(3, entry(4).answer); await drafts.flush();
results.push(drafts.unsent(3), clock.seconds);
drafts.save(3, entry(5).answer);
const sending = drafts.flush();
drafts.save(3, entry(6).answer);
await sending;
results.push(drafts.unsent(3).scores.A);
drafts.forget(3);
results.push(drafts.unsent(3));
console.log(JSON.stringify(results));
"""
    ) == [3, 5, None, 0, 6, None]


def test_a_draft_is_sent_until_it_arrives_and_one_without_a_place_stays(run):
    result = run(
        OUTBOX
        + """
const clock = { take: () => 0, give: () => {}, counted: () => 0 }, told = [];
const later = (run, wait) => waits.push([run, wait]), onChange = (state) => told.push(structuredClone(state));
const drafts = makeDrafts({ store: makeStore(storage), person: 7, send, later, clock, onChange });
for (const status of [0, 503, 507, 401, 200]) {
  network = { status, data: null };
  if (status === 0) drafts.save(3, entry(3).answer);
  await drafts.flush();
}
const problems = told.map(({ isWaiting, isStored, problem }) => isStored ? "stored" : problem || isWaiting);
const kept = [drafts.unsent(3)];
// The task is somebody else's by now: what was entered stays here, and is not sent for ever.
network = { status: 409, data: null };
drafts.save(4, entry(4).answer); await drafts.flush(); await drafts.flush();
kept.push(drafts.unsent(4).scores.A);
const local = makeDrafts({ store: makeStore(storage), person: 8, send: null, later, clock });
local.save(-5, entry(5).answer); await local.flush();
kept.push(local.unsent(-5).scores.A);
console.log(JSON.stringify({ problems, kept, sent: sent.map(([path]) => path), waits: waits.map(([, wait]) => wait) }));
"""
    )
    assert result["problems"] == [True, "offline", "offline", "no room", "logged out", "stored"]
    assert result["kept"] == [None, 4, 5]
    assert result["sent"] == ["/annotate/3/draft?seconds=0.0"] * 5 + ["/annotate/4/draft?seconds=0.0"]


def test_the_time_of_somebody_who_only_reads_is_reported(run):
    assert run(
        OUTBOX
        + """
import { makeClock } from "./clock.js";
let time = 0;
const clock = makeClock(() => time, () => true), pass = (seconds) => { for (let n = 0; n < seconds; n += 1) { time += 1000; clock.tick(); } };
const drafts = makeDrafts({ store: makeStore(storage), person: 7, send, later: (run) => waits.push(run), clock });
network = { status: 200, data: { outcome: "open" } };
pass(30); drafts.beat(3, entry(3).answer); await drafts.flush();
pass(30); drafts.beat(3, entry(3).answer); await drafts.flush();
drafts.beat(3, entry(3).answer); await drafts.flush();
console.log(JSON.stringify([...sent.map(([path]) => path), drafts.unsent(3)]));
"""
    ) == ["/annotate/3/draft?seconds=60.0&again=true", None]


def test_a_browser_that_stores_nothing_keeps_answers_in_memory(run):
    assert (
        run(
            """
import { makeStore } from "./store.js";
const refuse = () => { throw new Error("QuotaExceededError"); };
const results = [];
for (const storage of [{ getItem: refuse, setItem: refuse, removeItem: refuse }, null]) {
  const store = makeStore(storage);
  store.set("a", [1]);
  results.push(store.isKept("a"), store.get("a"), store.keys("a"), (store.remove("a"), store.get("a")));
}
console.log(JSON.stringify(results));
"""
        )
        == [False, [1], ["a"], None] * 2
    )


def test_a_storage_that_is_full_does_not_bring_back_what_was_stored_before(run):
    """The newer value is in memory and, where there is one, in the journal, which the next page reads."""
    assert run(
        """
import { makeStore } from "./store.js";
const items = new Map();
let isFull = false;
const storage = { getItem: (key) => items.get(key) ?? null, removeItem: (key) => items.delete(key), key: (number) => [...items.keys()][number], get length() { return items.size; },
  setItem: (key, value) => { if (isFull) throw new Error("QuotaExceededError"); items.set(key, value); } };
const results = [], disk = new Map();
const journal = { put: async (key, value) => { disk.set(key, value); return true; }, remove: async (key) => disk.delete(key), all: async () => disk };
for (const kept of [null, journal]) {
  isFull = false;
  const store = makeStore(storage, kept);
  store.set("a", 1);
  isFull = true;
  store.set("a", 2);
  await null; await null;
  results.push(store.get("a"), store.isKept("a"));
  isFull = false;
  const next = makeStore(storage, kept);
  await next.restore();
  results.push(next.get("a"));
  store.persist();
  results.push(store.isKept("a"), JSON.parse(items.get("a")));
}
console.log(JSON.stringify(results));
"""
    ) == [2, False, 1, True, 2, 2, True, 2, True, 2]


def test_the_time_of_day_tells_who_comes_back(run):
    assert run(
        """
import { makeAbsence } from "./clock.js";
let time = 0;
const isBack = makeAbsence(() => time, 60000);
console.log(JSON.stringify([1000, 60000, 60001, 10800000, -10800000, 1000].map((step) => { time += step; return isBack(); })));
"""
    ) == [False, False, True, True, False, False]


def test_every_step_names_keys_that_do_something_and_fields_keep_their_keys(run):
    result = run(
        """
import { ALL_KEYS, actionOf, belongsTo, hintsOf } from "./keys.js";
const press = (key, step = { kind: "score" }, more = {}) => actionOf({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...more }, step);
const field = { matches: (selector) => selector.includes("textarea") }, button = { matches: (selector) => selector.includes("button") };
console.log(JSON.stringify({
  digits: ["0", "5", "6"].map((key) => press(key)?.value ?? null),
  left: [press("ArrowLeft").name, press("ArrowLeft", { kind: "compare" }).value], b: [press("b"), press("b", { kind: "compare" }).value],
  undo: [press("z", undefined, { ctrlKey: true }).name, press("Z", undefined, { metaKey: true }).name, press("Backspace").name],
  browser: [press("r", undefined, { ctrlKey: true }), press("5", undefined, { altKey: true })],
  upper: press("D").name, hints: ["score", "compare", "settle", "submit"].every((kind) => hintsOf({ kind }).length > 1), keys: ALL_KEYS.length,
  owned: [belongsTo(field, "d"), belongsTo(button, "d"), belongsTo(button, "Enter"), belongsTo(null, "d")],
}));
"""
    )
    assert result == {
        "digits": [0, 5, None],
        "left": ["focus", "better"],
        "b": [None, "worse"],
        "undo": ["undo", "undo", "undo"],
        "browser": [None, None],
        "upper": "discard",
        "hints": True,
        "keys": 16,
        "owned": [True, False, True, False],
    }


def test_keys_mean_the_same_on_the_keyboards_and_with_the_input_methods_of_other_languages(run):
    """As Chromium reports them: what the layout writes, and the place of the key on the keyboard."""
    pressed = {
        "Hebrew m": ("צ", "KeyM"), "Arabic g": ("ل", "KeyG"), "Arabic b, two letters": ("لا", "KeyB"),
        "Arabic ?": ("؟", "Slash", True), "Hindi x": ("ग", "KeyX"), "Russian d": ("В", "KeyD", True),
        "Arabic 9": ("٩", "Digit9"), "Hindi 4": ("४", "Digit4"), "full-width 5": ("５", "Digit5"),
        "input method on, s": ("Process", "KeyS"), "input method on, 2": ("Process", "Digit2"),
        "French 1 without Shift": ("&", "Digit1"), "French m": ("m", "Semicolon"), "French comma": (",", "KeyM"),
        "Shift and 1": ("!", "Digit1", True), "Turkish letter": ("ğ", "KeyE"), "a key with a name": ("Enter", "Enter"),
    }  # fmt: skip
    script = (
        'import { keyOf } from "./keys.js";\n'
        "console.log(JSON.stringify(input.map(([key, code, shiftKey]) => keyOf({ key, code, shiftKey }))));"
    )
    expected = ["m", "g", "b", "?", "x", "d", "9", "4", "5", "s", "2", "1", "m", ",", "!", "ğ", "Enter"]
    assert dict(zip(pressed, run(script, list(pressed.values())), strict=True)) == dict(
        zip(pressed, expected, strict=True)
    )


def test_a_number_may_have_the_digits_of_any_script_and_what_is_none_is_no_entry(run):
    texts = ["90", "٩٠", "९०", "９０", " 7 ", "100", "101", "-1", "9.5", "", "many"]
    script = (
        'import { numberIn } from "./entries.js";\n'
        "console.log(JSON.stringify(input.map((text) => numberIn(text, [0, 100]))));"
    )
    assert run(script, texts) == [90, 90, 90, 90, 7, 100, *[None] * 5]


def test_a_number_that_is_taken_back_leaves_its_question_open(run):
    questions = kind_named("translation_quality").questions(("A",), catalogues_of(ProjectSettings()))
    script = (
        'import { entered, openQuestions } from "./entries.js"; import { emptyAnswer } from "./answer.js";\n'
        'const asked = input.find((each) => each.input === "number");\n'
        "const enter = (answer, value) => entered(answer, asked, value, input);\n"
        "const answers = [enter(emptyAnswer(), 90), enter(enter(emptyAnswer(), 90), null)];\n"
        "console.log(JSON.stringify(answers.map((each) => [each.scores, openQuestions(each, input).length])));"
    )
    # The marks of a translation may be none.
    assert run(script, msgspec.to_builtins(questions)) == [[{"A": 90}, 0], [{}, 1]]


def test_every_word_of_the_scripts_exists():
    """A word that is missing would be seen as `undefined` on the page."""
    scripts = "".join(path.read_text(encoding="utf-8") for path in (FOLDER / "static" / "annotate").glob("*.js"))
    used = set(re.findall(r"\btask_[a-z_]+[a-z]\b", scripts))
    known = {key for key in words_of("zh") if key.startswith("task_")}
    assert used <= known
    assert known - used == {"task_role_system", "task_role_user", "task_role_assistant"}


def test_the_page_and_the_workbench_find_the_same_questions_open(run):
    catalogues = catalogues_of(ProjectSettings())
    cases = []
    for name in kind_names():
        shown, complete = simulated(name, catalogues)
        questions = kind_named(name).questions(tuple(shown), catalogues)
        partial = [
            msgspec.structs.replace(complete, **{field: type(getattr(complete, field))()})
            for field in ("ranking", "scores", "spans", "entries")
        ]
        decided = [TaskAnswer(entries={"decision": value}) for value in ("keep", "revise", "drop")]
        gone = [TaskAnswer(discarded={response: "garbled"}) for response in shown]
        given_up = TaskAnswer(cannot_judge="why")
        cases += [
            (questions, answer) for answer in (complete, TaskAnswer(), given_up, *partial, *decided, *gone) if questions
        ]
    results = run(
        'import { openQuestions } from "./entries.js"; import { emptyAnswer } from "./answer.js";\n'
        "console.log(JSON.stringify(input.map(([questions, answer]) => "
        "openQuestions({ ...emptyAnswer(), ...answer }, questions).map(({ name, responses }) => [name, ...responses]))));",
        [(msgspec.to_builtins(questions), msgspec.to_builtins(answer)) for questions, answer in cases],
    )
    assert results == [
        [list(each.responses) for each in open_questions(answer, questions)] for questions, answer in cases
    ]
    assert len(cases) > 40
    assert any(results)
    assert not all(results)


def test_a_number_is_typed_digit_by_digit_and_stays_in_its_range(run):
    assert run(
        'import { typed } from "./entries.js";\n'
        "const type = (digits) => digits.reduce((number, digit) => typed(number, digit, [0, 100]), null);\n"
        "console.log(JSON.stringify([[8, 5], [1, 0, 0], [1, 0, 1], [0, 7], [8, 5, 9], [0]].map(type)));"
    ) == [85, 100, 1, 7, 9, 0]


def test_an_entry_forgets_what_does_not_apply_any_more(run):
    catalogues = catalogues_of(ProjectSettings())
    questions = kind_named("prompt_review").questions((), catalogues)
    result = run(
        """
import { entered, currentQuestion, neighbour } from "./entries.js";
import { emptyAnswer } from "./answer.js";
const [questions] = input, by = (name) => questions.find((each) => each.name === name);
let answer = entered(emptyAnswer(), by("decision"), "revise", questions);
const first = currentQuestion(answer, questions, null).name;
answer = entered(answer, by("revised_text"), "so", questions);
answer = entered(answer, by("category"), "code", questions);
const back = questions[neighbour(answer, questions, questions.indexOf(by("category")), -1)].name;
const dropped = entered(answer, by("decision"), "drop", questions);
console.log(JSON.stringify({ first, back, before: Object.keys(answer.entries), dropped: dropped.entries, next: currentQuestion(dropped, questions, null).name }));
""",
        [msgspec.to_builtins(questions)],
    )
    assert result == {
        "first": "revised_text",
        "back": "revised_text",
        "before": ["decision", "revised_text", "category"],
        "dropped": {"decision": "drop"},
        "next": "drop_reason",
    }


def test_a_block_runs_as_its_words_do_and_not_as_its_first_letter(run):
    texts = [
        ("A) أكبر، لأن", False), ("Visual Studio Code الأفضل", True), ("Visual Studio Code الأفضل", False),
        ("An English line.", True), ("כן", False), ("2 + 2 = 4", True), ("说明 x", False),
    ]  # fmt: skip
    script = """
    import { directionOf } from "../directions.js";
    console.log(JSON.stringify(input.map(([text, isRightToLeft]) => directionOf(text, isRightToLeft))));
    """
    assert run(script, texts) == ["rtl", "rtl", "ltr", "ltr", "rtl", None, "ltr"]


def test_paths_addresses_and_calls_are_found_within_words_that_run_from_the_right(run):
    texts = {
        "في /etc/resolv.conf و~/.ssh/config؛ ثم": ["/etc/resolv.conf", "~/.ssh/config"],
        "נסה את https://example.org/a?b=5 (בחינם!), או help@example.org.": [
            "https://example.org/a?b=5",
            "help@example.org",
        ],
        "C++ או f(x, y) או total([1,2]).": ["C++", "total([1,2])"],
        "A) أكبر 3.5 kg (free!) --dry-run": ["--dry-run"],
        "~" * 20_000: [],
    }
    script = """
    import { technicalIn } from "../directions.js";
    console.log(JSON.stringify(input.map((text) => technicalIn(text).map(([start, end]) => text.slice(start, end)))));
    """
    assert run(script, list(texts)) == list(texts.values())


def test_hidden_characters_are_named_in_quotes_and_have_a_sign_of_their_length_in_the_field(run):
    raw = "ab\u202ec\u200b😀\U000e0041d"
    named, signs = run(
        """
import { codeOf, lettersOf } from "./card.js";
const response = { raw: input, hidden: [[2, 3], [4, 5], [6, 7]] };
const named = lettersOf(response, (letter) => `<${codeOf(letter)}>`).join("");
const signs = lettersOf(response, (letter) => "?".repeat(letter.length)).join("");
console.log(JSON.stringify([named, signs]));
""",
        raw,
    )
    assert named == "ab<U+202E>c<U+200B>😀<U+E0041>d"
    # Offsets of a selection in the field are those of the text: UTF-16 units.
    assert signs == "ab?c?😀??d"
