import json

import tiny
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.stages.train import Config, train
from strategies import case

ANSWERS = (Response(id="g", text="Yes, here."), Response(id="b", text="no"), Response(id="u", text="?"))


def test_counts_and_summary_by_hand(tmp_path):
    ranked = Case(prompt=case(id="p", text="one").prompt, responses=ANSWERS, ranking=(("g",), ("b",)))
    twice = Case(prompt=case(id="q", text="two").prompt, responses=ANSWERS, ranking=(("g",), ("b", "u")))
    write_cases(tmp_path / "train.jsonl", [ranked, twice, case(id="r", text="three")])
    base = tiny.save_base(tmp_path / "base")
    run = train(tmp_path / "train.jsonl", tmp_path / "out", Config(epochs=3, prompts_per_step=1), model=base)
    assert (run.counts.num_in, run.counts.num_used) == (3, 2)
    assert run.counts.dropped == {"no comparable pair": 1}
    assert run.counts.noted["responses in no pair"] == 1 + len(case(id="r", text="three").responses)
    numbers = ("num_prompts", "num_responses", "num_pairs", "num_steps", "last_step", "share_of_pairs_kept")
    assert [run.summary[name] for name in numbers] == [2, 5, 3, 6, 6, 1.0]
    lines = [json.loads(line) for line in (tmp_path / "out" / "curve.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert run.summary["final_loss"] == lines[-1]["loss"]
