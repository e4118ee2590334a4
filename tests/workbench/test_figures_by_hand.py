"""Figures of agreement, gate, gold and throughput against plain arithmetic on the answers as they are sent.

The answers are those of `/api/v1/projects/N/answers`; nothing here calls a measure of the program.
"""

import random
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import combinations, permutations
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple

import pytest
from scipy.stats import t
from sqlalchemy import select

from steelyard.annotation.pipeline import PipelineRules
from steelyard.workbench.demo import demo_cases
from steelyard.workbench.figures.agreement_figures import agreement_figures
from steelyard.workbench.figures.dashboards import progress_figures
from steelyard.workbench.figures.people_figures import people_figures
from steelyard.workbench.pipeline.listings import LARGEST_PAGE, AnswerNote, answer_page
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.simulated_people import Habits
from steelyard.workbench.simulated_projects import import_batch, start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredAdjudicationTime, StoredPerson, StoredProject
from workbench_people import NOON
from workbench_site import copy_sqlite

DAY = 86_400
THRESHOLD = 0.8


class Sent(NamedTuple):
    """The answers that people gave, those that settled a task, those to ordinary tasks by task, and all figures.

    ``settling``: the seconds of alignment, settlement and review.
    """

    every: list[AnswerNote]
    settled: dict
    by_task: dict
    agreement: object
    people: object
    progress: object
    paper: object
    pseudonyms: dict
    settling: list


@pytest.fixture(
    scope="module",
    params=[pytest.param(2, id="two people"), pytest.param(3, id="three people", marks=pytest.mark.slow)],
)
def sent(request, sqlite_template, tmp_path_factory):
    """A project that simulated people have worked through, with rejections and gold tasks."""
    random.seed(1)
    folder = tmp_path_factory.mktemp("sent")
    copy_sqlite(sqlite_template, folder / "workbench.db")
    database = Database(f"sqlite:///{folder}/workbench.db")
    cases = demo_cases(folder / "cases", seed=5, num_prompts=8)
    rules = PipelineRules(num_annotators=request.param, gold_share=0.25, least_agreement=THRESHOLD)
    habits = Habits(rejected_share=0.3)
    start = start_project(database, cases, seed=5, begun_at=NOON, num_annotators=20, rules=rules, habits=habits)
    for batch, part in (("first", cases[:4]), ("second", cases[4:])):
        import_batch(start, part, batch)
        work_until_finished(start)
    at = NOON + 40 * DAY
    with database.reading() as session:
        project = session.get_one(StoredProject, 1)
        listed = answer_page(session, 1, size=LARGEST_PAGE)
        every = [row for row in listed.rows if row.stage == "annotation"]
        by_task = defaultdict(list)
        for row in every:
            if not row.gold:
                by_task[row.item, row.round, row.task].append(row)
        yield Sent(
            every,
            {
                (row.item, row.round, *sorted(row.responses)): row
                for row in listed.rows
                if row.stage not in ("annotation", "proposal")
            },
            by_task,
            agreement_figures(session, project),
            people_figures(session, project),
            progress_figures(session, project, at=at),
            paper_figures(session, project, at=at),
            dict(session.execute(select(StoredPerson.id, StoredPerson.pseudonym)).all()),
            session.scalars(select(StoredAdjudicationTime.seconds)).all(),
        )
    assert listed.following is None
    assert max(row.round for row in every) > 1
    database.close()


def verdict(answer, left, right):
    """What an answer says of two responses; null where the person could not judge."""
    content = {"discarded": {}, "ranking": (), "cannot_judge": None} | answer.content
    if content["cannot_judge"] is not None:
        return None
    if {left, right} & content["discarded"].keys():
        return "discarded"
    place = {response: number for number, tier in enumerate(content["ranking"]) for response in tier}
    return "tie" if place[left] == place[right] else "left" if place[left] < place[right] else "right"


def verdicts(one, other):
    """The two verdicts on every pair of responses on which both say something, and not both that it is discarded."""
    pairs = [(verdict(one, *pair), verdict(other, *pair)) for pair in combinations(one.responses, 2)]
    return [pair for pair in pairs if None not in pair and pair != ("discarded", "discarded")]


def comparisons(by_task):
    """Every two answers to the same task."""
    return [two for answers in by_task.values() for two in combinations(answers, 2)]


def tau(one, other):
    """Kendall's tau-b of two answers; null where one of them has a single tier."""
    signs = {"left": 1, "right": -1, "tie": 0}
    both = [pair for pair in verdicts(one, other) if "discarded" not in pair]
    first, second = ([signs[pair[side]] for pair in both] for side in (0, 1))
    root = (sum(map(abs, first)) * sum(map(abs, second))) ** 0.5
    return sum(a * b for a, b in zip(first, second, strict=True)) / root if root else None


def kappa(pairs):
    """Cohen's kappa of pairs of verdicts."""
    observed = mean(one == other for one, other in pairs)
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    chance = sum(first[label] * second[label] for label in first) / len(pairs) ** 2
    return (observed - chance) / (1 - chance)


def alpha(units):
    """Krippendorff's nominal alpha of lists of labels."""
    several = [labels for labels in units if len(labels) > 1]
    every = Counter(label for labels in several for label in labels)
    number = every.total()
    observed = sum(
        sum(one != other for one, other in permutations(labels, 2)) / (len(labels) - 1) for labels in several
    )
    expected = (number**2 - sum(count**2 for count in every.values())) / (number - 1)
    return 1 - observed / expected


def same_and_all(pairs):
    """The number of pairs with the same verdict, and of all."""
    return sum(one == other for one, other in pairs), len(pairs)


def test_agreement_of_all(sent):
    taus = [tau(*two) for two in comparisons(sent.by_task)]
    labels = defaultdict(list)
    for task, answers in sent.by_task.items():
        for pair in combinations(answers[0].responses, 2):
            spoken = [verdict(answer, *pair) for answer in answers]
            labels[task, pair] = [each for each in spoken if each in ("left", "right", "tie")]
    row = sent.agreement.overall
    assert row.num_tasks == sum(len(answers) > 1 for answers in sent.by_task.values())
    assert row.tau.value == pytest.approx(mean(each for each in taus if each is not None))
    assert row.tau.n == sum(each is not None for each in taus)
    assert row.alpha.value == pytest.approx(alpha(list(labels.values())))


def test_agreement_of_people_and_pairs(sent):
    two_by_two = comparisons(sent.by_task)
    rows = [(row, [sent.pseudonyms[person] for person in row.people]) for row in sent.agreement.people]
    rows += [(row, [sent.pseudonyms[person] for person in row.people]) for row in sent.agreement.pairs]
    assert len(rows) > 20
    for row, names in rows:
        ours = [two for two in two_by_two if {*names} <= {answer.person for answer in two}]
        # The first of the row is the rater of the rows of the matrix.
        turned = [two if two[0].person == names[0] else two[::-1] for two in ours]
        pairs = [pair for two in turned for pair in verdicts(*two)]
        same, judged = same_and_all(pairs)
        assert (row.same.value, row.same.n) == (pytest.approx(same / judged) if judged else None, judged)
        assert row.num_tasks == len({(two[0].item, two[0].round, two[0].task) for two in ours})
        strict = [pair for pair in pairs if "discarded" not in pair]
        if len({label for pair in strict for label in pair}) > 1:
            assert row.kappa.value == pytest.approx(kappa(strict))


def test_the_gate(sent):
    rounds = defaultdict(list)
    for two in comparisons(sent.by_task):
        if not two[0].retired:
            rounds[two[0].item, two[0].round] += verdicts(*two)
    counts = [same_and_all(pairs) for pairs in rounds.values()]
    passed = [same / judged >= THRESHOLD for same, judged in counts]
    assert 0 < sum(passed) < len(passed)
    assert (sent.agreement.gate.value, sent.agreement.gate.n) == (pytest.approx(mean(passed)), len(passed))
    assert (sent.paper.gate, sent.paper.gates) == (sent.agreement.gate, len(passed))
    same, judged = (sum(column) for column in zip(*counts, strict=True))
    assert (sent.agreement.overall.same.value, sent.agreement.overall.same.n) == (pytest.approx(same / judged), judged)
    assert sent.progress.rounds.passed == sum(passed)


def test_gold_accuracy(sent):
    shares = defaultdict(list)
    for answer in sent.every:
        if answer.gold and not answer.retired:
            truth = sent.settled[answer.item, answer.round, *sorted(answer.responses)]
            same, judged = same_and_all(verdicts(answer, replace(truth, responses=answer.responses)))
            shares[answer.person].append(same / judged)
    for row in sent.people.people:
        mine = shares.get(row.pseudonym, [])
        assert (row.gold_answers, row.gold.value) == (len(mine), pytest.approx(mean(mine)) if mine else None)
    every = [share for mine in shares.values() for share in mine]
    assert (sent.people.gold.value, sent.people.gold.n) == (pytest.approx(mean(every)), len(every))


def test_throughput(sent):
    days = Counter(int(answer.at // DAY) for answer in sent.every)
    assert {int(day.at // DAY): day.answers for day in sent.progress.days} == days
    assert {int(day.at // DAY): day.gold for day in sent.progress.days} == {
        day: sum(answer.gold for answer in sent.every if answer.at // DAY == day) for day in days
    }
    assert sum(day.hours for day in sent.progress.days) == pytest.approx(
        (sum(answer.seconds for answer in sent.every) + sum(sent.settling)) / 3600
    )
    worked = Counter((answer.person, int(answer.at // DAY)) for answer in sent.every)
    assert (sent.progress.pace.value, sent.progress.pace.n) == (pytest.approx(mean(worked.values())), len(worked))
    reach = t.ppf(0.975, len(worked) - 1) * stdev(worked.values()) / sqrt(len(worked))
    assert reach > 0
    assert sent.progress.pace.low == pytest.approx(mean(worked.values()) - reach)
    assert sent.progress.pace.high == pytest.approx(mean(worked.values()) + reach)
    for row in sent.progress.people:
        assert row.answers == sum(answer.person == row.pseudonym for answer in sent.every)
