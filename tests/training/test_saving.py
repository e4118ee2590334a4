import tiny
from steelyard.training.export import pad_id, to_storage_type


def test_a_padding_token_that_ends_the_text_is_no_padding_token():
    assert pad_id(tiny.tokenizer()) == 0
    assert pad_id(tiny.tokenizer(pad_token="</s>")) is None
    assert pad_id(tiny.tokenizer(pad_token=None)) is None


def test_the_head_is_stored_in_float32(tmp_path):
    import torch

    from steelyard.networks.loading import load_network

    network, _ = load_network(tiny.save_classifier(tmp_path / "m"), dtype="float32")
    to_storage_type(network, "bfloat16")
    assert network.head.weight.dtype == torch.float32
    assert network.backbone.norm.weight.dtype == torch.bfloat16
