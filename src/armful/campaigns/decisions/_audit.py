"""The audit of decisions: segments serve as its rounds."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from armful.campaigns._records import RoundRecord
from armful.campaigns.audit import Finding, audit
from armful.campaigns.audit._words import Words, title
from armful.campaigns.decisions._rows import DecisionRows, microseconds
from armful.campaigns.decisions._segments import SIZE
from armful.campaigns.decisions.fold import DecisionFold
from armful.ledger import RoundBlock
from armful.policies import Policy
from armful.scan._threads import blas_at_one_thread

MOST_SEGMENTS = 12
"""Segments that are looked at, spread over all that are closed: some 6,000 decisions."""

ENOUGH_TO_WARN = 100
"""Closed decisions without any reward from which on a warning is given: of decisions of which one in twenty earns
something, so many earn nothing once in 170 times."""

WORDS = Words(
    rounds="decisions",
    period=f"block of {SIZE} decisions",
    periods=f"blocks of {SIZE} decisions",
    times="times",
    person="an arm",
    people="arms",
    contact="decision",
    outcomes="rewards",
    set_shock=f"The rewards of some {SIZE} decisions rise and fall together, and `shock` is for those of one decision: "
    "give the model a column that says what changes, such as the hour, in `service.context`.",
)
LEVELS = {"fine": "ok", "look": "warning", "problem": "problem"}
_DISCOUNT = "Set `discount = {discount}` under `[learning]`: a decision then counts that fraction of the next one."


@blas_at_one_thread()
def audit_decisions(fold: DecisionFold, policy: Policy, now: datetime) -> list[Finding]:
    """Return what some closed decisions say about each assumption; it reads them from the ledger."""
    closed = fold.segments.closed_indices()
    places = np.unique(np.linspace(0, len(closed) - 1, min(MOST_SEGMENTS, len(closed))).round().astype(int))
    records = [as_record(fold, closed[place], now) for place in places.tolist()] if closed else []
    without_shock = replace(fold.settings, learning=replace(fold.settings.learning, shock=0.0))
    findings = audit(records, policy, without_shock, list(fold.names), words=WORDS)
    return [_for_decisions(finding, SIZE * len(closed)) for finding in findings]


def silence(totals: Mapping[str, float]) -> list[Finding]:
    """Return a finding if no reward has come though many windows have closed, from the counts of all decisions."""
    closed = int(totals["decisions"] - totals["open"])
    if totals["came"] or closed < ENOUGH_TO_WARN:
        return []
    return [
        Finding(
            name="silence",
            level="look",
            sentence=none_came(closed),
            consequence="Nothing can be learned without rewards.",
            repair="See whether your program sends them to `POST /v1/rewards`, and what the service answers.",
        )
    ]


def none_came(n: int) -> str:
    """Return that no reward has come for so many decisions."""
    return f"No reward has come for {n:,} decision{'s' * (n > 1)} whose window has closed."


def _for_decisions(finding: Finding, n: int) -> Finding:
    """Return a finding on segments with what to do about it: a discount is for single decisions, n of them."""
    if finding.name != "drift" or not finding.repair:
        return finding
    digits = 1 + len(str(n))
    return replace(finding, repair=_DISCOUNT.format(discount=f"{1 - 2 / n:.{digits}f}"))


def as_record(fold: DecisionFold, index: int, now: datetime) -> RoundRecord:
    """Return the closed decisions of a segment as a round; a person is a unit, or a decision without one."""
    block = fold.ledger.block(index * SIZE + 1, (index + 1) * SIZE)
    rows = DecisionRows.of(block, fold.settings, int(microseconds(now.timestamp())))
    kept = rows.closed
    began = float(block.chosen_at.min())
    chosen_at = block.chosen_at[block.of_round][kept]
    windows = (block.closes_at - block.chosen_at)[block.of_round][kept]
    policy = np.isin(block.shares[kept], ("chosen", "explored"))
    exploring = float((block.shares[kept] == "explored").sum() / max(policy.sum(), 1))
    weights = fold.weights_at(block.positions[kept])
    return RoundRecord(
        number=index + 1,
        chosen_at=datetime.fromtimestamp(began, UTC),
        closes_at=datetime.fromtimestamp(began + float(windows.max(initial=0.0)), UTC),
        closed=True,
        ids=_units(block)[block.of_round][kept],
        shares=block.shares[kept],
        features=(block.features[kept] * weights[:, None]).astype(np.float32),
        rewards=rows.rewards[kept],
        came=rows.came[kept],
        received_at=block.received_at[kept] - chosen_at + began,
        predicted=block.predicted[kept] * weights,
        bonus=block.bonus[kept] * weights,
        capped=block.capped[kept],
        probabilities=block.probabilities[kept],
        groups={name: labels[kept] for name, labels in block.groups.items()},
        details={"exploring": exploring},
    )


def as_json(findings: list[Finding]) -> list[dict[str, Any]]:
    """Return the findings as the summary has them."""
    return [
        {
            "level": LEVELS[finding.level] if finding.checked else "open",
            "title": title(finding.name, WORDS),
            "sentence": f"{finding.sentence} {finding.consequence}".strip(),
            "remedy": finding.repair,
        }
        for finding in findings
    ]


def _units(block: RoundBlock) -> Any:
    pairs = zip(block.numbers.tolist(), block.units, strict=True)
    return np.array([f"decision {number}" if unit is None else f"unit {unit}" for number, unit in pairs], dtype=np.str_)
