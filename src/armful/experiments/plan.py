"""Plans: every policy in every environment at every size."""

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
    """One policy in one environment at one size: the unit of work, of saving and of resuming.

    Attributes
    ----------
    environment, policy : str
        Their names in tables and figures.
    environment_recipe, policy_recipe : Recipe
        How to make them.
    k : int
        Number of arms chosen in a round; 0 for an environment without the option `k`.
    rounds : int
        Number of rounds T.
    runs : int
        Number of repetitions.
    seed : int
        Seed of the repetitions.
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
        """`environment_recipe` and `policy_recipe`."""
        return self.environment_recipe, self.policy_recipe

    def key(self) -> str:
        """Return a name for the result: another one if the result could differ, the same under other names in the plan.

        Returns
        -------
        str
            With a digest of the recipes, the numbers and the source of armful.
        """
        parts = {
            "environment": self.environment_recipe.fingerprint(),
            "policy": self.policy_recipe.fingerprint(),
            "numbers": [self.k, self.rounds, self.runs, self.seed],
            "armful": [armful.__version__, source_digest()],
        }
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True, default=_json_default).encode()).hexdigest()[:16]
        size = f"k{self.k}" if self.k else f"T{self.rounds}"
        return f"{self.environment_recipe.class_name}-{self.policy_recipe.class_name}-{size}-{digest}"


@dataclass(frozen=True)
class Plan:
    """Policies x environments x sizes, each in `runs` repetitions under the same seed.

    Attributes
    ----------
    policies, environments : mapping of str to Recipe
        By their names in tables and figures.
    sizes : sequence of (int, int)
        Pairs of k, the number of arms chosen in a round, and the number of rounds T. An environment without the option
        `k` is run once for each T.
    runs : int
        Number of repetitions.
    seed : int
        The same seed gives the same results.

    Raises
    ------
    ValueError
        If anything is missing, repeated, or not a number where one is needed.

    Examples
    --------
    >>> plan = Plan({"greedy": Recipe("EpsilonGreedy")}, {"slates": Recipe("Slates")}, sizes=[(5, 50), (10, 100)])
    >>> [str(cell) for cell in plan.cells()]
    ['greedy in slates with k = 10, T = 100', 'greedy in slates with k = 5, T = 50']
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
        """Return the sizes at which an environment is run.

        Parameters
        ----------
        environment : str
            Its name in the plan.

        Returns
        -------
        list of (int, int)
            Pairs of k and T, rising; k is 0 for an environment without the option.
        """
        if self.environments[environment].takes("k"):
            return sorted(self.sizes)
        return [(0, rounds) for rounds in sorted({rounds for _, rounds in self.sizes})]

    def cells(self) -> list[Cell]:
        """Return all cells, the largest first, so that no worker is left alone with a large one at the end.

        Returns
        -------
        list of Cell
        """
        cells = [
            Cell(environment, policy, environment_recipe, policy_recipe, k, rounds, self.runs, self.seed)
            for environment, environment_recipe in self.environments.items()
            for k, rounds in self.sizes_in(environment)
            for policy, policy_recipe in self.policies.items()
        ]
        return sorted(cells, key=lambda cell: -max(cell.k, 1) * cell.rounds)


def read_plan(path: Path) -> Plan:
    """Return the plan in a TOML file; `armful compare --example` prints one.

    Parameters
    ----------
    path : Path
        The file. Paths of Python files in it are relative to its folder.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If the file does not exist, is not TOML, or is no plan.
    """
    try:
        text = tomllib.loads(_decoded(path.read_bytes()))
    except FileNotFoundError:
        raise ValueError(
            f"{path} does not exist; `armful compare --example > plan.toml` writes one to start from"
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
    """Decode UTF-8, with or without a byte order mark, or the UTF-16 that Windows' PowerShell writes."""
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def _recipes(table: Any, section: str, path: Path) -> dict[str, Recipe]:
    if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
        raise ValueError(f"[{section}] must hold tables like [{section}.my-name]")
    recipes = {}
    for name, entry in table.items():
        kind = entry.get("class", name)
        if not isinstance(kind, str):
            raise ValueError(f"class of {name!r} must be a name in quotes, got {kind!r}")
        location, separator, class_name = kind.rpartition(":")
        if location.endswith(".py"):
            kind = f"{(path.parent / location).resolve()}{separator}{class_name}"
        recipes[name] = Recipe(kind, {option: value for option, value in entry.items() if option != "class"})
    return recipes


def _refuse_option(option: str, recipes: Mapping[str, Recipe], reason: str) -> None:
    for name, recipe in recipes.items():
        if option in recipe.options:
            raise ValueError(f"{name!r} takes no {option}: {reason}")


def _json_default(value: object) -> str:
    """Return text for an option that TOML can hold and JSON cannot."""
    if isinstance(value, (date, time)):
        return repr(value)
    raise ValueError(f"options must be such as TOML can hold, got {type(value).__name__}")


def size_name(k: int, rounds: int) -> str:
    """Return the name of a size in tables and messages."""
    return f"k = {k}, T = {rounds}" if k else f"T = {rounds}"


def file_name(name: str) -> str:
    """Return a name that can be part of a file's name."""
    return re.sub(r"[^\w-]", "_", name)[:80]


def _sizes(entries: Any) -> list[tuple[int, int]]:
    if not isinstance(entries, list):
        raise ValueError(f"sizes must be a list like [{{ k = 5, rounds = 100 }}], got {entries!r}")
    for entry in entries:
        if not isinstance(entry, dict) or set(entry) != {"k", "rounds"}:
            raise ValueError(f"each of sizes must be like {{ k = 5, rounds = 100 }}, got {entry!r}")
    return [(entry["k"], entry["rounds"]) for entry in entries]
