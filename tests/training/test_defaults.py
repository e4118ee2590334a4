import pytest

from steelyard.training.config import Config, default_learning_rate, default_prompts_per_step, with_defaults


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
    assert default_learning_rate(Config(**settings), int(num_weights)) == rate


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
    assert default_prompts_per_step(Config(epochs=epochs), num_prompts) == step


def test_only_what_is_not_set_is_filled_in_and_told(capsys):
    filled = with_defaults(Config(trainable="head"), num_weights=35_000, num_prompts=1000)
    assert (filled.learning_rate, filled.prompts_per_step, filled.regulariser) == (3e-3, 8, 0.1)
    told = capsys.readouterr().err
    assert "learning_rate 0.003 (the default for the head on a model of" in told
    assert "prompts_per_step 8 (the default for 2 epochs of 1,000 prompts)" in told
    mine = Config(learning_rate=7e-6, prompts_per_step=3, regulariser=0.0)
    assert with_defaults(mine, num_weights=35_000, num_prompts=1000) == mine
    assert not capsys.readouterr().err
