"""Names of settings in other training libraries, and ours for the same setting.

From the arguments of TRL and transformers 5, OpenRLHF 0.9 and LLaMA-Factory 0.9. Units may differ: a batch here is a
number of prompts with all their answers (``steelyard VERB --settings``).
"""

from collections.abc import Container

_OURS = {
    "learning_rate": ("lr", "actor_learning_rate", "critic_learning_rate", "max_lr", "peak_lr"),
    "prompts_per_step": (
        "batch_size", "train_batch_size", "per_device_train_batch_size", "micro_train_batch_size",
        "global_batch_size", "gradient_accumulation_steps", "bs",
    ),
    "epochs": ("num_train_epochs", "max_epochs", "num_epochs", "n_epochs", "epoch"),
    "warm_up": ("warmup", "warmup_ratio", "lr_warmup_ratio", "warmup_steps", "num_warmup_steps"),
    "schedule": ("lr_scheduler_type", "lr_scheduler", "scheduler", "lr_schedule"),
    "max_length": (
        "max_len", "max_seq_length", "max_seq_len", "cutoff_len", "model_max_length", "max_sequence_length",
        "max_prompt_length",
    ),
    "over_length": ("truncation", "truncation_mode", "truncation_side", "truncate"),
    "max_gradient_norm": ("max_grad_norm", "max_norm", "gradient_clip", "grad_clip", "gradient_clipping"),
    "weight_decay": ("l2", "wd", "adam_weight_decay"),
    "label_smoothing": ("label_smoothing_factor",),
    "centring": ("center_rewards_coefficient", "centering"),
    "regulariser": ("regularizer", "reward_penalty", "l2_reward"),
    "loss": ("loss_type", "loss_fn"),
    "optimiser": ("optim", "optimizer"),
    "dtype": ("bf16", "fp16", "torch_dtype", "precision", "mixed_precision", "param_dtype"),
    "adapter": ("use_lora", "use_peft", "finetuning_type", "peft", "lora"),
    "adapter_rank": ("lora_r", "lora_rank"),
    "adapter_alpha": ("lora_alpha",),
    "adapter_dropout": ("lora_dropout",),
    "adapter_layers": ("lora_target", "lora_target_modules", "target_modules"),
    "trainable": ("freeze", "freeze_layers", "freeze_trainable_layers", "num_layers_unfrozen"),
    "recompute": ("gradient_checkpointing", "activation_checkpointing"),
    "compile": ("torch_compile",),
    "batching": ("packing", "packing_samples", "neat_packing", "sample_packing"),
    "evaluate_every": ("eval_steps", "eval_strategy", "evaluation_strategy", "eval_every"),
    "checkpoint_every": ("save_steps", "save_strategy", "ckpt_every"),
    "keep": ("load_best_model_at_end", "save_best"),
    "metric": ("metric_for_best_model",),
    "patience": ("early_stopping_patience", "early_stopping"),
    "track": ("report_to", "use_wandb", "use_tensorboard", "logger"),
    "chat_template": ("template", "chat_template_path", "tokenizer_chat_template", "apply_chat_template"),
    "model": ("model_name_or_path", "pretrain", "model_name", "reward_pretrain", "base_model"),
    "held_out": ("eval_dataset", "eval_file", "validation_file", "val_file", "dev_file"),
    "out": ("output_dir", "save_path", "output", "output_path"),
    "num_resamples": ("n_resamples", "num_bootstrap", "n_bootstrap", "bootstrap", "bootstrap_samples"),
    "seed": ("random_seed", "random_state"),
    "force": ("overwrite", "overwrite_output_dir"),
}  # fmt: skip
PEER_NAMES = {theirs: ours for ours, names in _OURS.items() for theirs in names}
"""Our names by those of other libraries."""


def our_name(name: str, allowed: Container[str]) -> str | None:
    """Return our name for another library's, or for the same name with dashes; null where ``allowed`` lacks it."""
    plain = name.strip().lower().replace("-", "_")
    candidate = plain if plain in allowed else PEER_NAMES.get(plain)
    return candidate if candidate is not None and candidate in allowed else None
