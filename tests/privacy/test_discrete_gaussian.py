"""The discrete Gaussian sampler: exact probabilities by enumeration, then the statistics of what it draws."""

import itertools
import math
import sys
from fractions import Fraction
from types import FunctionType

import mpmath
import numpy as np
import pytest
from numba import njit
from scipy import stats

from confide.privacy import discrete_gaussian as dg

TOTAL_VARIATION = Fraction(1, 2**187)  # claimed per number
GIVEN_UP = Fraction(1, 2**381)  # probability of the passes that v = 23 ends


def interpreted(name, **replaced):
    """A compiled function as Python runs it, functions of its module replaced."""
    plain = getattr(dg, name).py_func
    return FunctionType(plain.__code__, {**vars(dg), **replaced})


def fraction(number):
    """An mpmath number, exactly."""
    sign, mantissa, exponent, _ = number._mpf_
    return (-1) ** sign * mantissa * Fraction(2) ** exponent


def entry(d, k):
    return int.from_bytes(dg.table()[d, k].astype(">u4").tobytes())


def leaves(run):
    """Every way that `run(below)` can go: (probability, result), exact, for a comparison `below` with table entries."""
    script = []
    while True:
        asked = []

        def below(words, at, table, d, k):
            success = script[len(asked)] if len(asked) < len(script) else True  # noqa: B023
            asked.append((success, Fraction(entry(d, k), 2**192)))  # noqa: B023
            return success, at

        result = run(below)
        yield math.prod((p if success else 1 - p for success, p in asked), start=Fraction(1)), result
        script = [success for success, _ in asked]
        while script and not script[-1]:
            script.pop()
        if not script:
            return
        script[-1] = False


def one_pass(m, word):
    """Probability of each number a pass returns, None where it rejects, its first word given."""
    words = np.array([word], np.uint32)

    def run(below):
        accepted, y, at = interpreted("_attempt", _below=below, _survives=interpreted("_survives", _below=below))(
            words, 0, np.uint64(m), dg.table()
        )
        assert at == 1
        return int(y) if accepted else None

    law = {}
    for p, y in leaves(run):
        law[y] = law.get(y, 0) + p
    assert sum(law.values()) == 1
    return law


# --- exact probabilities ------------------------------------------------------------------------------------------


def test_the_table_is_exactly_the_exponential_cut_to_192_bits():
    with mpmath.workprec(700):
        for d, k in itertools.product(range(8), range(1, 256)):
            assert entry(d, k) == int(mpmath.floor(mpmath.exp(-mpmath.mpf(k) / 2 ** (8 * d)) * 2**192)), (d, k)
        assert int(mpmath.floor(mpmath.exp(-1) * 2**320)) == dg.INVERSE_E
    with pytest.raises(ValueError):
        dg.table()[0, 1, 0] = 0  # everybody's


@pytest.mark.parametrize("m", range(5))
def test_every_probability_is_that_of_the_discrete_gaussian(m):
    """The whole decision tree of a pass, in fractions; a number has the law of an accepted pass."""
    law = {}
    for word in range(2 ** (m + 1)):  # the bits of it that count
        for y, p in one_pass(m, word).items():
            law[y] = law.get(y, 0) + p / 2 ** (m + 1)
    rejected = law.pop(None)
    assert set(law) == set(range(1 - 23 * 2**m, 23 * 2**m))  # every number of the support, and 0 once
    with mpmath.workprec(1200):
        weight = {y: mpmath.exp(-mpmath.mpf(y * y) / 2 ** (2 * m + 1)) for y in range(-60 * 2**m, 60 * 2**m + 1)}
        total = mpmath.fsum(weight.values())  # what is left out is below exp(-1800)
        exact = {y: fraction(w / total) for y, w in weight.items()}
    distance = sum(abs(law.get(y, 0) / (1 - rejected) - p) for y, p in exact.items()) / 2
    assert 0 < distance < TOTAL_VARIATION
    assert all(law[y] == law[-y] for y in law)
    assert 1 - rejected > 0.48  # as the bound on the comparisons needs


def test_probabilities_at_the_full_scale():
    """Single numbers at m = 26 and 27: a pass returns y with probability ½(1 − 1/e)exp(−½)/t · exp(−y²/2t²)."""
    rng = np.random.default_rng(0)
    for m in (26, 27):
        t = 2**m
        for u in [0, 1, 2, t // 2, t - 2, t - 1, *map(int, rng.integers(t, size=4))]:
            law = one_pass(m, 2 * u)  # a positive sign; v is left open
            assert set(law) == {None, *range(u, 23 * t, t)}
            with mpmath.workprec(1200):
                factor = (1 - mpmath.exp(-1)) * mpmath.exp(-0.5)
                numbers = range(u, 23 * t, t)
                exact = {y: fraction(factor * mpmath.exp(-mpmath.mpf(y * y) / (2 * t * t))) for y in numbers}
            comparisons = 4 + 23 + 8  # at most, on the way to a number
            assert all(abs(law[y] - p) < comparisons * Fraction(1, 2**192) for y, p in exact.items())
            mirrored = one_pass(m, 2 * u + 1)
            assert all(mirrored.get(-y) == law[y] for y in exact if y)
            assert 0 not in mirrored


def test_what_the_limit_of_v_gives_up_is_as_small_as_stated():
    with mpmath.workprec(200):
        assert fraction(mpmath.exp(-23 - mpmath.mpf(22) ** 2 / 2)) < GIVEN_UP
    # and the exponent just below the limit is within 64 bits
    for m in (0, 26, 27):
        distance = 23 * 2**m - 1 - 2**m
        assert distance**2 << (55 - 2 * m) < 2**64


def test_a_comparison_reads_on_at_equality_only():
    table = dg.table()
    top = 2**32 - 1
    for d, k in ((0, 1), (1, 128), (4, 3), (7, 1), (7, 255), (0, 255)):
        words = table[d, k]
        for same in range(7):
            for other in {0, top, *((int(words[same]) + s) % 2**32 for s in (-1, 1))} if same < 6 else (0,):
                fed = np.concatenate([words[:same], [other], np.full(6, 7)]).astype(np.uint32)
                if same < 6 and other == words[same]:
                    continue
                number = int.from_bytes(fed[:6].astype(">u4").tobytes())
                for below in (dg._below, dg._below.py_func):
                    success, at = below(fed, 0, table, d, k)
                    assert success == (number < entry(d, k)) and at == min(same + 1, 6)
                    for short in range(at):  # one word less than it needs
                        assert below(fed[:short], 0, table, d, k) == (False, short + 1)


def words_of(seed, count):
    return np.random.default_rng(seed).integers(2**32, size=count, dtype=np.uint32)


def test_compiled_and_interpreted_agree():
    survives = interpreted("_survives", _below=dg._below.py_func)
    attempt = interpreted("_attempt", _below=dg._below.py_func, _survives=survives)
    table, rng = dg.table(), np.random.default_rng(3)
    likely = np.concatenate([table[:, :, level].ravel() for level in (0, 1)])  # words that meet equality
    for m in (0, 1, 5, 26, 27):
        words = words_of(m, 20_000)
        ties = rng.random(words.size) < 0.5
        words[ties] = rng.choice(likely, ties.sum())
        words[rng.random(words.size) < 0.2] = table[0, 1, 0]
        out = np.empty(3000, np.int64)
        done, end = dg.fill(words, 0, out, m, table)
        assert done > 100
        at, expected = 0, []
        while len(expected) < done:
            accepted, y, at = attempt(words, at, np.uint64(m), table)
            if accepted:
                expected.append(int(y))
        assert expected == out[:done].tolist() and at == end


def test_the_decisions_contain_no_floating_point():
    def double(words, at, out, m, table):
        return int(m * 0.5), at

    (signature,) = dg.fill.signatures  # one compilation
    assert "double" in next(iter(njit(signature)(double).inspect_llvm().values()))
    code = next(iter(njit(signature)(dg.fill.py_func).inspect_llvm().values()))
    assert "double" not in code and "float" not in code


def test_no_value_is_lost_at_the_largest_noise():
    """u = t − 1 and the largest v, every comparison a success but the one that ends step 3."""
    yes, no = 0, 2**32 - 1  # words below and above any entry, but for the entries of 0 in 192 bits
    for m in (0, 26, 27):
        t = 2**m
        digits = [(t - 1 << 56 - m) >> 8 * d & 255 for d in range(8)]
        ends = [(v + 1) * t - 1 for v in range(23)]  # the largest number of each v
        reachable = [v for v, y in enumerate(ends) if entry(0, max(1, (y - t) ** 2 // (2 * t * t))) > 2**160]
        v = reachable[-1]
        assert 5 < v < 22
        for sign in (0, 1):
            first = [2 * (t - 1) + sign] + [yes] * sum(k > 0 for k in digits)  # steps 1 and 2
            words = np.array([*first, *[yes] * v, no, *[yes] * 8], np.uint32)
            out = np.zeros(1, np.int64)
            assert dg.fill(words, 0, out, m, dg.table())[0] == 1
            assert out[0] == (1 - 2 * sign) * ends[v]


# --- running out of words -----------------------------------------------------------------------------------------


def test_running_out_of_words_loses_nothing():
    for m in (0, 26):
        words, table, whole = words_of(1, 400), dg.table(), np.empty(400, np.int64)
        many, _ = dg.fill(words, 0, whole, m, table)
        for size in range(words.size):
            out = np.full(400, 77)
            done, at = dg.fill(words[:size], 0, out, m, table)
            assert np.array_equal(out[:done], whole[:done]) and np.all(out[done:] == 77)
            rest = np.empty(400, np.int64)  # go on from there with all of the words
            more, _ = dg.fill(words, at, rest, m, table)
            assert np.array_equal(np.concatenate([out[:done], rest[:more]]), whole[:many])


@pytest.mark.parametrize("most", [1, 2, 7, 100])
def test_numbers_do_not_depend_on_the_blocks_of_words(seeded, most):
    for m in (0, 26):
        seeded(5)
        expected = dg.sample(300, m)
        seeded(5, most)
        assert np.array_equal(dg.sample(300, m), expected)


# --- statistics ---------------------------------------------------------------------------------------------------


def law(m, ys):
    with mpmath.workdps(30):
        weight = [mpmath.exp(-mpmath.mpf(y * y) / 2 ** (2 * m + 1)) for y in range(-40 * 2**m, 40 * 2**m + 1)]
        total = mpmath.fsum(weight)
        return np.array([float(weight[y + 40 * 2**m] / total) for y in ys])


@pytest.mark.parametrize("m", [0, 1, 2, 4])
def test_frequencies_of_small_scales(seeded, m):
    seeded(m)
    n, edge = 1_000_000, 4 * 2**m
    seen = np.bincount(np.clip(dg.sample(n, m), -edge, edge) + edge, minlength=2 * edge + 1)
    p = law(m, range(-edge, edge + 1))
    p[0] = p[-1] = (1 - p[1:-1].sum()) / 2
    assert stats.chisquare(seen, n * p).pvalue > 1e-3


@pytest.mark.parametrize("m", [9, 18, 26, 27])
def test_large_scales_are_normal_in_every_bin_and_moment(seeded, m):
    """At 2^9 steps and more, a discrete and a continuous Gaussian differ by less than these many draws can see."""
    seeded(m)
    n = 1_000_000
    z = dg.sample(n, m) / 2.0**m
    edges = stats.norm.ppf(np.linspace(0, 1, 201))
    half = 0.5 / 2**m  # a number stands for the interval around it
    p = np.diff(stats.norm.cdf(np.ceil(edges * 2.0**m) / 2.0**m - half))
    seen = np.histogram(z, np.where(np.isfinite(edges), np.ceil(edges * 2.0**m) / 2.0**m - half, edges))[0]
    assert stats.chisquare(seen, n * p / p.sum()).pvalue > 1e-3
    for order, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(z**order) - moment) < 4 * math.sqrt(variance / n)


def test_the_lowest_bits_are_uniform(seeded):
    seeded(0)
    low = dg.sample(1_000_000) & 0xFF
    assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > 1e-3


def test_signs_are_fair_and_independent(seeded):
    seeded(8)
    y = dg.sample(1_000_000)
    sign, size = y > 0, np.abs(y)
    assert stats.binomtest(int(sign.sum()), y.size).pvalue > 1e-3
    deciles = np.searchsorted(np.quantile(size, np.linspace(0, 1, 11)[1:-1]), size)
    for other in (deciles, size & 7, np.roll(sign, 1), np.roll(deciles, 1)):  # own size, its low bits, the one before
        assert stats.chi2_contingency(stats.contingency.crosstab(sign, other).count).pvalue > 1e-3


@pytest.mark.parametrize("m", [0, 2, 26])
def test_opendp_draws_from_the_same_law(m):
    """Neither is seeded here: a correct pair fails once in ten million runs."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    n = 20_000
    domain = dp.vector_domain(dp.atom_domain(T=int), size=n)
    theirs = np.array(dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=2.0**m)([0] * n))
    ours = dg.sample(n, m)
    if m == 26:
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-7
    else:
        edge = 3 * 2**m
        counts = [np.bincount(np.clip(y, -edge, edge) + edge, minlength=2 * edge + 1) for y in (ours, theirs)]
        assert stats.chi2_contingency(counts).pvalue > 1e-7


@pytest.fixture(params=[True, False], ids=["ChaCha20", "the system's stream"])
def library(request, monkeypatch):
    """With and without `cryptography`."""
    if not request.param:
        monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
    dg._chacha20.cache_clear()
    yield request.param
    dg._chacha20.cache_clear()


def test_draws_come_from_the_operating_system_and_never_repeat(library):
    assert (dg._chacha20() is not None) == library
    assert not np.array_equal(dg.sample(20), dg.sample(20))
    assert dg.sample(5).dtype == np.int64 and dg.sample(0).shape == (0,)
    words = dg._entropy(100_000)
    assert words.shape == (100_000,) and words.dtype == np.uint32
    bits = words[:, None] >> np.arange(32, dtype=np.uint32) & 1
    assert np.all(np.abs(bits.mean(0) - 0.5) < 8 / math.sqrt(4 * words.size))
    assert np.unique(words).size > 99_900
    assert stats.kstest(dg.sample(20_000) / 2**26, "norm").pvalue > 1e-7


def test_the_stream_is_chacha20(monkeypatch):
    """RFC 8439, appendix A.1, test vector 1: key, nonce and counter 0."""
    asked = []
    monkeypatch.setattr(dg.os, "urandom", lambda size: asked.append(size) or bytes(size))
    known = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    assert dg._entropy(1000).tobytes().hex().startswith(known)
    assert asked == [32]  # a key of 256 bits, new for each block
