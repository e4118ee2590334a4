"""Training of reward models. `steelyard.stages.train` reads the files, calls what is here, and writes the model.

In reading order:

- `trainer`: `Trainer`, a run as an object: plan, check, step, evaluate, resume. `config`: every setting, its checks,
  the defaults by model and data, and the summary in ``run.json``. `callbacks`: what follows each step.
- `losses`: the losses as pure functions, and the table `LOSSES`; a new loss is an entry of it.
- `inputs`: everything that a training reads. `evidence`: the pairs, ties or ratings of cases, and their findings.
- `training_run`: from the inputs to the model folder, the steps of one training in order.
- `examples` and `batching`: token ids and pairs from cases; the steps of every epoch.
- `gradient_accumulation`: the gradients of a step within the token budget, exact however it is cut.
- `trained_network`: the network at the start, and what of it is trained (adapters, frozen weights, the parameter of the
  loss). `optimiser`: AdamW and its rates.
- `diagnostics`: checks before and while a training runs. `held_out`: accuracy. `reward_reference`: mean and spread of
  rewards, and scales of the head. `policy_reference`: a policy before training.
- `export`: from trained weights to `saved_model`, the folder, and `model_card`, its README. `checkpoints`: continue as
  if never stopped.
- `distributed`: many processes and divided weights. `memory`: what fits, and what is recomputed. `throughput`: speed
  and MFU.

Not here: rewards, which `steelyard.networks.scorer.Scorer` computes in every stage, and the network itself
(`steelyard.networks.reward_network`). With these two and the stage, a training is 27 files.
This module imports nothing, so that settings are read without torch.
"""
