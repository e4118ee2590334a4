"""Networks that score conversations, in torch: loading, rendering, packing, heads and the `Scorer`.

In reading order:

- `scorer`: `Scorer`, the one way to get rewards. `reward_network`: a decoder with a scalar head, and policies with the
  reward of DPO. `devices`: the device, the processes and the memory on which they run.
- `conversation`, `rendering`, `templates`: from a conversation to token ids. `answer_tokens`: where an answer begins
  among the tokens, and the tokens as text.
- `packing`, `pack_layout`, `pack_attention`, `gpu_attention`, `packed_forward`: prompts with each shared token computed
  once. `invariance`: the arithmetic that gives a reward the same bits in every batch. `feature_cache`: frozen layers
  computed once for each row.
- `loading`, `pretrained`, `adapters`: weights and tokenizers from folders and the hub. `settings`: the settings of
  decoders, and the manifest that a trained model stores. `ratings`: ratings as targets, and their scale.
- `published`: networks that only score, of published families and of policies with their reference. `features`: pooled
  hidden states of a frozen decoder. `self_tests`: tests that a model makes of itself.

Not here: training (`steelyard.training`), and the kinds of model that a user names (`steelyard.plugins.models`).
This module imports nothing: much of the package needs torch.
"""
