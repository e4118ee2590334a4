"""Tasks whose answer is known: where they stand among a person's tasks, and what the answers to them say of the person.

The rate is guaranteed in every stretch of tasks, and the places are random within it, so that nobody can tell or count
which task is one (CHEEMS, appendix D.1: ground truth is embedded into the tasks all the time).
"""

from math import floor

from steelyard.core.numerics import generator


def is_gold_place(number: int, *, share: float, person: int, seed: int) -> bool:
    """Tell whether a person's task of this number, from 0, is one whose answer is known.

    Tasks are divided into blocks of 1/share; one random place of each block is gold, drawn for each person and block.
    """
    if share <= 0:
        return False
    if share >= 1:
        return True
    # Blocks begin at floor(k / share): they differ by at most one in length where 1/share is no whole number.
    block = floor((number + 1e-9) * share)
    while floor((block + 1) / share + 1e-9) <= number:
        block += 1
    start, end = floor(block / share + 1e-9), floor((block + 1) / share + 1e-9)
    return start + int(generator(seed, "gold", person, block).integers(end - start)) == number
