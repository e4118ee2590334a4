"""Accuracy and exact match as the paper words them, one prompt after another in plain Python (CHEEMS, eq. 1 and 2).

Written from the paper's text, without a look at any code: the baseline of speed/metrics.py.
"""


def accuracy_and_exact_match(ranks, scores):
    """Over prompts, each a list of ranks (1 is best, equal ranks are not compared) and a list of scores.

    Accuracy is the share of all comparable pairs whose better response has the higher score; exact match the share of
    the prompts with a comparable pair in which every one of them is so.
    """
    num_pairs = num_correct = num_prompts = num_exact = 0
    for own_ranks, own_scores in zip(ranks, scores, strict=True):
        pairs = correct = 0
        for first in range(len(own_ranks)):
            for second in range(first + 1, len(own_ranks)):
                if own_ranks[first] == own_ranks[second]:
                    continue
                better, worse = (first, second) if own_ranks[first] < own_ranks[second] else (second, first)
                pairs += 1
                if own_scores[better] > own_scores[worse]:
                    correct += 1
        if pairs:
            num_prompts += 1
            num_exact += correct == pairs
        num_pairs += pairs
        num_correct += correct
    return num_correct / num_pairs, num_exact / num_prompts
