"""Random numbers of arms and repetitions that do not depend on how the work is divided."""

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
    """Return a generator as it is, or a new one from a seed; `name` is the argument that an error names."""
    if isinstance(seed, Generator):
        return seed
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a whole number of at least 0, a Generator or None, got {seed!r}") from None


class Streams:
    """One generator per repetition, with the methods of a generator; repetitions are the leading axis of what is drawn.

    What a repetition draws does not depend on the others, so results are the same however they are batched.

    Parameters
    ----------
    generators : sequence of Generator
        One for each repetition.
    """

    def __init__(self, generators: Sequence[Generator]) -> None:
        self.generators = list(generators)

    def __getattr__(self, name: str) -> Callable[..., NDArray[Any]]:
        """Return a method of the generators: `random()` is `(repetitions,)`, `normal(size=9)` is `(repetitions, 9)`."""
        if name.startswith("_") or name in ("shuffle", "spawn") or not callable(getattr(Generator, name, None)):
            raise AttributeError(f"a batch of repetitions has no rng.{name}; set batched = False to have it")

        def draw(*how: Any, **more: Any) -> NDArray[Any]:
            if "out" in more:
                raise ValueError(f"a batch of repetitions cannot draw into one array: leave out= out of rng.{name}")
            return np.stack([getattr(each, name)(*how, **more) for each in self.generators])

        return draw


def draw_key(rng: Generator | Streams, where: object = True) -> Keys:
    """Return a key for `tie_keys`, or one for each of `Streams`, `(repetitions,)`; 0 where not `where`."""
    if not isinstance(rng, Streams):
        return int(rng.bit_generator.random_raw()) if where else 0
    return draw_keys(rng, where)


def draw_keys(rng: Streams, where: object = True) -> TieKeys:
    """Return a key for each repetition."""
    drawn = np.broadcast_to(np.asarray(where), len(rng.generators))
    pairs = zip(rng.generators, drawn, strict=True)
    return np.array([g.bit_generator.random_raw() if draws else 0 for g, draws in pairs], dtype=np.uint64)


def tie_keys(key: Keys, arm_indices: IntArray) -> TieKeys:
    """Return a random 64-bit number for each arm, `(..., n)`: a function of the key `(...)` and the arm's index alone.

    So it is the same whichever other arms there are, in whatever order and on whatever machine.
    The numbers are those of the generator SplitMix64 (Steele et al. 2014), which reaches any of them in one step.
    """
    with np.errstate(over="ignore"):
        z = np.asarray(key, dtype=np.uint64)[..., None] + (arm_indices.astype(np.uint64) + np.uint64(1)) * STEP
        z = (z ^ (z >> np.uint64(30))) * MIX[0]
        z = (z ^ (z >> np.uint64(27))) * MIX[1]
        return np.asarray(z ^ (z >> np.uint64(31)))


def arm_uniforms(key: Keys, arm_indices: IntArray) -> FloatArray:
    """Return a number strictly between 0 and 1 for each arm, `(..., n)`, drawn as in `tie_keys`."""
    uniforms: FloatArray = ((tie_keys(key, arm_indices) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return uniforms


def arm_normals(key: Keys, arm_indices: IntArray) -> FloatArray:
    """Return a standard normal for each arm, `(..., n)`, drawn as in `tie_keys`."""
    normals: FloatArray = ndtri(arm_uniforms(key, arm_indices))
    return normals
