import pytest

from steelyard.core.errors import ConfigError
from steelyard.training.config import Config, check_settings, num_last_layers
from steelyard.training.gradient_accumulation import objective_of


def test_the_defaults_are_the_paper_s_where_it_has_them():
    config = Config()
    check_settings(config)
    # CHEEMS, Table 9.
    assert (config.max_length, config.weight_of_squares, config.epochs) == (2048, 0.1, 2)
    assert (config.warm_up, config.schedule) == (0.1, "cosine")
    # Its rate and step are for 72 billion weights and 256 responses: `with_defaults` takes others where none are set.
    assert (config.learning_rate, config.prompts_per_step) == (None, None)


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": 0}, {"prompts_per_step": 0}, {"slots": 1}, {"learning_rate": 0.0}, {"warm_up": 2.0},
        {"regulariser": -1.0}, {"trainable": "last:0"}, {"trainable": "some"}, {"max_length": 0},
        {"centring": -1.0}, {"tie_learning_rate": 0.0},
        {"loss": "plackett-luce", "label_smoothing": 0.1},
        {"divergence_factor": 1.0}, {"divergence_steps": -1},
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
