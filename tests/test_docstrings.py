"""The reference shows docstrings, so everything public has one in the form that its tools read."""

import importlib
import inspect

import pytest

PACKAGES = [
    "armful",
    "armful.constraints",
    "armful.environments",
    "armful.experiments",
    "armful.model",
    "armful.policies",
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
