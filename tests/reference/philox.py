"""Philox 4x32-10 in plain Python integers, after Salmon et al. 2011, section 3.3: ten rounds, the key bumped
between them."""


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    x0, x1, x2, x3 = counter
    for number in range(10):
        # The key schedule is a Weyl sequence: the golden ratio, and √3 − 1.
        k0 = (key[0] + number * 0x9E3779B9) % 2**32
        k1 = (key[1] + number * 0xBB67AE85) % 2**32
        high0, low0 = divmod(0xD2511F53 * x0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * x2, 2**32)
        x0, x1, x2, x3 = high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0
    return x0, x1, x2, x3


def words(seed: int, stream: int, step: int, count: int) -> list[int]:
    """The first numbers of (seed, stream, step): key (seed, stream), counter (0, step, 0, 0), (1, step, 0, 0), …"""
    numbers: list[int] = []
    while len(numbers) < count:
        numbers += philox4x32((len(numbers) // 4, step, 0, 0), (seed, stream))
    return numbers[:count]


def shuffle(numbers: list[int]) -> list[int]:
    """The positions in the order of their random numbers; equal numbers keep the order of their positions."""
    return sorted(range(len(numbers)), key=lambda position: (numbers[position], position))
