"""A run in progress as values of a page: bars, time left, figures, and a curve that is read as it grows."""

import json

import pytest

from steelyard.evaluation.tables import word
from steelyard.io.run_state import RunState, TaskProgress
from steelyard.viewing.live import CurveReader, charts, figures_of_step, shown_tasks


def state(*tasks, now="running"):
    return RunState(state=now, command=None, folder="/", process=1, host="h", started=100.0, updated=160.0, tasks=tasks)


def test_the_current_task_is_first_and_has_the_time_left():
    before = TaskProgress(title="testing qwen", done=3, seconds=2.0)
    now = TaskProgress(title="asking 裁判", done=250, total=1000, seconds=60, seconds_left=180, figures={"cost": 0.5})
    first, second = shown_tasks(state(before, now))
    assert (first.title, first.share, first.done) == (
        f"{word('task_asking', 'asking')} 裁判",
        0.25,
        f"250 {word('live_of')} 1,000",
    )
    assert first.left == f"{word('live_left_before')} 3 {word('unit_minutes')} {word('live_left_after')}"
    assert first.figures == ((word("figure_cost", "cost"), "0.5000"),)
    assert (second.share, second.done, second.left) == (1.0, "3", f"2.0 {word('unit_seconds')}")


def test_a_task_without_a_total_has_no_share_while_it_runs():
    task = TaskProgress(title="evaluating", done=70, seconds=5.0)
    assert shown_tasks(state(task))[0].share is None
    assert shown_tasks(state(task, now="interrupted"))[0].left == f"5.0 {word('unit_seconds')}"
    assert shown_tasks(None) == ()


@pytest.mark.parametrize("title", ["训练", "trainings of others", "@@x|y@@"])
def test_an_unknown_title_is_shown_as_it_is(title):
    assert shown_tasks(state(TaskProgress(title=title)))[0].title == title


def line(step, loss):
    return json.dumps({"step": step, "time": 1.5, "train/loss": loss, "speed/pairs_per_second": 12.25}) + "\n"


def test_the_curve_grows_with_its_file(tmp_path):
    reader, path = CurveReader(), tmp_path / "progress.jsonl"
    assert reader.curve(tmp_path) is None
    path.write_text(line(1, 0.7) + line(2, 0.5) + '{"step": 2, "held_out/accuracy": 0.625}\n' + line(3, 0.4)[:20])
    curve = reader.curve(tmp_path)
    assert [(point.step, point.loss) for point in curve.losses] == [(1, 0.7), (2, 0.5)]
    assert curve.held_out == ((2, 0.625),)
    with path.open("a") as file:
        file.write(line(3, 0.4)[20:] + "not JSON\n")
    curve = reader.curve(tmp_path)
    assert [point.step for point in curve.losses] == [1, 2, 3]
    assert dict(figures_of_step(curve)) == {
        word("figure_train_loss", "train/loss"): "0.400",
        word("figure_speed_pairs_per_second", "speed/pairs_per_second"): "12.2",
    }


def test_a_curve_that_starts_over_is_read_from_its_beginning(tmp_path):
    reader, path = CurveReader(), tmp_path / "progress.jsonl"
    path.write_text("".join(line(step, 0.7) for step in range(1, 9)))
    assert len(reader.curve(tmp_path).losses) == 8
    new = tmp_path / "new"
    new.write_text(line(1, 0.6))
    new.rename(path)
    assert [point.loss for point in reader.curve(tmp_path).losses] == [0.6]


def test_a_link_out_of_the_folder_is_no_curve(tmp_path):
    (tmp_path / "other").write_text(line(1, 0.6))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "progress.jsonl").symlink_to(tmp_path / "other")
    assert CurveReader().curve(tmp_path / "run") is None


def test_the_drawing_has_round_values_and_every_point(tmp_path):
    (tmp_path / "progress.jsonl").write_text(
        "".join(line(step, 0.9 - 0.1 * step) for step in range(1, 6)) + '{"step": 5, "held_out/accuracy": 0.8}\n'
    )
    loss, held_out = charts(CurveReader().curve(tmp_path))
    assert [tick.text for tick in loss.rows] == ["0.4", "0.5", "0.6", "0.7", "0.8"]
    assert [tick.text for tick in loss.columns] == ["1", "3", "5"]
    smoothed, raw = (text.split() for text in loss.lines)
    assert (len(smoothed), raw[0], raw[-1]) == (5, "60.0,14.0", "630.0,210.0")
    # The scale includes 50%, what guessing reaches.
    assert [tick.text for tick in held_out.rows] == ["50.0%", "60.0%", "70.0%", "80.0%"]
    assert held_out.marks == ((60.0, 14.0),)


@pytest.mark.parametrize("losses", [[0.5, 0.5], [1e-9, 2e-9], [1e30, -1e30], [0.5, float("nan"), 0.25]])
def test_any_losses_can_be_drawn(tmp_path, losses):
    text = "".join(line(step, loss).replace("NaN", "null") for step, loss in enumerate(losses, 1))
    (tmp_path / "progress.jsonl").write_text(text)
    (chart,) = charts(CurveReader().curve(tmp_path))
    assert len({tick.at for tick in chart.rows}) == len(chart.rows) > 1


def test_one_step_is_no_curve_yet(tmp_path):
    (tmp_path / "progress.jsonl").write_text(line(1, 0.6))
    assert charts(CurveReader().curve(tmp_path)) == ()


@pytest.mark.parametrize(
    "odd",
    [
        '{"step": 1e308, "train/loss": 0.5}',
        '{"step": 3, "train/loss": 1e308}',
        '{"step": 3, "train/loss": -1e308}',
        '{"step": -1e300, "held_out/accuracy": 0.5}',
        '{"step": 3, "held_out/accuracy": 1e308}',
    ],
)
def test_a_line_that_cannot_be_drawn_is_left_out(tmp_path, odd):
    (tmp_path / "progress.jsonl").write_text(f"{line(1, 0.7)}{odd}\n{line(2, 0.5)}")
    curve = CurveReader().curve(tmp_path)
    assert [point.step for point in curve.losses] == [1, 2]
    assert curve.held_out == ()
    assert len(charts(curve)) == 1
