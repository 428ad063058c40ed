"""What is to be run: every policy in every world at every size."""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import Any

import armful
from armful import checks
from armful.experiments.recipe import Recipe, source_digest


@dataclass(frozen=True)
class Cell:
    """One policy in one world at one size, for `runs` repetitions: the unit of work, of saving and of resuming.

    environment, policy: the names they go by in tables and figures. world, learner: how to make them.
    k: the size, 0 for a world that has no such option. rounds: T.
    """

    environment: str
    policy: str
    environment_recipe: Recipe
    policy_recipe: Recipe
    k: int
    rounds: int
    runs: int
    seed: int

    def __str__(self) -> str:
        return f"{self.policy} in {self.environment} with {size_name(self.k, self.rounds)}"

    @property
    def recipes(self) -> tuple[Recipe, Recipe]:
        """How to make the environment and the policy."""
        return self.environment_recipe, self.policy_recipe

    def key(self) -> str:
        """A name for the result: different whenever the result could be, and the same under other names in the plan."""
        parts = {
            "environment": self.environment_recipe.fingerprint(),
            "policy": self.policy_recipe.fingerprint(),
            "numbers": [self.k, self.rounds, self.runs, self.seed],
            "armful": [armful.__version__, source_digest()],
        }
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True, default=_in_a_key).encode()).hexdigest()[:16]
        size = f"k{self.k}" if self.k else f"T{self.rounds}"
        return f"{self.environment_recipe.class_name}-{self.policy_recipe.class_name}-{size}-{digest}"


@dataclass(frozen=True)
class Plan:
    """Policies x worlds x sizes, each in `runs` repetitions under the same seed.

    sizes: pairs of k and the number of rounds T; a world without an option k is run once for each T.
    """

    policies: Mapping[str, Recipe]
    environments: Mapping[str, Recipe]
    sizes: Sequence[tuple[int, int]]
    runs: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        for what in ("policies", "environments", "sizes"):
            if not getattr(self, what):
                raise ValueError(f"a plan needs {what}, got none")
        checks.count("runs", self.runs)
        checks.count("seed", self.seed, minimum=0)
        for k, rounds in self.sizes:
            checks.count("k", k)
            checks.count("rounds", rounds)
        if len(set(self.sizes)) < len(self.sizes):
            raise ValueError("sizes must be different from one another")
        for name in (*self.policies, *self.environments):
            if not name or not name.isprintable():
                raise ValueError(f"names must be printable and not empty, got {name!r}")
        if len({file_name(name) for name in self.environments}) < len(self.environments):
            raise ValueError(f"names of environments must differ in letters and digits, got {list(self.environments)}")
        _refuse_option("seed", self.policies, "the seed of the plan decides")
        _refuse_option("k", self.environments, "the sizes of the plan decide")

    def sizes_in(self, environment: str) -> list[tuple[int, int]]:
        """The k and T at which a world is run, rising; k is 0 for a world without the option."""
        if self.environments[environment].takes("k"):
            return sorted(self.sizes)
        return [(0, rounds) for rounds in sorted({rounds for _, rounds in self.sizes})]

    def cells(self) -> list[Cell]:
        """All of it, the largest sizes first, so that no worker is left alone with one at the end."""
        cells = [
            Cell(environment, policy, world, learner, k, rounds, self.runs, self.seed)
            for environment, world in self.environments.items()
            for k, rounds in self.sizes_in(environment)
            for policy, learner in self.policies.items()
        ]
        return sorted(cells, key=lambda cell: -max(cell.k, 1) * cell.rounds)


def read_plan(path: Path) -> Plan:
    """A plan from a TOML file; `EXAMPLE` shows the form."""
    try:
        text = tomllib.loads(_decoded(path.read_bytes()))
    except FileNotFoundError:
        raise ValueError(
            f"{path} is not there; `armful compare --example > plan.toml` writes one to start from"
        ) from None
    except ValueError as error:  # or a number of too many digits
        raise ValueError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} is not a plan: it is nested too deeply") from None
    known = {"runs", "seed", "sizes", "policies", "environments"}
    for name in text:
        if name not in known:
            raise ValueError(f"{path}: unknown entry {name!r}; a plan has {', '.join(sorted(known))}")
    try:
        return Plan(
            policies=_recipes(text.get("policies", {}), "policies", path),
            environments=_recipes(text.get("environments", {}), "environments", path),
            sizes=_sizes(text.get("sizes", [])),
            runs=text.get("runs", 100),
            seed=text.get("seed", 0),
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _decoded(data: bytes) -> str:
    """Text in UTF-8, with or without a byte order mark, or in the UTF-16 that Windows' PowerShell writes."""
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def _recipes(table: Any, section: str, path: Path) -> dict[str, Recipe]:
    if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
        raise ValueError(f"[{section}] must hold tables like [{section}.my-name]")
    recipes = {}
    for name, entry in table.items():
        kind = entry.get("class", name)
        if not isinstance(kind, str):
            raise ValueError(f"class of {name!r} must be a name in quotes, got {kind!r}")
        place, separator, class_name = kind.rpartition(":")
        if place.endswith(".py"):
            kind = f"{(path.parent / place).resolve()}{separator}{class_name}"
        recipes[name] = Recipe(kind, {option: value for option, value in entry.items() if option != "class"})
    return recipes


def _refuse_option(option: str, recipes: Mapping[str, Recipe], reason: str) -> None:
    for name, recipe in recipes.items():
        if option in recipe.options:
            raise ValueError(f"{name!r} takes no {option}: {reason}")


def _in_a_key(value: object) -> str:
    """An option that TOML has and JSON has not."""
    if isinstance(value, (date, time)):
        return repr(value)
    raise ValueError(f"options must be such as TOML can hold, got {type(value).__name__}")


def size_name(k: int, rounds: int) -> str:
    """A size as it is called in tables and messages."""
    return f"k = {k}, T = {rounds}" if k else f"T = {rounds}"


def file_name(name: str) -> str:
    """A name as part of a file's name."""
    return re.sub(r"[^\w-]", "_", name)[:80]


def _sizes(entries: Any) -> list[tuple[int, int]]:
    if not isinstance(entries, list):
        raise ValueError(f"sizes must be a list like [{{ k = 5, rounds = 100 }}], got {entries!r}")
    return [_size(entry) for entry in entries]


def _size(entry: Any) -> tuple[int, int]:
    if not isinstance(entry, dict) or set(entry) != {"k", "rounds"}:
        raise ValueError(f"each of sizes must be like {{ k = 5, rounds = 100 }}, got {entry!r}")
    return entry["k"], entry["rounds"]


EXAMPLE = """\
# A plan for `armful compare plan.toml`: every policy in every environment at every size.

runs = 50        # repetitions of each; the error bars shrink like 1/sqrt(runs)
seed = 0         # the same seed gives the same numbers, whatever the number of workers

# k is how many arms are chosen in a round, rounds is how often; a world without an option k takes the rounds alone.
sizes = [
    { k = 5, rounds = 50 },
    { k = 10, rounds = 100 },
    { k = 20, rounds = 200 },
]

# A policy is a class of armful with its options. The words "d" and "sqrt(d)" stand for the number of features and its
# square root. `class` may be left out where the name is the class; give it to have one class twice, or your own:
# class = "my_policies.py:MyPolicy" (a file beside this plan) or class = "package.module:MyPolicy".
[policies.EpsilonGreedy]
epsilon = 0.05

[policies.C2UCB]

[policies.CappedC2UCB]
cap = 1.0        # no arm pays more on average

[policies.careful]
class = "CappedC2UCB"
cap = 1.0
radius = "logdet"  # a radius with a guarantee, which needs the noise and the length of theta*, and is careful
noise = 0.5
norm = 1.0

[policies.paper-rule]
class = "CappedC2UCB"
rule = "paper"
cap = 1.0
ridge = "d"
radius = "sqrt(d)"

[policies.CombLinTS]
noise = 0.5

# An environment is a class of armful, or your own, with its options; k comes from the sizes.
[environments.slates]
class = "Slates"
n_arms = 100
n_features = 10

[environments.campaign]
class = "Campaign"
n_arms = 1000
n_features = 10
"""
