import time

import torch

from steelyard.training.throughput import peak_of


def test_a_processor_is_measured_and_says_so():
    peak = peak_of(torch.device("cpu"), "float32")
    assert peak.is_measured
    # No product can have been faster than the peak that is the best of several, but for the clock's jitter.
    one = torch.ones(512, 512)
    started = time.perf_counter()
    one @ one
    assert 2 * 512**3 / (time.perf_counter() - started) < 20 * peak.flops
    assert 1e8 < peak.flops < 1e14


def test_measuring_draws_nothing_from_the_training():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    peak_of(torch.device("cpu"), "bfloat16")
    assert torch.equal(before, torch.get_rng_state())
