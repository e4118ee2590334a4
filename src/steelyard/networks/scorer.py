"""The `Scorer`, which computes all rewards: one network with its limits and layout, in training and evaluation alike.

A prompt is a tuple of rows, the token ids of the prompt with each of its answers. In the ``packed`` layout the shared
tokens of a prompt are computed once; it is chosen where it is exact. In the ``padded`` layout each answer is a padded
row. No bit of an invariant scorer's reward depends on other rows, their order, or the limits; a scorer that is not
invariant is free to round otherwise in every pass, as training is.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from steelyard.core.errors import ModelError
from steelyard.core.iteration import batched
from steelyard.core.types import Case, JsonObject, Scores
from steelyard.io.progress import track
from steelyard.networks.conversation import Encoder
from steelyard.networks.devices import (
    LOCAL,
    Heap,
    World,
    best_device,
    default_tokens,
    has_slow_bfloat16,
    to_device,
    widen_products,
)
from steelyard.networks.invariance import FAST, REPEATABLE, Arithmetic, invariant_arithmetic
from steelyard.networks.packed_forward import wanted_tokens
from steelyard.networks.packing import forward_groups, num_packed_tokens, pack_groups, process_shares
from steelyard.networks.reward_network import Row, Side, padded

Rows = tuple[Row, ...]
Kernel = Literal["packed", "padded"]
_IDLE_TOKENS = 256
_CASES_AT_A_TIME = 64


class Limits(NamedTuple):
    """Bounds of a forward pass in tokens and rows, and the side on which padded rows are filled.

    ``tokens_per_pass`` is null where the device decides (`default_tokens`).
    """

    tokens_per_pass: int | None = None
    rows_per_pass: int | None = None
    padding: Side = "right"


DEFAULT_LIMITS = Limits()


class RewardCache(Protocol):
    """Outputs of frozen layers by row, from which rewards are computed (`steelyard.networks.feature_cache`)."""

    def rewards(self, network: Any, prompts: Sequence[Rows]) -> Float[Tensor, " answer"] | None:
        """Return the rewards of all rows, prompt by prompt; null where a row is not cached."""
        ...


class Scorer:
    """Compute rewards with one network: one pass with its graph, or many passes within the limits without one.

    ``invariant``: the bits of a reward are the same in every pass. Where the rows of a pass affect each
    other (padding, experts, a policy) each row is then a pass by itself; many processes are not invariant.
    ``deterministic``: a pass gives the same bits twice, gradients too, where a GPU would otherwise take a faster
    kernel. ``is_autocast`` computes in bfloat16 with float32 weights, as in training; weights stored in bfloat16 need
    none. ``encoder`` is needed by `score` alone. Many processes of one ``world`` divide the prompts of `rewards`.
    Raises ModelError where ``kernel="packed"`` is required and packing is not exact.
    """

    def __init__(
        self,
        network: Any,
        *,
        encoder: Encoder | None = None,
        limits: Limits = DEFAULT_LIMITS,
        kernel: Kernel | None = None,
        is_autocast: bool = False,
        invariant: bool = True,
        deterministic: bool = False,
        world: World = LOCAL,
    ) -> None:
        self.network = network
        # Weights that are divided among processes are gathered by whole passes alone: none is tried by itself.
        self.invariant = invariant and world.is_alone
        self.deterministic = deterministic
        self.encoder = encoder
        self.limits = limits
        self.is_autocast = is_autocast
        self.world = world
        self.cache: RewardCache | None = None
        self._invariant_arithmetic: tuple[torch.device, int, Arithmetic] | None = None
        is_half = is_autocast or any(weight.dtype == torch.bfloat16 for weight in network.parameters())
        if is_half and has_slow_bfloat16(best_device()):
            widen_products(network)
        self.layout_reason: str | None = "asked for" if kernel == "padded" else network.packing_obstacle
        if self.layout_reason is not None and kernel == "packed":
            raise ModelError(
                f"packing is not exact for this model ({self.layout_reason})", do="leave kernel=packed out"
            )

    def with_network(self, network: Any, *, is_autocast: bool | None = None, world: World | None = None) -> "Scorer":
        """Return a scorer of another network, precision or world, with the same limits and layout."""
        autocast = self.is_autocast if is_autocast is None else is_autocast
        kernel: Kernel = "packed" if self.is_packed else "padded"
        scorer = Scorer(
            network,
            encoder=self.encoder,
            limits=self.limits,
            kernel=kernel,
            is_autocast=autocast,
            invariant=self.invariant,
            deterministic=self.deterministic,
            world=world or self.world,
        )
        scorer.layout_reason = self.layout_reason
        return scorer

    @property
    def is_packed(self) -> bool:
        """Compute the shared tokens of a prompt once for all its answers."""
        return self.layout_reason is None

    @property
    def layout(self) -> Kernel:
        """``packed`` or ``padded``; ``layout_reason`` says why it is padded."""
        return "packed" if self.is_packed else "padded"

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return next(self.network.parameters()).device

    @property
    def arithmetic(self) -> Arithmetic:
        """Computation of a pass. An invariant scorer tries its device's products once, when it first needs them."""
        if not self.invariant:
            return REPEATABLE if self.deterministic else FAST
        if not self.is_packed:
            return Arithmetic("invariant", single_reason=self.layout_reason)
        place = (self.device, torch.get_num_threads())  # threads divide rows, and may leave one of them few
        if self._invariant_arithmetic is None or self._invariant_arithmetic[:2] != place:
            arithmetic = invariant_arithmetic(self.network, self.device, autocast=self.is_autocast)
            self._invariant_arithmetic = (*place, arithmetic)
        return self._invariant_arithmetic[2]

    def protocol(self) -> JsonObject:
        """Return the layout, whether rewards are invariant, and why each row is a pass by itself where it is."""
        reason = self.arithmetic.single_reason
        single = {} if reason is None else {"single_rows": reason}
        return {"kernel": self.layout, "invariant": self.invariant} | single

    @property
    def most_tokens(self) -> int:
        """The limit of a pass in tokens."""
        return self.limits.tokens_per_pass or default_tokens(self.device)

    @property
    def tokens_per_pass(self) -> int:
        """The size of a pass in tokens: the limit, or what the device is fastest with where that is less."""
        most = self.most_tokens
        return min(most, wanted_tokens(self.device) or most) if self.is_packed else most

    def size(self, rows: Sequence[Row]) -> int:
        """Return how many tokens of a pass the answers of one prompt take: shared tokens once, or with each row."""
        return num_packed_tokens(rows) if self.is_packed else sum(map(len, rows))

    def forward(self, prompts: Sequence[Rows]) -> Float[Tensor, " answer"]:
        """Return the rewards of all rows, prompt by prompt, with their graph: one pack, or padded passes by length.

        Where outputs of frozen layers are cached for all rows, computation begins after these layers.
        """
        with self._autocast():
            cached = None if self.cache is None else self.cache.rewards(self.network, prompts)
            if cached is not None:
                return cached
            if self.is_packed:
                return self.network.packed_rewards(prompts, arithmetic=self.arithmetic)
            rows = [row for rows in prompts for row in rows]
            parts: list[Tensor] = []
            for group in self._padded_groups(prompts):
                # Any token serves as filler: no other token attends to it.
                ids, attended = padded([rows[index] for index in group], filler=0, side=self.limits.padding)
                parts.append(self.network(to_device(ids, self.device), to_device(attended, self.device)))
        return self._in_row_order(torch.cat(parts), prompts)

    def rewards(self, prompts: Sequence[Rows], *, title: str | None = None) -> Float[Tensor, " answer"]:
        """Return the rewards of all rows, prompt by prompt, within the limits and without a graph.

        Many processes divide the prompts, and each gets the rewards of all. ``title`` names a progress bar.
        """
        if not any(prompts):
            return torch.zeros(0)
        world = self.world
        places = range(len(prompts))
        if not world.is_alone:
            places = process_shares([self.size(rows) for rows in prompts], world.size)[world.rank]
        share = [prompts[place] for place in places]
        passes = self.passes(share)
        num_runs = len(passes) if self.is_packed else len(self._padded_groups(share))
        # Divided weights are gathered by all processes at once: each runs as many passes as the busiest.
        num_idle = world.all_max([num_runs])[0] - num_runs
        # Around all passes: each weight is rounded once, not once a pass.
        with torch.no_grad(), self._autocast():
            shown = passes if title is None else track(passes, title, len(passes))
            rewards = [self.forward(rows) for rows in shown]
            for _ in range(num_idle):
                self.idle(prompts[0][0])
        if world.is_alone:
            return torch.cat(rewards)
        by_prompt = torch.cat(rewards).cpu().split([len(rows) for rows in share]) if rewards else ()
        shares = world.all_gather(list(zip(places, by_prompt, strict=True)))
        ordered = sorted((pair for share in shares for pair in share), key=lambda pair: pair[0])
        return torch.cat([scores for _, scores in ordered])

    def passes(self, prompts: Sequence[Rows]) -> list[Sequence[Rows]]:
        """Divide prompts into passes within the limits; padded rows are divided later, by `forward`."""
        if not self.is_packed:
            return [prompts] if prompts else []
        if self.arithmetic.single_reason is not None:
            return [[(row,)] for rows in prompts for row in rows]
        groups = pack_groups(
            prompts,
            max_tokens=self.most_tokens,
            max_rows=self.limits.rows_per_pass,
            wanted_tokens=self.tokens_per_pass,
        )
        return [[tuple(prompts[part.prompt][answer] for answer in part.answers) for part in group] for group in groups]

    def idle(self, row: Row) -> Float[Tensor, " answer"]:
        """Run a short pass whose rewards are not used: gathering weights takes all processes at once."""
        return self.forward([(tuple(row[:_IDLE_TOKENS]),)])

    def head_inputs(self, prompts: Sequence[Rows], *, title: str | None = None) -> Float[Tensor, "answer hidden"]:
        """Return the inputs of the head of every row, prompt by prompt, in evaluation mode and without a graph."""
        inputs: list[Tensor] = []

        hook = self.network.head.register_forward_pre_hook(lambda _, arguments: inputs.append(arguments[0].detach()))
        try:
            with self.evaluating():
                self.rewards(prompts, title=title)
        finally:
            hook.remove()
        return torch.cat(inputs) if self.is_packed else self._in_row_order(torch.cat(inputs), prompts)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Within it the network is in evaluation mode: nothing is dropped at random."""
        was_training = self.network.training
        self.network.eval()
        try:
            yield
        finally:
            self.network.train(was_training)

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Return one Scores per case, in order. Raises what encoding and checking the cases raise."""
        encoder = self.encoder
        assert encoder is not None, "a scorer of cases has an encoder"
        heap = Heap()
        for window in batched(cases, _CASES_AT_A_TIME):
            encoded = [encoder.encode(case) for case in window]
            prompts = [tuple(answer.row for answer in answers if answer.unscored is None) for answers in encoded]
            encoder.check([row for rows in prompts for row in rows])
            rewards = iter(self.rewards([rows for rows in prompts if rows]).tolist())
            for case, answers in zip(window, encoded, strict=True):
                by_name = list(zip((response.id for response in case.responses), answers, strict=True))
                yield Scores(
                    prompt=case.prompt.id,
                    language=case.prompt.language,
                    scores={name: next(rewards) if answer.unscored is None else None for name, answer in by_name},
                    unscored={name: answer.unscored for name, answer in by_name if answer.unscored is not None},
                    cut=tuple(name for name, answer in by_name if answer.is_over_length and answer.unscored is None),
                )
            heap.trim()

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_autocast)

    def _padded_groups(self, prompts: Sequence[Rows]) -> tuple[tuple[int, ...], ...]:
        lengths = [len(row) for rows in prompts for row in rows]
        most = 1 if self.invariant else self.limits.rows_per_pass
        return forward_groups(lengths, max_tokens=self.most_tokens, max_rows=most)

    def _in_row_order(self, values: Tensor, prompts: Sequence[Rows]) -> Tensor:
        """Put values of padded passes, which go by length, into the order of the rows."""
        order = torch.tensor([index for group in self._padded_groups(prompts) for index in group])
        return torch.empty_like(values).index_copy(0, to_device(order, values.device), values)
