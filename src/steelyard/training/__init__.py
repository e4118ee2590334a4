"""Training of reward models. `steelyard.stages.train` reads the files, calls what is here, and writes the model.

In reading order:

- `trainer`: `Trainer`, a run as an object: plan, check, step, evaluate, resume. `config`: every setting, its checks,
  and the defaults by model and data. `callbacks`: what follows each step.
- `losses`: the losses as pure functions, and the table `LOSSES`; a new loss is an entry of it.
- `examples` and `batching`: token ids and pairs from cases; the steps of every epoch.
- `gradient_accumulation`: the gradients of a step within the token budget, exact however it is cut; the optimiser.
- `preparation`: adapters, frozen weights and a policy's reference before training.
- `diagnostics`: checks before and while a training runs. `held_out`: accuracy, and rewards of a reference set.
- `export`, `model_card` and `summary`: from trained weights to a model folder and its record. `checkpoints`: continue
  as if never stopped.
- `distributed`: many processes and divided weights. `memory` and `memory_modes`: what fits, and what is recomputed.
  `throughput`: speed and MFU.

Not here: rewards, which `steelyard.networks.scorer.Scorer` computes in every stage, and the network itself
(`steelyard.networks.reward_network`). With these two and the stage, a training is 22 files.
This module imports nothing, so that settings are read without torch.
"""
