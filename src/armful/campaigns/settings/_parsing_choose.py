"""The table `[choose]` of `campaign.toml`, with its quotas and its budget."""

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from armful.campaigns.settings._checking import COLUMN, FLAG, Check, Section, number, whole
from armful.campaigns.settings._quotas import Bound, QuotaSettings, bound_of, whole_count
from armful.campaigns.settings._sections import BudgetSettings, ChooseSettings
from armful.campaigns.settings._toml_text import shown, toml_string

CHOOSE_KEYS = ("k", "rest", "exclude", "require", "quotas", "budget")
QUOTA_KEYS = ("column", "at_least", "at_most", "nested")
BUDGET_KEYS = ("column", "limit")


def parse_choose(section: Section, folder: Path | None) -> ChooseSettings:
    """Return the settings of the choice; files must exist in the folder, if it is known."""
    k = section.need("k", whole(1), 0)
    return ChooseSettings(
        k=k,
        rest=section.get("rest", whole(0), 0),
        exclude=_files(section, "exclude", folder),
        require=_files(section, "require", folder),
        quotas=_quotas(section, k),
        budget=_budget(section.section("budget", BUDGET_KEYS)) if "budget" in section else None,
    )


def _files(section: Section, key: str, folder: Path | None) -> tuple[str, ...]:
    def convert(value: Any) -> str:
        if not isinstance(value, str) or not (folder is None or os.path.isfile(folder / value)):
            raise ValueError
        return value

    check = Check("a file, in quotes" if folder is None else f"a file that exists, relative to {folder}", convert)
    return tuple(name for _, name in section.items(key, check, '["ids.csv"]'))


def _budget(section: Section) -> BudgetSettings:
    positive = number("a number above 0", lambda x: x > 0)
    return BudgetSettings(column=section.need("column", COLUMN, ""), limit=section.need("limit", positive, 1.0))


def _quotas(section: Section, k: int) -> tuple[QuotaSettings, ...]:
    tables = section.table.get("quotas", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        section.add(("quotas",), f"must be tables with two brackets, [[choose.quotas]], got {shown(tables)}")
        return ()
    quotas: list[QuotaSettings] = []
    for i, table in enumerate(tables):
        path = (*section.path, "quotas", i)
        quota = _quota(Section(section.mistakes, table, path=path, known=QUOTA_KEYS), k)
        if quota.column and quota.column in [other.column for other in quotas]:
            section.add(
                ("quotas", i, "column"), f"is {toml_string(quota.column)} a second time; put both into one quota"
            )
        if quota.nested and i == 0:
            section.add(
                ("quotas", i, "nested"), "is for the second quota and later ones: each lies within the one before"
            )
        if i > 1 and quota.nested != quotas[-1].nested:
            section.add(("quotas", i, "nested"), "must be the same in all quotas after the first")
        quotas.append(quota)
    return tuple(quotas)


def _quota(section: Section, k: int) -> QuotaSettings:
    quota = QuotaSettings(
        column=section.need("column", COLUMN, ""),
        at_least=_bound(section, "at_least"),
        at_most=_bound(section, "at_most"),
        nested=section.get("nested", FLAG, False),
    )
    if "at_least" not in section and "at_most" not in section:
        section.add((), "needs at_least or at_most")
    if k:
        _refuse_impossible(section, quota, k)
    return quota


def _bound(section: Section, key: str) -> Bound:
    value = section.table.get(key)
    if not isinstance(value, Mapping):
        return section.get(key, BOUND, None)
    groups = section.section(key)
    checked = {group: groups.get(group, BOUND, None) for group in groups}
    return {group: bound for group, bound in checked.items() if bound is not None}


def _refuse_impossible(section: Section, quota: QuotaSettings, k: int) -> None:
    """Note lower bounds that exceed upper bounds or, together, k."""
    lower, upper = (bound if isinstance(bound, Mapping) else {} for bound in (quota.at_least, quota.at_most))
    shares = sum(Fraction(str(bound)) for bound in lower.values() if isinstance(bound, float))
    needed = sum(whole_count(bound, k, up=False) for bound in lower.values())
    if shares > 1:
        section.add(("at_least",), f"has shares that must not add up to more than 1, got {float(shares):g}")
    elif needed > k:
        section.add(("at_least",), f"must not add up to more than k = {k}, got {needed}")
    elif isinstance(quota.at_least, int) and quota.at_least > k:
        section.add(("at_least",), f"is for every group, and must not exceed k = {k}, got {quota.at_least}")
    for group in dict.fromkeys([*lower, *upper]) or [None]:
        low, high = bound_of(quota.at_least, group), bound_of(quota.at_most, group)
        if low is None or high is None:
            continue
        least, most = whole_count(low, k, up=False), whole_count(high, k, up=True)
        if least > most:
            of = "" if group is None else f" of {toml_string(group)}"
            section.add(("at_least",), f"must not exceed at_most{of}, got {least} and {most}")


def _count_or_share(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError
    if isinstance(value, float) and value > 1:
        raise ValueError("counts are whole numbers, without a decimal point")
    return whole(0).convert(value) if isinstance(value, int) else value


BOUND: Check[int | float | None] = Check("a whole number, or a share of k from 0.0 to 1.0", _count_or_share)
