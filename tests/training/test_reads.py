"""Losses that are read for several steps at once, as on a GPU, where each reading waits for the device."""

import math

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from fake_gpu import GPU, fake_gpu, on_fake_gpu
from packed_models import network as packed_network
from steelyard.core.errors import ModelError
from steelyard.networks.ratings import IndexedRating
from steelyard.training.batching import PlannedStep, Slot, plan_steps
from steelyard.training.callbacks import DetectDivergence, Evaluate, SaveCheckpoint
from steelyard.training.checkpoints import load_checkpoint
from steelyard.training.config import Config
from steelyard.training.gradient_accumulation import Accumulation, objective_of
from steelyard.training.losses import LOSSES
from steelyard.training.optimiser import parameter_groups
from steelyard.training.trained_network import put_loss_parameter
from steelyard.training.trainer import Callback, Trainer, scorer_of
from training_examples import answers, network

EXAMPLES = tuple(
    answers((7, 8), (20 + index, 21), (40 + index,), pairs=[(0, 1)])._replace(
        ratings=(IndexedRating(0, 0.5, 1.0), IndexedRating(1, 0.25, 1.0))
    )
    for index in range(6)
)
CONFIG = Config(epochs=5, batch_size=2, learning_rate=1e-2)


class Follow(Callback):
    """Remember the weights of a parameter at each step, and which steps had been computed by then."""

    def __init__(self, due=()):
        self.due, self.seen = due, []

    def is_due(self, trainer, step):
        return step in self.due

    def after_step(self, trainer, record):
        self.seen.append((record.step, trainer.network.head.weight.detach().clone()))
        return True


class StopAfter(Follow):
    def __init__(self, step):
        super().__init__((step,))

    def after_step(self, trainer, record):
        return record.step not in self.due


def choose_optimiser(monkeypatch, is_fused):
    """Train with an optimiser that is not fused, as the one of 8 bits."""
    if not is_fused:
        monkeypatch.setattr(
            "steelyard.training.trainer.make_optimiser",
            lambda network, config, world: torch.optim.AdamW(parameter_groups(network, config), fused=False),
        )


def run(config, callbacks=(), *, steps_per_read, **settings):
    trainer = Trainer(network(), EXAMPLES, config, **settings)
    trainer.steps_per_read = steps_per_read
    trainer.run(callbacks)
    return trainer


def weights(trainer):
    return [weight.detach().clone() for weight in trainer.network.parameters()]


@pytest.mark.parametrize("is_fused", [True, False])
@pytest.mark.parametrize("steps_per_read", [2, 4, 100])
def test_curve_and_weights_do_not_depend_on_when_losses_are_read(tmp_path, monkeypatch, steps_per_read, is_fused):
    choose_optimiser(monkeypatch, is_fused)
    monkeypatch.setattr("steelyard.training.trainer._SECONDS_PER_READ", math.inf)
    settings = Config(epochs=5, batch_size=2, learning_rate=1e-2, checkpoint_every=4, evaluate_every=3)
    trainers = []
    for number in (1, steps_per_read):
        folder = tmp_path / str(number)
        callbacks = [DetectDivergence(folder), Evaluate(), SaveCheckpoint(folder)]
        trainers.append(run(settings, callbacks, steps_per_read=number, held_out=EXAMPLES[:2]))
    one, several = trainers
    assert one.curve == several.curve
    assert [line["step"] for line in one.curve if "held_out" in line] == [3, 6, 9, 12, 15]
    assert all(torch.equal(a, b) for a, b in zip(weights(one), weights(several), strict=True))
    saved = [load_checkpoint(tmp_path / str(number)).state for number in (1, steps_per_read)]
    assert saved[0].step == saved[1].step == 12


def test_a_callback_that_is_due_sees_the_weights_of_its_step(monkeypatch):
    monkeypatch.setattr("steelyard.training.trainer._SECONDS_PER_READ", math.inf)
    each, some = Follow(range(100)), Follow((4, 9))
    run(CONFIG, [each], steps_per_read=6)
    run(CONFIG, [some], steps_per_read=6)
    assert [step for step, _ in some.seen] == [step for step, _ in each.seen] == list(range(1, 16))
    equal = [torch.equal(one, other) for (_, one), (_, other) in zip(each.seen, some.seen, strict=True)]
    # Read after steps 4 (due), 9 (due) and 15 (the sixth since, and the last).
    assert [step for step, is_equal in enumerate(equal, start=1) if is_equal] == [4, 9, 15]


def test_long_steps_are_read_one_by_one(monkeypatch):
    monkeypatch.setattr("steelyard.training.trainer._SECONDS_PER_READ", 0.0)
    each, some = Follow(range(100)), Follow()
    run(CONFIG, [each], steps_per_read=1)
    run(CONFIG, [some], steps_per_read=100)
    assert all(torch.equal(one, other) for (_, one), (_, other) in zip(each.seen, some.seen, strict=True))


@pytest.mark.parametrize("is_fused", [True, False])
@pytest.mark.parametrize("steps_per_read", [1, 4, 100])
def test_a_step_that_is_not_finite_changes_no_weight_and_its_case_is_named(monkeypatch, steps_per_read, is_fused):
    choose_optimiser(monkeypatch, is_fused)
    config = Config(epochs=1, batch_size=2, learning_rate=1e-2)
    broken = answers((7, 8), (60, 21), (61,), pairs=[(0, 1)])._replace(name="案例")
    trainers = [Trainer(network(), (*EXAMPLES, broken), config) for _ in range(2)]
    for trainer in trainers:
        first = plan_steps(EXAMPLES, config)[0]
        second = PlannedStep(0, (Slot(6, 0), Slot(6, 1)))
        trainer.plan, trainer.steps_per_read = (first, second, first, first), steps_per_read
        with torch.no_grad():  # a state that is no number for the token of one case alone
            trainer.network.classifier.get_input_embeddings().weight[60] = float("nan")
    before, after = trainers
    before.run([StopAfter(1)])
    with pytest.raises(ModelError, match=r"the loss is nan at step 2: no finite reward for '案例' \(of 1 prompts"):
        after.run([Follow()])
    assert [line["step"] for line in after.curve] == [1]
    for one, other in zip(weights(before), weights(after), strict=True):
        assert torch.equal(one.nan_to_num(7.0), other.nan_to_num(7.0))
    assert before.optimiser.state_dict()["state"][0]["step"] == after.optimiser.state_dict()["state"][0]["step"]


class NoWaiting(TorchDispatchMode):
    """Compute what is on the CPU as ever, and refuse copies to the GPU that wait for its earlier work."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        device = torch.device(kwargs.get("device") or "cpu")
        is_on_gpu = any(isinstance(one, torch.Tensor) and one.is_cuda for one in tree_leaves((args, kwargs)))
        if not is_on_gpu and device.type == "cpu":
            with _disable_current_modes():
                return func(*args, **kwargs)
        if func is torch.ops.aten._to_copy.default and device.type == "cuda" and not is_on_gpu:
            assert kwargs.get("non_blocking"), "a copy waits"
        return func(*args, **kwargs)


@pytest.mark.parametrize("reduction", ["pair", "prompt"])
@pytest.mark.parametrize("loss", list(LOSSES))
def test_a_step_reads_no_number_of_the_gpu(monkeypatch, loss, reduction):
    beside = {"pair_weight": 0.5} if LOSSES[loss].rating_link else {}
    config = Config(loss=loss, reduction=reduction, centring=0.1, batch_size=6, tokens_per_forward=8192, **beside)
    model = packed_network("qwen2", torch.float32)
    put_loss_parameter(model, config)
    monkeypatch.setattr(torch.Tensor, "backward", lambda *_: None)  # see `fake_gpu`: gradients end the process
    slots = Trainer(model, EXAMPLES, config).plan[0].slots
    with torch.no_grad(), fake_gpu(), NoWaiting():
        on_fake_gpu(model, torch.bfloat16)
        if model.tie is not None:
            model.tie = torch.nn.Parameter(torch.empty(1, device=GPU), requires_grad=False)
        losses = Accumulation(scorer_of(model, config), EXAMPLES, objective_of(config)).step(slots)
        assert losses.sums.device == GPU
        with pytest.raises(DataDependentOutputException):
            losses.sums[0].item()
        with pytest.raises(AssertionError, match="a copy waits"):
            torch.zeros(3).to(GPU)
