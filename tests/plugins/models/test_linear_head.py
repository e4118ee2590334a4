import torch

from steelyard.plugins.models._linear_head import LinearHead


def test_a_reward_is_the_product_with_the_first_place():
    head = LinearHead(2)
    head.weight.data = torch.tensor([[2.0, -1.0]])
    read = torch.tensor([[[1.0, 1.0], [9.0, 9.0]], [[0.5, 3.0], [9.0, 9.0]]])
    assert head(read).tolist() == [1.0, -2.0]
