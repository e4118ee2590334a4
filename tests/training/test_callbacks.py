import json
import math
import signal

import pytest
import torch

from steelyard.core.errors import ConfigError, KindError, ModelError
from steelyard.io.progress import InterruptedRun
from steelyard.training.batching import PlannedStep
from steelyard.training.callbacks import (
    DetectDivergence,
    Evaluate,
    Interrupt,
    SaveCheckpoint,
    open_trackers,
    run_callbacks,
)
from steelyard.training.checkpoints import BestWeights, Checkpoint, load_checkpoint
from steelyard.training.config import Config
from steelyard.training.optimiser import make_optimiser
from steelyard.training.trainer import Callback, StepRecord, Trainer
from training_examples import answers, network

EXAMPLES = tuple(answers((7, 8), (20 + index, 21), (40 + index,), pairs=[(0, 1)]) for index in range(6))
WRONG = tuple(one._replace(pairs=(one.pairs[0]._replace(better=1, worse=0),)) for one in EXAMPLES)


class StopAfter(Callback):
    def __init__(self, step):
        self.step = step

    def after_step(self, _, record):
        return record.step != self.step


def followed(config, folder, held_out=(), *, stop_after=None, resume=False, seed=0):
    """The trainer of a training that may be stopped half-way, and continued."""
    trainer = Trainer(network(seed), EXAMPLES, config, held_out=held_out)
    checkpoint = load_checkpoint(folder) if resume else None
    trainer.run([Evaluate(), SaveCheckpoint(folder), StopAfter(stop_after)], start=checkpoint)
    return trainer


def weights(trainer):
    return [weight.detach().clone() for weight in trainer.network.parameters()]


@pytest.mark.parametrize("stop_after", [1, 4, 7, 8])
def test_a_training_that_was_stopped_ends_in_the_same_curve_and_weights(tmp_path, stop_after):
    config = Config(epochs=4, batch_size=2, learning_rate=1e-2, checkpoint_every=1)
    whole = followed(config, tmp_path / "whole", EXAMPLES)
    followed(config, tmp_path / "stopped", EXAMPLES, stop_after=stop_after)
    again = followed(config, tmp_path / "stopped", EXAMPLES, resume=True, seed=9)
    assert all(torch.equal(one, two) for one, two in zip(weights(whole), weights(again), strict=True))
    assert whole.curve == again.curve
    assert [line["step"] for line in whole.curve if "loss" in line] == list(range(1, 13))


def test_checkpoints_come_when_they_are_due(tmp_path):
    followed(Config(epochs=1, batch_size=2, learning_rate=5e-6, checkpoint_every=2), tmp_path)
    assert load_checkpoint(tmp_path).state.step == 2
    followed(Config(epochs=1, batch_size=2, learning_rate=5e-6), tmp_path / "by time")
    assert load_checkpoint(tmp_path / "by time") is None


def test_training_stops_when_nothing_gets_better_and_the_best_weights_are_kept(tmp_path):
    # What is learnt is compared with the opposite: the first evaluations are the best.
    config = Config(epochs=30, batch_size=6, learning_rate=1e-2, patience=3, keep="best")
    trainer = followed(config, tmp_path, WRONG)
    measured = [(line["step"], line["held_out"]["accuracy"]) for line in trainer.curve if "held_out" in line]
    best = max(value for _, value in measured)
    first = next(step for step, value in measured if value == best)
    assert trainer.best.step == first
    assert measured[-1][0] == first + 3 < 30
    last = weights(trainer)
    trainer.keep_best()
    assert not all(torch.equal(one, two) for one, two in zip(last, weights(trainer), strict=True))
    named = trainer.network.named_parameters()
    assert all(torch.equal(trainer.best.weights[name], weight) for name, weight in named)


def test_evaluations_without_a_better_one_are_counted_over_a_kill(tmp_path):
    trainer = Trainer(network(), EXAMPLES, Config(epochs=9, batch_size=6, learning_rate=5e-6, patience=2))
    trainer.curve = [{"step": step, "held_out": {"accuracy": value}} for step, value in ((1, 0.5), (2, 0.5), (3, 0.4))]
    trainer.best = BestWeights(1, 0.5, {})
    assert trainer.num_worse_evaluations() == 2
    assert not Evaluate().after_step(trainer, StepRecord(4, 0, 0.7, 0.7, 0.0, 5e-6, 6))


def follow(callback, trainer, losses, first=1, *, save=None):
    """Let a callback see steps of these losses."""
    for step, loss in enumerate(losses, start=first):
        record = StepRecord(step, 0, loss, loss, 0.0, 1e-3, 6)
        trainer.curve.append(record._asdict())
        assert callback.after_step(trainer, record)
        if save is not None:
            save.is_due(trainer, step)
            assert save.after_step(trainer, record)


def watched(config, num_steps):
    trainer = Trainer(network(), EXAMPLES, config)
    trainer.plan = (PlannedStep(0, ()),) * num_steps
    trainer._optimiser = make_optimiser(trainer.network, config)
    return trainer


def test_a_training_that_diverges_stops_and_keeps_the_checkpoint_before(tmp_path):
    config = Config(batch_size=6, learning_rate=5e-6, checkpoint_every=4, divergence_steps=3)
    trainer, detect = watched(config, 9), DetectDivergence(tmp_path)
    follow(detect, trainer, [0.7, 0.6, 0.7, 0.7, 9.0, 9.0], save=SaveCheckpoint(tmp_path))
    message = r"diverged: 3 losses in a row over 3 times the earlier median 0\.7.*step 4 is kept"
    with pytest.raises(ModelError, match=message) as caught:
        follow(detect, trainer, [9.5], 7)
    assert "the last 9.500 at step 7" in caught.value.problem
    assert load_checkpoint(tmp_path).state.step == 4
    patient = watched(Config(batch_size=6, learning_rate=5e-6, divergence_steps=0), 9)
    follow(DetectDivergence(tmp_path), patient, [0.7] * 4 + [9.0] * 4)


def test_a_training_that_learns_nothing_is_reported_at_its_end_with_what_to_do(tmp_path, capsys):
    trainer = watched(Config(learning_rate=5e-6, batch_size=8), 100)
    detect = DetectDivergence(tmp_path)
    for step in range(1, 101):
        assert capsys.readouterr().err == ""
        record = StepRecord(step, 0, 0.7, 0.692, 0.0, 5e-6, 4)
        trainer.curve.append(record._asdict())
        assert detect.after_step(trainer, record)
    report = capsys.readouterr().err
    assert report.count("little has been learned") == 1
    assert f"after all 100 steps the loss of a pair is 0.692; equal scores have {math.log(2):.3f}" in report
    assert "raise learning_rate (now 5e-06)" in report


def test_a_training_that_is_interrupted_writes_a_checkpoint_and_ends_in_the_same_weights(tmp_path, capsys):
    config = Config(epochs=2, batch_size=2, learning_rate=1e-2)
    whole = followed(config, tmp_path / "whole", EXAMPLES)
    numbers = iter([0, 0, signal.SIGINT])
    trainer = Trainer(network(), EXAMPLES, config, held_out=EXAMPLES)
    with pytest.raises(InterruptedRun) as caught:
        trainer.run([Evaluate(), Interrupt(tmp_path, lambda: next(numbers))])
    assert caught.value.number == signal.SIGINT
    assert f"stopped after step 3 of {len(trainer.plan)}" in capsys.readouterr().err
    again = followed(config, tmp_path, EXAMPLES, resume=True, seed=9)
    assert all(torch.equal(one, two) for one, two in zip(weights(whole), weights(again), strict=True))
    assert whole.curve == again.curve


def test_a_checkpoint_holds_the_curve_and_the_best(tmp_path):
    trainer = watched(Config(learning_rate=5e-6, batch_size=8), 3)
    trainer.curve = [{"step": 1, "loss": 0.5}]
    trainer.save(tmp_path, 1)
    found = load_checkpoint(tmp_path)
    assert isinstance(found, Checkpoint)
    assert (found.state.step, found.lines, found.best, trainer.saved_step) == (1, trainer.curve, None, 1)


def test_a_signal_that_comes_while_trackers_close_is_answered_when_they_are_closed(tmp_path, monkeypatch):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "signalling.py").write_text(
        "import os, signal\n"
        "from steelyard.core.config import Config as BaseConfig\n"
        "class Config(BaseConfig, frozen=True): pass\n"
        "class Tracker:\n"
        "    def __init__(self, folder): self.folder = folder\n"
        "    def log(self, step, values): pass\n"
        "    def close(self):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        (self.folder / 'closed').write_text('whole')\n"
        "def build(config, *, folder, **parts): return Tracker(folder)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    trainer = Trainer(
        network(), EXAMPLES, Config(batch_size=2, learning_rate=1e-2, trackers=[{"kind": "outside.signalling"}])
    )
    with (
        pytest.raises(InterruptedRun) as caught,
        run_callbacks(trainer, tmp_path, start=None, settings={}, is_cached=False) as callbacks,
    ):
        trainer.run(callbacks)
    assert caught.value.number == signal.SIGTERM
    assert (tmp_path / "closed").read_text() == "whole"


def opened(folder, track, start=0):
    return open_trackers(Config(trackers=track), folder=folder, settings={"epochs": 2}, start=start)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_tracker_gets_the_figures(tmp_path):
    trackers = opened(tmp_path, ("jsonl", {"kind": "jsonl", "file": "other.jsonl"}))
    trackers.log(1, {"train/loss": 0.5})
    trackers.close()
    for name in ("progress.jsonl", "other.jsonl"):
        assert [(line["step"], line["train/loss"]) for line in lines(tmp_path / name)] == [(1, 0.5)]


def test_by_default_there_are_lines_and_by_request_nothing(tmp_path):
    opened(tmp_path / "default", None).close()
    assert (tmp_path / "default" / "progress.jsonl").is_file()
    assert opened(tmp_path / "none", ()).members == ()
    assert not (tmp_path / "none").exists()


def test_what_does_not_exist_is_refused(tmp_path):
    with pytest.raises(KindError, match=r"did you mean 'wandb'"):
        opened(tmp_path, ("wand",))
    with pytest.raises(ConfigError, match="a tracker without a kind"):
        opened(tmp_path, ({"mode": "offline"},))
