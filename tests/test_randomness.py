import copy

import numpy as np
import pytest
from scipy import stats

from armful.randomness import STEP, Streams, arm_normals, arm_uniforms, draw_key, tie_keys

ALARM = 1e-6


def test_the_random_numbers_of_an_arm_depend_on_key_and_index_alone():
    key = draw_key(np.random.default_rng(3))
    indices = np.array([7, 0, 12_345_678_901, 7])
    for draw in (tie_keys, arm_normals):
        every = draw(key, np.arange(20))
        assert np.array_equal(draw(key, indices[[0, 1, 3]]), every[[7, 0, 7]])
        assert draw(key, indices)[2] == draw(key, indices[2:3])[0]


def test_keys_of_many_repetitions_are_those_of_each():
    generators = [np.random.default_rng(i) for i in range(3)]
    alone = [draw_key(np.random.default_rng(i)) for i in range(3)]
    keys = draw_key(Streams(generators))
    assert np.array_equal(keys, np.array(alone))
    assert np.array_equal(tie_keys(keys, np.arange(5)), np.stack([tie_keys(key, np.arange(5)) for key in alone]))


def test_nothing_is_drawn_where_it_is_not_asked_for():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert draw_key(rng, where=False) == 0
    assert rng.bit_generator.state == before
    generators = [np.random.default_rng(i) for i in range(2)]
    draw_key(Streams(generators), where=np.array([True, False]))
    assert generators[0].bit_generator.state != np.random.default_rng(0).bit_generator.state
    assert generators[1].bit_generator.state == np.random.default_rng(1).bit_generator.state


def test_tie_keys_are_those_of_splitmix64():
    """The first numbers of the published generator from seed 1234567."""
    wanted = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert tie_keys(np.array(1234567, dtype=np.uint64), np.arange(5)).tolist() == wanted


def test_the_smallest_and_the_largest_tie_key_give_numbers_between_0_and_1_and_finite_normals():
    first = np.zeros(1, dtype=np.int64)
    for key, expected in ((2**64 - int(STEP), 0), (0x31628AF67B2131AB, 2**64 - 1)):
        assert tie_keys(key, first) >> np.uint64(11) == expected >> 11
        assert 0 < arm_uniforms(key, first) < 1
        assert np.isfinite(arm_normals(key, first))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_normals_are_normal_across_arms_across_rounds_and_uncorrelated(seed):
    """False-alarm rate: 5 tests of 1e-6 for each of three seeds."""
    rng = np.random.default_rng(seed)
    arms = arm_normals(draw_key(rng), np.arange(200_000))
    rounds = np.array([arm_normals(draw_key(rng), np.array([17]))[0] for _ in range(20_000)])
    assert stats.kstest(arms, "norm").pvalue > ALARM
    assert stats.kstest(rounds, "norm").pvalue > ALARM
    assert stats.pearsonr(arms[1:], arms[:-1]).pvalue > ALARM
    assert stats.pearsonr(arms, arm_normals(draw_key(rng), np.arange(200_000))).pvalue > ALARM
    assert stats.pearsonr(rounds[1:], rounds[:-1]).pvalue > ALARM


def test_many_generators_draw_as_each_does():
    seeds = range(3)
    streams, each = Streams([np.random.default_rng(i) for i in seeds]), [np.random.default_rng(i) for i in seeds]
    for name, how in (("random", ()), ("normal", (2.0, 3.0, 5)), ("integers", (9,)), ("permutation", (4,))):
        drawn = getattr(streams, name)(*how)
        assert np.array_equal(drawn, [getattr(generator, name)(*how) for generator in each])
    twin = copy.deepcopy(streams)
    assert np.array_equal(twin.random(), streams.random())
    for name in ("dice", "bit_generator", "_private", "shuffle", "spawn"):
        with pytest.raises(AttributeError, match=f"a batch of repetitions has no rng.{name}"):
            getattr(streams, name)
    with pytest.raises(ValueError, match="cannot draw into one array"):
        streams.standard_normal(out=np.zeros(3))
