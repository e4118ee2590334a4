"""Tiny networks and examples of token ids for the tests of training, and a reference of the loss."""

import torch

import tiny
from steelyard.networks.reward_network import PolicyNetwork, RewardNetwork
from steelyard.ranking.pairs import IndexedPair
from steelyard.training.examples import Example
from steelyard.training.gradient_accumulation import Accumulation, objective_of, read_losses
from steelyard.training.trainer import Trainer, scorer_of


class RMSNorm64(torch.nn.Module):
    """The norm without transformers' cast to float32, which alone would move float64 gradients by 2e-9."""

    def __init__(self, norm):
        super().__init__()
        self.weight, self.epsilon = norm.weight, norm.variance_epsilon

    def forward(self, hidden):
        return self.weight * hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.epsilon)


def network(seed=0, *, double=False):
    from transformers import Qwen2ForSequenceClassification

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = RewardNetwork(Qwen2ForSequenceClassification(tiny.config(num_labels=1, pad_token_id=0)))
    return doubled(made) if double else made


def policy(seed=0, *, is_tied, is_mean):
    """Return a policy in float64, whose head may be its embedding."""
    from transformers import Qwen2ForCausalLM

    settings = tiny.config(tie_word_embeddings=is_tied)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return doubled(PolicyNetwork(Qwen2ForCausalLM(settings), beta=0.5, is_mean=is_mean))


def doubled(made):
    made.double()
    for name, module in list(made.classifier.named_modules()):
        if type(module).__name__ == "Qwen2RMSNorm":
            parent = made.classifier.get_submodule(name.rpartition(".")[0])
            setattr(parent, name.rpartition(".")[2], RMSNorm64(module))
    return made


def example(*lengths, pairs, start=5):
    rows = tuple(tuple(range(start + index, start + index + length)) for index, length in enumerate(lengths))
    return Example(rows, tuple(IndexedPair(*pair) for pair in pairs))


def answers(prompt, *tails, pairs):
    """Return an example whose rows share the prompt's tokens."""
    return Example(tuple((*prompt, *tail) for tail in tails), tuple(IndexedPair(*pair) for pair in pairs))


def trained(model, examples, config, callbacks=(), *, start=None, **settings):
    """Return the trainer after its run."""
    trainer = Trainer(model, examples, config, **settings)
    trainer.run(callbacks, start=start)
    return trainer


def accumulated(model, slots, examples, config, *, seed=0):
    """Return the losses of one step; their gradients are added to the model's."""
    accumulation = Accumulation(scorer_of(model, config), examples, objective_of(config))
    return read_losses([accumulation.step(slots, seed=seed)])[0]


def plain_loss(model, examples, config):
    """Compute the loss by its equations: every response alone, every pair in a loop."""
    by_prompt, squares = [], []
    for one in examples:
        rewards = [model(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.bool))[0] for row in one.rows]
        squares += [reward**2 for reward in rewards]
        by_prompt.append(
            [
                (pair.weight, -torch.log(torch.sigmoid(rewards[pair.better] - rewards[pair.worse] - pair.margin)))
                for pair in one.pairs
            ]
        )
    if config.reduction == "pair":
        every = [term for terms in by_prompt for term in terms]
        loss = sum(weight * term for weight, term in every) / sum(weight for weight, _ in every)
    else:
        means = [sum(w * term for w, term in terms) / sum(w for w, _ in terms) for terms in by_prompt]
        loss = sum(means) / len(means)
    return loss + config.regulariser * sum(squares) / len(squares)
