"""Self-tests of models with tokens and a head: BOS token, last token, head, padding and packing."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec
import torch

from steelyard.core.protocols import SelfTest
from steelyard.core.remedies import FILE, Advice, Command, Remedy
from steelyard.core.types import Case, JsonObject, Response
from steelyard.networks.answer_tokens import PROBE_ANSWERS, num_shared
from steelyard.networks.conversation import Rendering, encode
from steelyard.networks.reward_network import Side
from steelyard.networks.scorer import Rows, Scorer
from steelyard.statistics.tolerance import compare_scores

_NO_LIMIT = 10**9
_FEWEST_WEIGHTS = 256
_KURTOSIS_OF_NORMAL = 3.0


class ReadRow(NamedTuple):
    """The token ids of an answer, and the last position that the head reads."""

    ids: tuple[int, ...]
    place: int


def beginning_mark(tokenizer: Any, rows: Sequence[ReadRow]) -> SelfTest:
    """Test that each row begins with one BOS token, or with none where the tokenizer adds none."""
    name, bos = "beginning_mark", tokenizer.bos_token_id
    if bos is None:
        return SelfTest(name=name, state="not applicable", remark="the tokenizer has no BOS token")
    counts = sorted({len(list(takewhile(lambda token: token == bos, row.ids))) for row in rows})
    figures = {"mark": tokenizer.bos_token, "num_at_start": counts}
    is_added = tokenizer("a").input_ids[:1] == [bos]
    if counts == [0] and not is_added:
        remark = "neither the tokenizer nor the template begins with a mark"
        return SelfTest(name=name, state="not applicable", figures=figures, remark=remark)
    if counts == [1]:
        return SelfTest(name=name, state="passed", figures=figures)
    return SelfTest(
        name=name, state="failed", figures=figures,
        remark=f"conversations begin with {' or '.join(map(str, counts))} BOS tokens, not with one",
        do=Advice("let either the template or the tokenizer write the mark; ", Remedy("chat_template", FILE),
                  " names another template"),
    )  # fmt: skip


def template_end(tokenizer: Any, rendering: Rendering, case: Case) -> tuple[int, ...]:
    """Return the template's tokens after an answer: the common end of two answers without common bytes."""
    endless = msgspec.structs.replace(rendering, max_length=_NO_LIMIT)
    first, second = (
        encode(tokenizer, endless, case, Response(id="unlike", text=text)).ids[::-1] for text in PROBE_ANSWERS
    )
    return first[: num_shared(first, second)][::-1]


def last_token(tokenizer: Any, rows: Sequence[ReadRow], end: Sequence[int]) -> SelfTest:
    """Test that the head reads the last token of ``end``, the template's text after every answer.

    Without an ``end`` the head reads the answer's last token, which is remarked: most models were trained with an end.
    """
    name = "last_token"
    read = sorted({row.ids[row.place] for row in rows})
    figures: JsonObject = {"read": [_shown(tokenizer, token) for token in read[:8]], "num_different": len(read)}
    if not end:
        remark = "the template writes nothing after an answer, so that the answer's last token is read"
        return SelfTest(name=name, state="passed", figures=figures, remark=remark)
    figures["expected"] = _shown(tokenizer, end[-1])
    if any(row.place != len(row.ids) - 1 for row in rows):
        remark = "this family's head does not read at the last token"
        return SelfTest(name=name, state="not applicable", figures=figures, remark=remark)
    if read == [end[-1]]:
        return SelfTest(name=name, state="passed", figures=figures)
    return SelfTest(
        name=name, state="failed", figures=figures,
        remark=f"the head should read {figures['expected']!r}, and reads {figures['read']}",
        do=Advice("the template's end merges with answers: use ", Remedy("model.strip", value=True),
                  ", or name another: ", Remedy("chat_template", FILE)),
    )  # fmt: skip


def _shown(tokenizer: Any, token: int) -> str:
    return str(tokenizer.convert_ids_to_tokens(token) or token)


def trained_head(weights: Iterable[torch.Tensor], *, fresh_deviation: float | None) -> SelfTest:
    """Test that the head is finite and not constant; remark where it looks as if drawn with ``fresh_deviation``.

    Training moves a drawn head by less than the deviation of the draw, so that no statistic can prove training.
    """
    flat = torch.cat([weight.detach().float().flatten().cpu() for weight in weights])
    figures: dict[str, float] = {"num_weights": len(flat)}
    do = Advice(
        "check the download and the family (",
        Command("list", ("models",)),
        "); train an untrained model: ",
        Command("train"),
    )
    if not bool(torch.isfinite(flat).all()):
        number = int((~torch.isfinite(flat)).sum())
        remark = f"{number} of the head's {len(flat)} weights are NaN or infinite"
        return SelfTest(name="trained_head", state="failed", figures=figures, remark=remark, do=do)
    figures |= {"mean": float(flat.mean()), "deviation": float(flat.std(correction=0))}
    if float(flat.max()) == float(flat.min()) and len(flat) > 1:
        remark = f"all of the head's weights are {float(flat[0]):g}: it was never trained"
        return SelfTest(name="trained_head", state="failed", figures=figures, remark=remark, do=do)
    if fresh_deviation and _looks_drawn(flat, fresh_deviation):
        remark = (
            f"the head looks as if drawn at random (normal, deviation {fresh_deviation:g}): make sure it was trained"
        )
        return SelfTest(name="trained_head", state="passed", figures=figures, remark=remark)
    return SelfTest(name="trained_head", state="passed", figures=figures)


def _looks_drawn(weights: torch.Tensor, deviation: float) -> bool:
    """Return whether mean, deviation and kurtosis are within three standard errors of those of a normal draw."""
    number = len(weights)
    if number < _FEWEST_WEIGHTS:
        return False
    spread = float(weights.std(correction=0))
    kurtosis = float(((weights - weights.mean()) / spread).pow(4).mean())
    return (
        # Standard errors of n normal draws: s / sqrt(2n) of s, s / sqrt(n) of the mean, sqrt(24 / n) of the kurtosis.
        abs(spread - deviation) < 3 * deviation / (2 * number) ** 0.5
        and abs(float(weights.mean())) < 3 * deviation / number**0.5
        and abs(kurtosis - _KURTOSIS_OF_NORMAL) < 3 * (24 / number) ** 0.5
    )


def same_by(name: str, first: Sequence[float], second: Sequence[float], *, dtype: str, ways: str) -> SelfTest:
    """Test that two ways of computing the same rewards agree within rounding. ``ways`` names the two."""
    result = compare_scores(first, second, dtype=dtype)
    figures = {"largest_difference": result.largest, "tolerance": result.bound, "num_answers": len(first)}
    if result.is_rounding:
        return SelfTest(name=name, state="passed", figures=figures, remark=result.remark)
    return SelfTest(
        name=name, state="failed", figures=figures,
        remark=f"{ways} differ by {result.largest:.3g}, where rounding allows {result.bound:.3g}",
        do=Advice("use ", Remedy("model.batch_size", 1), ", and report the model: its attention depends on other rows"),
    )  # fmt: skip


def text_tests(tokenizer: Any, rendering: Rendering, prompts: Sequence[Rows], case: Case) -> Iterator[SelfTest]:
    """Test the BOS token and the last token of rows that a head reads at their ends."""
    rows = [ReadRow(row, len(row) - 1) for rows in prompts for row in rows]
    yield beginning_mark(tokenizer, rows)
    yield last_token(tokenizer, rows, template_end(tokenizer, rendering, case))


def padding_test(scorer: Scorer, prompts: Sequence[Rows], *, dtype: str) -> SelfTest:
    """Test that padding on either side gives the same rewards."""
    left, right = (_padded(scorer, side).rewards(prompts).tolist() for side in ("left", "right"))
    return same_by("padding_side", left, right, dtype=dtype, ways="padding on the left and on the right")


def packing_test(scorer: Scorer, prompts: Sequence[Rows], *, dtype: str) -> SelfTest:
    """Test that packed prompts and one row per answer give the same rewards, where packing is used."""
    if not scorer.is_packed:
        return SelfTest(name="packing", state="not applicable", remark="one row per answer is computed")
    packed, rows = scorer.rewards(prompts).tolist(), _padded(scorer, "right").rewards(prompts).tolist()
    return same_by("packing", packed, rows, dtype=dtype, ways="packed prompts and one row per answer")


def invariance_test(scorer: Scorer, prompts: Sequence[Rows]) -> SelfTest:
    """Test that rewards have the same bits together, each alone, in another order, and with prompts split."""
    name = "same_bits"
    if not scorer.invariant:
        return SelfTest(name=name, state="not applicable", remark="model.invariant is false: passes may round")
    expected = scorer.rewards(prompts)
    turned = scorer.rewards([rows[::-1] for rows in prompts[::-1]]).flip(0)
    alone = torch.cat([scorer.rewards([(row,)]) for rows in prompts for row in rows])
    split = scorer.rewards([part for rows in prompts for part in (rows[:1], rows[1:]) if part])
    num_different = sum(int((rewards != expected).sum()) for rewards in (turned, alone, split))
    figures = {"num_answers": len(expected), "num_different": num_different}
    if not num_different:
        return SelfTest(name=name, state="passed", figures=figures, remark=scorer.arithmetic.single_reason)
    return SelfTest(
        name=name, state="failed", figures=figures,
        remark=f"{num_different} of {3 * len(expected)} rewards have other bits with other answers in their pass",
        do=Advice("use ", Remedy("model.kernel", "padded"), ", in which each answer is a pass by itself"),
    )  # fmt: skip


def _padded(scorer: Scorer, side: Side) -> Scorer:
    return Scorer(scorer.network, limits=scorer.limits._replace(padding=side), kernel="padded", invariant=False)
