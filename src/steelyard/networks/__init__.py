"""Networks that score conversations, in torch: loading, rendering, packing, heads and the `Scorer`.

In reading order:

- `scorer`: `Scorer`, the one way to get rewards. `world`: the processes that work on one network.
- `reward_network`: a decoder with a scalar head, and a policy with the reward of DPO. `headed_network`: published
  families with a head of their own. `policy_pair`: a policy and its reference as two whole models.
- `conversation`, `rendering`, `templates`: from a conversation to token ids. `settings`: the settings that decoders
  share. `answer_tokens`: where an answer begins among the tokens, and the tokens as text.
- `packing`, `pack_attention`, `packed_forward`: prompts with each shared token computed once. `layer_states`: outputs
  of frozen layers, and how a pack begins behind them.
- `loading`, `pretrained`, `adapters`, `manifest`: weights, tokenizers and protocols from folders and the hub.
- `features`, `reading`: pooled hidden states of a frozen decoder. `self_tests`: tests of a model by itself.
- `allocator`: CPU memory over varying sequence lengths.

This module imports nothing: much of the package needs torch.
"""
