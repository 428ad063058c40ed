"""A policy or an environment by name, as a plan file can state it and a worker process can make it."""

import hashlib
import importlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from armful import environments, policies
from armful.experiments._user_errors import explain_user_errors, summary

PACKAGE = Path(policies.__file__).parent.parent

RELATIVE_TO_FEATURES = {"d": float, "sqrt(d)": math.sqrt}
"""Values of options that depend on the number of features, which only the environment knows."""


@dataclass(frozen=True)
class Recipe:
    """A class and the options to make it with.

    Attributes
    ----------
    kind : str
        A class of armful by its name, `"C2UCB"`, or your own: `"package.module:Class"` or `"folder/file.py:Class"`.
    options : mapping
        Keyword arguments; the words `"d"` and `"sqrt(d)"` stand for the number of features and its square root.

    Examples
    --------
    >>> Recipe("C2UCB", {"ridge": "d", "radius": "sqrt(d)"}).make(n_features=4)
    C2UCB(n_features=4, ridge=4.0, radius=2.0, noise='auto', norm=None, delta=0.1, length=None)
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, **given: Any) -> Any:
        """Make the object.

        Parameters
        ----------
        **given
            Options from outside the recipe, like `k` or `n_features`; those that the class does not have are left out.

        Returns
        -------
        object
            A policy or an environment.

        Raises
        ------
        ValueError
            If the class is not found, lacks an option of the recipe, or refuses it.
        """
        maker = find(self.kind)
        options = {name: _relative(value, given.get("n_features")) for name, value in self.options.items()}
        for name in options:
            if not self.takes(name):
                accepted = ", ".join(inspect.signature(maker).parameters)
                raise ValueError(f"{self.kind} has no option {name!r}; it has {accepted}")
        extra = {name: value for name, value in given.items() if self.takes(name)}
        with explain_user_errors(self.kind, maker, expected=(TypeError, ValueError)):
            return maker(**{**extra, **options})

    @property
    def class_name(self) -> str:
        """The name of the class."""
        return self.kind.rpartition(":")[2]

    @property
    def short_kind(self) -> str:
        """`kind` with the path of a file reduced to its name."""
        location, separator, name = self.kind.rpartition(":")
        return f"{Path(location).name if location.endswith('.py') else location}{separator}{name}"

    def takes(self, option: str) -> bool:
        """Return whether the class has an option of this name."""
        takes_any = False
        for kind in find(self.kind).__mro__[:-1]:  # all but object
            if "__init__" in vars(kind):
                accepted = inspect.signature(vars(kind)["__init__"]).parameters
                takes_any = any(p.kind is p.VAR_KEYWORD for p in accepted.values())
                if option in accepted or not takes_any:
                    return option in accepted
        return takes_any

    def fingerprint(self) -> dict[str, Any]:
        """Return what a result depends on: the class, its options, and a digest of the file that it names."""
        path = self.kind.rpartition(":")[0]
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest() if path.endswith(".py") else None
        return {"kind": self.kind, "options": dict(self.options), "file": digest}


@cache
def source_digest(folder: Path = PACKAGE) -> str:
    """Return a digest of the code that results depend on: all of armful but `cli`, `experiments` and `testing`.

    Two clones of the same version may differ, and then so may their results.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        location = path.relative_to(folder).as_posix()
        if not location.startswith(("cli/", "experiments/", "testing/")):
            digest.update(f"{location}\n".encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()


def find(kind: str) -> Any:
    """Return the class that a recipe names, which must be a policy or an environment, as it will be called."""
    location, separator, name = kind.rpartition(":")
    if not separator:
        known = _known_classes()
        if kind not in known:
            names = ", ".join(sorted(known))
            raise ValueError(f"{kind!r} is not a class of armful; its classes are {names}; your own: 'file.py:Class'")
        return known[kind]
    module = _load_file(Path(location)) if location.endswith(".py") else _import(location)
    found = getattr(module, name, None)
    if not isinstance(found, type):
        raise ValueError(f"{location} has no class {name!r}")
    if not is_policy(found) and not is_environment(found):
        raise ValueError(
            f"{kind} is neither a policy, with choose and learn, nor an environment, with n_features and rounds"
        )
    return found


def is_policy(kind: type) -> bool:
    """Return whether a class has `choose` and `learn`."""
    return issubclass(kind, policies.Policy) or all(callable(getattr(kind, name, None)) for name in ("choose", "learn"))


def is_environment(kind: type) -> bool:
    """Return whether a class has `rounds`."""
    return callable(getattr(kind, "rounds", None))


def _known_classes() -> dict[str, type]:
    """Return the policies and environments of armful by name."""
    classes = {name: getattr(module, name) for module in (policies, environments) for name in module.__all__}
    return {
        name: kind
        for name, kind in classes.items()
        if isinstance(kind, type) and (is_policy(kind) or is_environment(kind)) and not _is_abstract(kind)
    }


def _is_abstract(kind: type) -> bool:
    return kind is policies.Policy or getattr(kind, "_is_protocol", False)


def _import(location: str) -> ModuleType:
    try:
        return importlib.import_module(location)
    except ImportError as error:
        raise ValueError(f"cannot import {location}: {error}") from None
    except (Exception, SystemExit) as error:
        raise ValueError(f"cannot import {location}: {summary(error, location)}") from None


def module_name(path: Path) -> str:
    """Return the name in `sys.modules` under which a user's file is loaded."""
    return f"armful_plan_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"


def _load_file(path: Path) -> ModuleType:
    name = module_name(path)
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise ValueError(f"{path} does not exist; paths in a plan are relative to the plan")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ValueError(f"{path} cannot be loaded: {summary(error, name)}") from None
    return module


def _relative(value: Any, n_features: int | None) -> Any:
    if isinstance(value, str) and value in RELATIVE_TO_FEATURES:
        if n_features is None:
            raise ValueError(f"{value!r} is for a policy: an environment has no number of features before it is made")
        return RELATIVE_TO_FEATURES[value](n_features)
    return value
