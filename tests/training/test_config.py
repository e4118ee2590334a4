import pytest

from steelyard.core.errors import ConfigError
from steelyard.io.progress import log_details
from steelyard.training.config import (
    Config,
    check_settings,
    default_batch_size,
    default_learning_rate,
    num_last_layers,
    with_defaults,
)
from steelyard.training.gradient_accumulation import objective_of


def test_the_defaults_are_the_paper_s_where_it_has_them():
    config = Config()
    check_settings(config)
    # CHEEMS, Table 9.
    assert (config.max_length, config.weight_of_squares, config.epochs) == (2048, 0.1, 2)
    assert (config.warmup_ratio, config.schedule) == (0.1, "cosine")
    # Its rate and step are for 72 billion weights and 256 responses: `with_defaults` takes others where none are set.
    assert (config.learning_rate, config.batch_size) == (None, None)


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": 0}, {"batch_size": 0}, {"responses_per_step": 1}, {"learning_rate": 0.0}, {"warmup_ratio": 2.0},
        {"regulariser": -1.0}, {"trainable": "last:0"}, {"trainable": "some"}, {"max_length": 0},
        {"centring": -1.0}, {"tie_learning_rate": 0.0}, {"weight_decay": -1.0}, {"max_grad_norm": 0.0},
        {"learning_rate": float("inf")}, {"weight_decay": float("nan")}, {"regulariser": float("inf")},
        {"loss": "plackett-luce", "label_smoothing": 0.1},
        {"divergence_factor": 1.0}, {"divergence_steps": -1}, {"patience": -1}, {"reward_reference_prompts": -1},
        {"calibrate_rewards": "standardise", "reward_reference_prompts": 0},
    ],
)  # fmt: skip
def test_numbers_that_make_no_sense_are_refused(settings):
    with pytest.raises(ConfigError, match="train: "):
        check_settings(Config(**settings))


def test_what_is_trained_is_read_from_its_name():
    assert [num_last_layers(name) for name in ("all", "head", "last:3")] == [None, 0, 3]


def test_the_objective_is_what_the_settings_say():
    config = Config(loss="davidson", reduction="prompt", label_smoothing=0.1, centring=0.2, regulariser=0.3)
    assert objective_of(config) == ("davidson", "prompt", 0.1, 0.2, 0.3)


@pytest.mark.parametrize(
    ("settings", "num_weights", "rate"),
    [
        ({"trainable": "head"}, 270e6, 3e-3),
        ({"trainable": "last:2"}, 270e6, 3e-4),
        ({"adapter": "lora"}, 7e9, 2e-4),
        ({}, 270e6, 3e-5),
        ({}, 3e9, 1e-5),
        ({}, 7e9, 5e-6),
        ({"kind": "implicit"}, 270e6, 5e-6),
    ],
)
def test_the_rate_goes_by_what_is_trained(settings, num_weights, rate):
    assert default_learning_rate(Config(**settings), int(num_weights))[0] == rate


@pytest.mark.parametrize(
    ("num_prompts", "epochs", "step"),
    [
        (1000, 2, 8),  # 125 steps an epoch
        (400, 2, 8),  # 50 an epoch, 100 in all
        (392, 2, 4),  # 49 of 8 an epoch are too few; 98 of 4
        (315, 2, 4),
        (100, 2, 2),
        (10, 2, 2),
        (100, 8, 8),
    ],
)
def test_few_prompts_make_smaller_steps(num_prompts, epochs, step):
    assert default_batch_size(Config(epochs=epochs), num_prompts) == step


def test_only_what_is_not_set_is_filled_in_and_told(capsys):
    with log_details(is_shown=True):
        filled = with_defaults(Config(trainable="head"), num_weights=35_000, num_prompts=1000)
    assert (filled.learning_rate, filled.batch_size, filled.regulariser) == (3e-3, 8, 0.1)
    told = capsys.readouterr().err
    assert "learning_rate 0.003 (the default for the head on a model of" in told
    assert "batch_size 8 (the default for 2 epochs of 1,000 prompts)" in told
    mine = Config(learning_rate=7e-6, batch_size=3, regulariser=0.0)
    with log_details(is_shown=True):
        assert with_defaults(mine, num_weights=35_000, num_prompts=1000) == mine
    assert not capsys.readouterr().err
