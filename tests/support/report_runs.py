"""Finished run folders as the stages write them, for the tests of the report."""

import json
from pathlib import Path

import msgspec
import numpy as np

from steelyard.core.types import Case, Counts, Judgment, Message, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import result_folder

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)> \"' & {{ 7*7 }} <!--"
TEXTS = {
    "zh": ("请用三句话解释为什么天空是蓝色的。", "因为空气分子对短波长的蓝光散射更强，所以我们看到的天空是蓝色的。"),
    "en": (
        "Write a Python function that reverses a list.",
        "Here it is:\n```python\ndef reverse(items):\n    return items[::-1]\n```\nIt returns a new list.",
    ),
    "ar": ("اشرح لماذا السماء زرقاء.", "السماء زرقاء لأن جزيئات الهواء تشتت الضوء الأزرق أكثر من غيره (تشتت رايلي)."),
    "he": ("מהי בירת צרפת?", "בירת צרפת היא פריז."),
    "hi": ("जल का सूत्र क्या है?", "जल का रासायनिक सूत्र H₂O है।"),
    "ja": ("素数とは何ですか。", "1とその数自身でしか割り切れない、2以上の整数です。"),
    "la": ("Solve $x^2 - 5x + 6 = 0$.", "By factoring, \\[(x-2)(x-3)=0\\] so $x \\in \\{2, 3\\}$. 🎉"),
}
CATEGORIES = {
    "zh": "数学",
    "en": "code",
    "ar": "معرفة",
    "he": "knowledge",
    "hi": "science",
    "ja": "reasoning",
    "la": "mathematics",
}


def made_cases(number, *, seed=0, hostile=False):
    """Return cases of five responses with a ranking and fifteen noisy verdicts each, some of them in cycles."""
    rng = np.random.default_rng(seed)
    return [_case(index, rng, hostile=hostile and index == 0) for index in range(number)]


def _case(index, rng, *, hostile):
    language = list(TEXTS)[index % len(TEXTS)]
    asked, answer = TEXTS[language]
    ids = [f"r{index}-{letter}" for letter in "abcde"]
    judgments = []
    for repeat in range(15):
        first, second = sorted(rng.choice(5, size=2, replace=False))
        verdict = str(rng.choice(["left", "right", "tie", "none"], p=[0.74, 0.16, 0.07, 0.03]))
        judge = f"simulated-{repeat % 3}" if repeat % 3 else "标注员甲"
        judgments.append(
            Judgment(
                left=ids[first],
                right=ids[second],
                verdict=verdict,
                judge=judge,
                kind="human" if repeat % 3 else "llm",
                reason="refused" if verdict == "none" else None,
            )
        )
    return Case(
        prompt=Prompt(
            id=HOSTILE if hostile else f"p{index}",
            language=language,
            category=(HOSTILE if hostile else CATEGORIES[language], "second tier"),
            messages=(
                Message(role="system", content="Be brief."),
                Message(role="user", content=HOSTILE if hostile else f"{asked} ({index})"),
            ),
        ),
        responses=tuple(
            Response(id=name, text=HOSTILE if hostile else f"{answer}\n\n{'…' * at} {at}")
            for at, name in enumerate(ids)
        ),
        judgments=tuple(judgments),
        ranking=((ids[0],), (ids[1], ids[2], ids[3]), (ids[4],)) if index % 2 else tuple((name,) for name in ids),
    )


def conflict(ratio, number):
    return {
        "ratio": ratio, "ratio_of_strict": ratio * 1.1, "ratio_mean_per_prompt": ratio * 0.97, "share_of_prompts": 0.51,
        "share_of_pairs_ordered": 0.7, "num_judgments": number, "num_strict": round(number * 0.9),
        "num_conflicting": round(number * ratio), "num_ties": round(number * 0.1), "num_none": 7,
        "num_prompts": 40, "num_pairs": 400,
    }  # fmt: skip


def estimate(value, n, half=0.04):
    return {"value": value, "low": max(0.0, value - half), "high": min(1.0, value + half), "n": n}


def measured(accuracy, exact, n=210):
    return {"accuracy": estimate(accuracy, n, 0.07), "exact_match": estimate(exact, n // 7, 0.09)}


def groups(names, first, step):
    return {name: measured(first + step * at, 0.1) for at, name in enumerate(names)}


def resolve_run(folder: Path, cases, *, simulated=True):
    given = folder.parent / "given.jsonl"
    write_cases(given, cases)
    with result_folder(folder, "resolve", config={"only": {}, "aggregate": "none"}, inputs={"cases": given}) as result:
        marks = {"simulated": True} if simulated else {}
        write_cases(result.path("cases.jsonl"), [msgspec.structs.replace(case, meta=marks) for case in cases])
        result.counts = Counts(
            num_in=len(cases) + 2,
            num_used=len(cases),
            dropped={"no comparable pair": 2},
            noted={"unranked_responses": 3},
        )
        result.summary = {
            "conflicts": {
                "overall": conflict(0.2134, 600),
                "by_judge": {
                    "simulated-1": conflict(0.11, 200),
                    "simulated-2": conflict(0.19, 200),
                    "标注员甲": conflict(0.31, 200),
                },
                "by_kind": {"human": conflict(0.171, 400), "llm": conflict(0.31, 200)},
                "by_category": {name: conflict(0.1 + 0.03 * at, 90) for at, name in enumerate(CATEGORIES.values())},
                "by_subset": {},
                "by_language": {name: conflict(0.12 + 0.02 * at, 90) for at, name in enumerate(CATEGORIES)},
            },
            "unranked_responses": 3,
        }
    return folder


def train_run(folder: Path, *, steps=240):
    rng = np.random.default_rng(1)
    cases = folder.parent / "train.jsonl"
    cases.write_text("{}\n")
    with result_folder(
        folder, "train", config={"model": "gemma", "coefficient": 0.1, "seed": 3}, inputs={"cases": cases}
    ) as result:
        lines = [
            {
                "step": step,
                "epoch": step / 100,
                "loss": 0.35 + 0.35 * float(np.exp(-step / 60)) + float(rng.normal(0, 0.04)),
                "pair_loss": 0.4,
                "regulariser": 0.01,
                "learning_rate": 1e-5,
                "num_pairs": 40,
            }
            for step in range(1, steps + 1)
        ]
        lines += [
            {
                "step": step,
                "held_out": {
                    "accuracy": 0.5 + 0.22 * (1 - float(np.exp(-step / 80))),
                    "exact_match": 0.3,
                    "num_pairs": 420,
                    "num_prompts": 60,
                    "by_category": {},
                    "by_language": {},
                },
            }
            for step in range(40, steps + 1, 40)
        ]
        result.path("curve.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n")
        result.counts = Counts(num_in=400, num_used=396, dropped={"no comparable pair": 4})
        counts = {"num_pairs": 3208, "num_prompts": 396, "num_responses": 1980}
        over = {"longest": 900, "num_too_long": 0, "num_pairs_over": 0, "num_prompts_over": 0, "is_cut": False}
        result.summary = {
            **counts,
            "kernel": "packed",
            "num_steps": steps,
            "last_step": steps,
            "learning_rate": 1e-5,
            "prompts_per_step": 4,
            "regulariser": 0.1,
            "num_weights": 1000,
            "share_of_pairs_kept": 1.0,
            "length": {**counts, **over, "max_length": 2048, "over_length": "unscored", "by_language": {}},
            "final_loss": 0.3671,
            "held_out": {
                "accuracy": 0.7083, "exact_match": 0.3, "num_pairs": 420, "num_prompts": 60, "by_category": {},
                "by_language": {},
            },
        }  # fmt: skip
    return folder


def item_rows(cases, *, seed=2, noise=1.0):
    rng = np.random.default_rng(seed)
    for case in cases:
        place = {name: at for at, tier in enumerate(case.ranking) for name in tier}
        scores = {
            response.id: 1.3 - 0.6 * place[response.id] + float(rng.normal(0, noise)) for response in case.responses
        }
        pairs = [(a, b) for a in place for b in place if place[a] < place[b]]
        correct = sum(scores[a] > scores[b] for a, b in pairs)
        yield {
            "prompt": case.prompt.id,
            "language": case.prompt.language,
            "category": case.prompt.category[0],
            "subset": None,
            "bench": "cases",
            "num_pairs": len(pairs),
            "num_correct": correct,
            "num_tied": 0,
            "exact_match": correct == len(pairs),
            "scores": scores,
            "ranking": case.ranking,
        }


def evaluate_run(folder: Path, cases, *, model="models/测试模型-0.5b", seed=2, **more):
    bench = folder.parent / "bench.jsonl"
    write_cases(bench, cases)
    with result_folder(folder, "evaluate", config={"pairs": "tiers", "seed": 0}, inputs={"bench.1": bench}) as result:
        rows = b"".join(msgspec.json.encode(row) + b"\n" for row in item_rows(cases, seed=seed))
        result.path("items.jsonl").write_bytes(rows)
        result.counts = Counts(num_in=len(cases), num_used=len(cases), noted={"pairs": 1457})
        categories = sorted({case.prompt.category[0] for case in cases})
        baseline = {"exact_match": estimate(0.11, 170), "accuracy_micro": estimate(0.5, 1457)}
        result.summary = {
            "model": model, "metric": "steelyard", "pairs": "tiers", "weights": {}, "measures": {},
            "accuracy": {"value": 0.7123, "low": 0.6841, "high": 0.7392, "n": 1457},
            "exact_match": {"value": 0.3216, "low": 0.2533, "high": 0.3987, "n": 170},
            "accuracy_micro": estimate(0.7203, 1457), "exact_match_micro": estimate(0.3301, 170),
            "by_category": {name: measured(0.55 + 0.04 * at, 0.2 + 0.05 * at) for at, name in enumerate(categories)},
            "by_language": {name: measured(0.58 + 0.03 * at, 0.3) for at, name in enumerate(TEXTS)},
            "tied": {"num_pairs": 3, "share": 0.0021},
            "baselines": {
                "longer": {**baseline, "accuracy": estimate(0.5814, 1457),
                           "by_category": groups(categories, 0.6, -0.02),
                           "difference": {"value": 0.1309, "low": 0.0904, "high": 0.1722, "n": 1457}},
                "random": {**baseline, "accuracy": estimate(0.4987, 1457), "by_category": groups(categories, 0.5, 0.01),
                           "difference": {"value": 0.2136, "low": 0.18, "high": 0.2501, "n": 1457}},
                "ngrams": {**baseline, "accuracy": estimate(0.56, 1457), "by_category": groups(categories, 0.52, 0.015),
                           "difference": {"value": 0.1523, "low": 0.11, "high": 0.19, "n": 1457}},
            },
            **more,
        }  # fmt: skip
    return folder


def all_runs(parent: Path, number=40, *, hostile=False):
    """Write a resolve, a train and an evaluate run."""
    cases = made_cases(number, hostile=hostile)
    return [
        resolve_run(parent / "resolved", cases),
        train_run(parent / "model"),
        evaluate_run(parent / "evaluated", cases),
    ]
