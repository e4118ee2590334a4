"""A small recipe without torch; shared by the tests of recipes."""

SMALL = """
about = "a small pipeline"
seed = 3

[stages.made]
verb = "simulate"
config.num_prompts = 32
config.test_share = 0.5

[stages.ranked]
verb = "resolve"
cases = "made/cases.jsonl"

[stages.scored]
verb = "score"
cases = "ranked/cases.jsonl"
model = "longer"

[stages.evaluated]
verb = "evaluate"
benches = ["made/test.jsonl"]
model = "shorter"
train_cases = "ranked/cases.jsonl"
config.num_resamples = 20
config.baselines = ["longer"]
"""


def small_recipe(folder, text=SMALL):
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path
