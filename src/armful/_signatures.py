"""Error messages for wrong arguments and misspelt names: one sentence that lists what is accepted."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

_DONE = "_arguments_are_explained"
_Parameters = Mapping[str, inspect.Parameter]


def explain_arguments(kind: type) -> None:
    """Let a class list its arguments in the TypeError for a call that does not fit.

    Python's own message names the class that defines `__init__`, which may be a base class that the user never typed.
    Public class methods are treated the same. Signatures and docstrings stay as they are.

    Parameters
    ----------
    kind : type
        The class; it and its base classes in armful are changed in place.

    Examples
    --------
    >>> class Box:
    ...     def __init__(self, size, *, colour="red"):
    ...         pass
    >>> explain_arguments(Box)
    >>> Box(1, color="blue")
    Traceback (most recent call last):
    ...
    TypeError: Box has no option 'color', did you mean 'colour'? It takes size, and by name colour
    """
    for each in kind.__mro__:
        if each is not kind and each.__module__.partition(".")[0] != "armful":
            continue
        for name, member in list(vars(each).items()):
            if name == "__init__" and not hasattr(member, _DONE):
                setattr(each, name, _explained(member))
            elif isinstance(member, classmethod) and not name.startswith("_") and not hasattr(member.__func__, _DONE):
                setattr(each, name, classmethod(_explained(member.__func__, f".{name}")))


def explain_classes(names: Mapping[str, Any], *, leave_out: tuple[type, ...] = ()) -> None:
    """Explain the arguments of every class among the public `names` of a module, given as its `vars`.

    leave_out: classes that armful makes in every round, where the explanation would cost time.
    """
    for name in names["__all__"]:
        kind = names.get(name)  # None if it is imported when it is used
        if isinstance(kind, type) and kind not in leave_out and not getattr(kind, "_is_protocol", False):
            explain_arguments(kind)


def parameters_of(kind: type) -> dict[str, inspect.Parameter]:
    """Return the named parameters of a class and, where it passes the rest on as `**options`, of its parents.

    Examples
    --------
    >>> class Parent:
    ...     def __init__(self, *, size=1):
    ...         pass
    >>> class Child(Parent):
    ...     def __init__(self, *, colour, **options):
    ...         super().__init__(**options)
    >>> list(parameters_of(Child))
    ['colour', 'size']
    """
    found: dict[str, inspect.Parameter] = {}
    for ancestor in kind.__mro__[:-1]:  # all but object
        if "__init__" in vars(ancestor):
            own = list(inspect.signature(vars(ancestor)["__init__"]).parameters.values())[1:]
            found |= {p.name: p for p in own if p.name not in found and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
            if not any(p.kind is p.VAR_KEYWORD for p in own):
                break
    return found


def explain_missing_names(names: dict[str, Any]) -> None:
    """Let a module, given as its `vars`, say for a public name that it lacks which one may have been meant."""

    def missing(name: str) -> NoReturn:
        raise missing_name(names["__name__"], name, names["__all__"])

    names["__getattr__"] = missing


def missing_name(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module does not have, with the name that may have been meant.

    Examples
    --------
    >>> missing_name("armful", "Topk", ["TopK", "AtMost"])
    AttributeError("module 'armful' has no attribute 'Topk'; did you mean 'TopK'?")
    """
    meant = _close(name, known)
    return AttributeError(
        f"module {module!r} has no attribute {name!r}" + ("" if meant is None else f"; did you mean {meant!r}?")
    )


def _explained(function: Callable[..., Any], suffix: str = "") -> Callable[..., Any]:
    """Return the function with better TypeErrors about its arguments; those raised inside it are left alone."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(this: Any, /, *given: Any, **named: Any) -> Any:
        try:
            return function(this, *given, **named)
        except TypeError:
            try:
                signature.bind(this, *given, **named)
            except TypeError:
                kind = this if isinstance(this, type) else type(this)
                own = dict(list(signature.parameters.items())[1:])
                message = _message(kind.__name__ + suffix, own, own if suffix else parameters_of(kind), given, named)
            else:
                raise
        raise TypeError(message)

    setattr(call, _DONE, True)
    return call


def _message(
    name: str, own: _Parameters, all_options: _Parameters, given: tuple[Any, ...], named: Mapping[str, Any]
) -> str:
    """Return what does not fit: too many by position, an unknown name, one given twice, or a missing one."""
    positional, keyword_only = _names(own)
    takes = _as_text(*_names(all_options))
    if len(given) > len(positional):
        example = [*positional, *(f"{option}=..." for option in keyword_only[: len(given) - len(positional)])]
        as_in = f", as in {name}({', '.join(example)})" if keyword_only else ""
        return f"{name} takes {takes}{as_in}; got {len(given)} argument{'s' * (len(given) > 1)} by position"
    for option in named:
        if option not in own:
            meant = _close(option, all_options)
            hint = "; it" if meant is None else f", did you mean {meant!r}? It"
            return f"{name} has no option {option!r}{hint} takes {takes}"
        if option in positional[: len(given)]:
            return f"{name} got {option} twice, by position and by name; it takes {takes}"
    missing = [p for p in [*positional[len(given) :], *keyword_only] if own[p].default is inspect.Parameter.empty]
    return f"{name} needs {' and '.join(p for p in missing if p not in named)}; it takes {takes}"


def _names(parameters: _Parameters) -> tuple[list[str], list[str]]:
    """Return the names that may be given by position, and those that are keyword-only."""
    groups: tuple[list[str], list[str]] = ([], [])
    for p in parameters.values():
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            groups[p.kind is p.KEYWORD_ONLY].append(p.name)
    return groups


def _as_text(positional: list[str], keyword_only: list[str]) -> str:
    parts = [", ".join(positional)] if positional else []
    parts += [f"by name {', '.join(keyword_only)}"] if keyword_only else []
    return ", and ".join(parts) or "no arguments"


def _close(name: str, known: Iterable[str]) -> str | None:
    import difflib  # noqa: PLC0415 - only for error messages

    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    if len(name) >= 3:
        found += [each for each in by_lower if each.startswith(name.lower())]  # epsilon for eps
    return by_lower[found[0]] if found else None
