"""Drawing for many arms and for many repetitions, so that what is drawn does not depend on how the work is divided."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtri

from armful.checks import FloatArray, IntArray

TieKeys = NDArray[np.uint64]
Keys = TieKeys | int
Seed = int | Generator | None

STEP = np.uint64(0x9E3779B97F4A7C15)
MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def as_generator(seed: Seed, name: str = "rng") -> Generator:
    """A generator as it is, or one made from a seed, which an error calls by the `name` that the user knows."""
    if isinstance(seed, Generator):
        return seed
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a whole number of at least 0, a Generator or None, got {seed!r}") from None


class Streams:
    """One generator per repetition; draws as a generator does, with the repetitions as the leading axis.

    What a repetition draws does not depend on the others, so results are the same however they are batched.
    """

    def __init__(self, generators: Sequence[Generator]) -> None:
        self.generators = list(generators)

    def __getattr__(self, name: str) -> Callable[..., NDArray[Any]]:
        """Any way to draw: `random()` is `(repetitions,)`, `normal(size=9)` is `(repetitions, 9)`."""
        if name.startswith("_") or name in ("shuffle", "spawn") or not callable(getattr(Generator, name, None)):
            raise AttributeError(f"many repetitions together have no rng.{name}; set batched = False to have it")

        def draw(*how: Any, **more: Any) -> NDArray[Any]:
            if "out" in more:
                raise ValueError(f"many repetitions together cannot draw into one array: leave out= out of rng.{name}")
            return np.stack([getattr(each, name)(*how, **more) for each in self.generators])

        return draw


def draw_key(rng: Generator | Streams, where: object = True) -> Keys:
    """A key for `tie_keys`, or one for each of `Streams`, `(repetitions,)`; nothing is drawn where not `where`."""
    if not isinstance(rng, Streams):
        return int(rng.bit_generator.random_raw()) if where else 0
    return draw_keys(rng, where)


def draw_keys(rng: Streams, where: object = True) -> TieKeys:
    """A key for each repetition."""
    wanted = np.broadcast_to(np.asarray(where), len(rng.generators))
    pairs = zip(rng.generators, wanted, strict=True)
    return np.array([g.bit_generator.random_raw() if draws else 0 for g, draws in pairs], dtype=np.uint64)


def tie_keys(key: Keys, places: IntArray) -> TieKeys:
    """A random 64-bit number for each arm, `(..., n)`: a function of the key `(...)` and the arm's place alone.

    So an arm draws the same whichever other arms are looked at, in whatever order and on whatever machine.
    The numbers are those of the generator SplitMix64 (Steele et al. 2014), which reaches any of them in one step.
    """
    with np.errstate(over="ignore"):
        z = np.asarray(key, dtype=np.uint64)[..., None] + (places.astype(np.uint64) + np.uint64(1)) * STEP
        z = (z ^ (z >> np.uint64(30))) * MIX[0]
        z = (z ^ (z >> np.uint64(27))) * MIX[1]
        return np.asarray(z ^ (z >> np.uint64(31)))


def arm_uniforms(key: Keys, places: IntArray) -> FloatArray:
    """A number strictly between 0 and 1 for each arm, `(..., n)`, drawn as in `tie_keys`."""
    uniforms: FloatArray = ((tie_keys(key, places) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return uniforms


def arm_normals(key: Keys, places: IntArray) -> FloatArray:
    """A standard normal for each arm, `(..., n)`, drawn as in `tie_keys`."""
    normals: FloatArray = ndtri(arm_uniforms(key, places))
    return normals
