"""The reference shows docstrings, so everything public has one in the form that its tools read."""

import importlib
import inspect
import re

import pytest

PACKAGES = [
    "armful",
    "armful.campaigns",
    "armful.constraints",
    "armful.environments",
    "armful.experiments",
    "armful.ledger",
    "armful.model",
    "armful.policies",
    "armful.service.client",
    "armful.simulation",
    "armful.tables",
    "armful.testing",
    "armful.theory",
]


def public(package):
    module = importlib.import_module(package)
    return {name: getattr(module, name) for name in module.__all__ if callable(getattr(module, name))}


def takes_arguments(thing):
    if inspect.isfunction(thing):
        return bool(inspect.signature(thing).parameters)
    return "__init__" in vars(thing) and not vars(thing).get("_is_protocol")


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_public_says_what_it_takes(package):
    for name, thing in public(package).items():
        text = inspect.getdoc(thing)
        assert text, f"{package}.{name} has no docstring"
        sections = "Parameters\n----------" in text or "Attributes\n----------" in text
        assert sections or not takes_arguments(thing), f"{package}.{name} has no section Parameters"


@pytest.mark.parametrize("package", PACKAGES)
def test_public_methods_have_docstrings(package):
    for name, thing in public(package).items():
        for method, code in vars(thing).items() if inspect.isclass(thing) else ():
            if inspect.isfunction(code) and not method.startswith(("_", "test_")):
                assert inspect.getdoc(getattr(thing, method)), f"{package}.{name}.{method} has no docstring"


def parameters_documented_together(thing):
    """Return the names on each line like `begin, end : int` in the section Parameters of a class or function."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)", inspect.getdoc(thing) or "", re.M | re.S)
    lines = re.findall(r"^(\w+(?:, \w+)+)(?: :.*)?$", section[1], re.M) if section else []
    return [line.split(", ") for line in lines]


@pytest.mark.parametrize("package", PACKAGES)
def test_parameters_that_share_a_line_share_type_and_default(package):
    # The reference shows the type and the default of the first name for all of them.
    for name, thing in public(package).items():
        methods = [m for key, m in vars(thing).items() if inspect.isfunction(m) and key[0] != "_"]
        for code in [thing, *methods]:
            for names in parameters_documented_together(code):
                parameters = [inspect.signature(code).parameters[each] for each in names]
                kinds = {(str(each.annotation), repr(each.default)) for each in parameters}
                assert len(kinds) == 1, f"{package}.{name}: {', '.join(names)} need a line each in {code.__qualname__}"
