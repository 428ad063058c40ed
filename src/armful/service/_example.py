"""An example request: one that the service of the campaign answers."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from armful.campaigns.features import FeatureRecipe
from armful.campaigns.features._kinds import OTHER
from armful.campaigns.features._numbers import Date, Number, Ready
from armful.campaigns.features._texts import Category, Ordered, Text
from armful.campaigns.reading._column_values import DOTTED
from armful.campaigns.settings import QuotaSettings, ServiceSettings, Settings
from armful.campaigns.settings._quotas import whole_count
from armful.service.encoding import NO_GROUP

LARGEST_K = 10
"""Where the quotas need more arms than these, the example does without quotas."""


def example_decision(settings: Settings, recipe: FeatureRecipe) -> dict[str, Any]:
    r"""Return the body of a request that chooses as few arms as the quotas allow.

    Parameters
    ----------
    settings : Settings
        For quotas, the budget, and which columns come with the context.
    recipe : FeatureRecipe
        As it was frozen. It says which values a column has; of a transformer's columns, numbers are tried.

    Returns
    -------
    dict

    Examples
    --------
    >>> from armful.campaigns.settings import parse_settings
    >>> text = "name = 'shop'\nid = 'item'\nchoose.k = 5\npolicy.cap = 1.0\noutcomes.reward = 'bought'"
    >>> settings = parse_settings(f"{text}\nfeatures.ready = 3", None)
    >>> example = example_decision(settings, FeatureRecipe.fit(settings.features, ()))
    >>> example["candidates"]
    [{'id': 'a1', 'features': [0.29, 0.58, 0.87]}, {'id': 'a2', 'features': [0.58, 0.87, 0.29]}]
    >>> example["constraint"]
    {'k': 1}
    """
    context = (settings.service or ServiceSettings()).context
    part_of = {name: part for part in recipe.parts for name in part.columns}
    constraint, of_choice = _constraint(settings, part_of)
    is_ready = bool(recipe.parts) and all(isinstance(part, Ready) for part in recipe.parts)
    as_list = is_ready and part_of.keys().isdisjoint(of_choice)
    candidates: list[dict[str, Any]] = []
    for i in range(constraint["k"] + 1):
        chosen_by = {name: _nth(groups, i) for name, groups in of_choice.items()}
        if as_list:
            features = [_nth(_values(recipe.parts[0]), i + j) for j in range(recipe.n_features)]
            candidate = ({"columns": chosen_by} if chosen_by else {}) | {"features": features}
        else:
            own = {name: _nth(_values(part), i) for name, part in part_of.items() if name not in context}
            candidate = {"columns": own | chosen_by}
        candidates.append({"id": f"a{i + 1}"} | candidate)
    shared = {name: _values(part)[0] for name, part in part_of.items() if name in context}
    rest = {"constraint": constraint, "unit": "user-17", "key": "request-4711"}
    return {"candidates": candidates} | ({"context": shared} if shared else {}) | rest


def _constraint(settings: Settings, part_of: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return k, and for each column of a quota or the budget the values of k arms that are allowed together."""
    choose = settings.choose
    constraint: dict[str, Any] = {"k": 1, "quotas": []}
    found = {quota.column: _names(quota, part_of.get(quota.column), 1)[:1] for quota in choose.quotas}
    is_nested = any(quota.nested for quota in choose.quotas)  # then which group lies in which is not known
    for k in range(1, 2 if is_nested else min(choose.k, LARGEST_K) + 1):
        groups = {quota.column: _groups(quota, part_of.get(quota.column), k) for quota in choose.quotas}
        if all(len(each) == k for each in groups.values()):
            constraint, found = {"k": k}, groups
            break
    of_choice = {
        column: [_value_of_group(name, part_of.get(column)) for name in names] for column, names in found.items()
    }
    if choose.budget is not None:
        cost = float(f"{choose.budget.limit / (2 * constraint['k']):.1g}")
        of_choice[choose.budget.column] = [_short(cost)]
    return constraint, of_choice


def _groups(quota: QuotaSettings, part: Any, k: int) -> list[str]:
    """Return the groups of k arms that a quota allows together; some other number of groups if none are found."""
    names = _names(quota, part, k)
    least = {name: _bound(quota.at_least, name, k, up=False) or 0 for name in names}
    most = {name: _bound(quota.at_most, name, k, up=True) for name in names}
    needed = names if isinstance(quota.at_least, Mapping) else []
    chosen = [name for name in needed for _ in range(least[name])]
    for name in names:
        n, bound = max(least[name], 1), most[name]
        if name not in chosen and (bound is None or n <= bound) and len(chosen) + n <= k:
            chosen += [name] * n
    return chosen


def _names(quota: QuotaSettings, part: Any, k: int) -> list[str]:
    """Return names of groups: first those of the quota, then those of the recipe, then others."""
    named = [name for bound in (quota.at_least, quota.at_most) if isinstance(bound, Mapping) for name in bound]
    words = [] if part is None else map(str, _values(part))
    others = [f"{i + 1}" if _has_numbers(part) else f"group-{i + 1}" for i in range(k)]
    return list(dict.fromkeys([*named, *words, *([] if isinstance(part, Date) else others)]))


def _bound(bound: Any, name: str, k: int, *, up: bool) -> int | None:
    number = bound.get(name) if isinstance(bound, Mapping) else bound
    return None if number is None else whole_count(number, k, up=up)


def _has_numbers(part: Any) -> bool:
    return isinstance(part, Ready | Number) or bool(getattr(part, "numbers", False))


def _value_of_group(name: str, part: Any) -> Any:
    if name == NO_GROUP:
        return None
    if isinstance(part, Ready | Number) and not isinstance(part, Date):
        with suppress(ValueError):
            return _whole(float(name))
    return name


def _values(part: Any) -> list[Any]:
    """Return values that a column of the recipe may have, at least one."""
    match part:
        case Date():
            day = part.show(part.median)
            return [".".join(reversed(day.split("-"))) if part.written == DOTTED else day]
        case Number():
            return [_short(part.median), _short((part.median + part.scale.high) / 2)]
        case Category(categories=words) | Ordered(order=words):
            return [*words] or [OTHER]
        case Text():
            return ["a few words", "and some others"]
        case Ready():
            return [float(f"{x / len(part.columns) ** 0.5:.2g}") for x in (0.5, 1.0, 1.5)]  # of about unit length
    return [1, 2]


def _short(number: float) -> int | float:
    """Return a number with three digits."""
    return _whole(float(f"{number:.3g}"))


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _nth(values: Any, i: int) -> Any:
    return values[i % len(values)]
