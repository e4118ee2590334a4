import math
from pathlib import Path

import pytest

from steelyard.core.errors import ConfigError
from steelyard.stages.supervise.settings import Config, Files, check_settings

MODEL, SCORES = Files(model="longer"), Files(scores=Path("s"))
CALIBRATED = MODEL._replace(calibrate=Path("h"))


@pytest.mark.parametrize(
    ("config", "files", "message"),
    [
        (Config(), Files(), "neither --model nor --scores"),
        (Config(), Files(model="longer", scores=Path("s")), "both --model and --scores"),
        (Config(tau=1.0, precision=0.9), CALIBRATED, "--tau with --calibrate"),
        (Config(), CALIBRATED, "--calibrate FILE and --precision go together"),
        (Config(precision=0.9), MODEL, "--calibrate FILE and --precision go together"),
        (Config(confidence=0.9), MODEL, "--confidence without --calibrate"),
        (Config(policy="cycles", keep_ties=True), MODEL, "--keep-ties with the policy cycles"),
        (Config(policy="cycles", tau=1.0), MODEL, "--tau with the policy cycles"),
        (Config(policy="weight", precision=0.9), CALIBRATED, "--calibrate with the policy weight"),
        (Config(scale=2.0), MODEL, "scale with the policy agree"),
        (Config(precision=0.9), SCORES._replace(calibrate=Path("h")), "no scores of the calibration cases"),
        (Config(), SCORES._replace(calibrate_scores=Path("h")), "--calibrate-scores goes with"),
        (Config(precision=0.9), CALIBRATED._replace(calibrate_scores=Path("h")), "--calibrate-scores goes with"),
        (Config(tau=-0.1), MODEL, "tau is -0.1"),
        (Config(tau=math.nan), MODEL, "tau is nan"),
        (Config(tau=math.inf), MODEL, "tau is inf"),
        (Config(precision=1.0), CALIBRATED, "precision is 1.0"),
        (Config(precision=0.9, confidence=0.0), CALIBRATED, "confidence is 0.0"),
        (Config(policy="weight", scale=0.0), MODEL, "scale is 0.0"),
        (Config(model={"seed": 1}), SCORES, r"settings of a model \(seed\) with --scores"),
    ],
)
def test_what_contradicts_or_makes_no_sense_is_named(config, files, message):
    with pytest.raises(ConfigError, match=message):
        check_settings(config, files)


@pytest.mark.parametrize(
    ("config", "files"),
    [
        (Config(tau=0.0, keep_ties=True), MODEL),
        (Config(precision=0.9, confidence=0.8), CALIBRATED),
        (Config(precision=0.9), SCORES._replace(calibrate=Path("h"), calibrate_scores=Path("t"))),
        (Config(policy="weight", scale=2.0), SCORES),
        (Config(policy="cycles"), MODEL),
    ],
)
def test_what_fits_is_taken(config, files):
    check_settings(config, files)


def test_the_rule_has_defaults_where_nothing_is_given():
    rule = Config(policy="weight").rule(0.5)
    assert (rule.policy, rule.tau, rule.scale, rule.keep_ties) == ("weight", 0.5, 1.0, False)
    assert rule.only.kind == ("llm", "model")
