"""Training of reward models. `steelyard.stages.train` reads the files, calls what is here, and writes the model.

In reading order:

- `trainer`: `Trainer`, a run as an object: plan, check, step, evaluate, resume. `config`: every setting, its checks,
  the defaults by model and data, and the summary in ``run.json``. `callbacks`: what follows each step.
- `losses`: the losses as pure functions, and the table `LOSSES`; a new loss is an entry of it.
- `examples` and `batching`: token ids and pairs from cases; the steps of every epoch.
- `gradient_accumulation`: the gradients of a step within the token budget, exact however it is cut.
- `optimiser`: what is trained (adapters, frozen weights, the parameter of the loss), AdamW and its rates.
- `diagnostics`: checks before and while a training runs. `held_out`: accuracy, and rewards of a reference set.
- `export`: from trained weights to a model folder with its card. `checkpoints`: continue as if never stopped.
- `distributed`: many processes and divided weights. `memory`: what fits, and what is recomputed. `throughput`: speed
  and MFU.

Not here: rewards, which `steelyard.networks.scorer.Scorer` computes in every stage, and the network itself
(`steelyard.networks.reward_network`). With these two and the stage, a training is 19 files.
This module imports nothing, so that settings are read without torch.
"""
