"""Reward models, losses and batches of Steelyard inside other libraries.

- `reward_function`: a reward model as an entry of TRL's ``reward_funcs``.
- `pairwise_classifier`: a reward model as a classifier of scikit-learn.
- `inspect_scorer`: a reward model as a scorer of inspect_ai.
- `preference_batches`: examples, collator and loss for plain PyTorch and ``transformers.Trainer``.

Each library is imported where it is used, so that none is needed for the others.
"""
