"""Evaluations of parallel items by several models, whose outcomes are written as letters."""

import json

from msgspec.structs import replace

from steelyard.core.types import Response
from steelyard.io.cases import write_cases
from steelyard.stages.evaluate import Config, evaluate
from strategies import case

SCORES = {"r": 1.0, "t": 0.5, "w": 0.0}


def evaluated_languages(folder, model, outcomes, *, sections=("a", "b"), bench="cases", better="answer a", subset=None):
    """Evaluate the scores of a model; ``outcomes``: a letter an item by language, r(ight), w(rong) or t(ied).

    Items alternate between the sections, and a dot leaves an item out. ``better`` is the text of the better response.
    """
    root = folder / f"{model}-files"
    root.mkdir(parents=True)
    cases, scores = [], []
    for language, letters in outcomes.items():
        for index, letter in enumerate(letters):
            if letter == ".":
                continue
            category = (sections[index % len(sections)],)
            made = case(
                f"p{index}", "ab", language=language, ranking=(("a",), ("b",)), subset=subset, category=category
            )
            cases.append(replace(made, responses=(Response(id="a", text=better), made.responses[1])))
            scored = {"a": SCORES[letter], "b": 0.5}
            scores.append({"prompt": f"p{index}", "language": language, "scores": scored})
    write_cases(root / "bench.jsonl", cases)
    path = root / f"{model}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in scores), encoding="utf-8")
    config = Config(bench_kind=bench, num_resamples=5, baselines=())
    evaluate([root / "bench.jsonl"], folder / model, config, scores=path)
    return folder / model
