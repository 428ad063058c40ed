"""The audit of decisions: segments serve as its rounds."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from armful.campaigns._records import RoundRecord
from armful.campaigns.audit import Finding, audit
from armful.campaigns.audit._words import Words
from armful.campaigns.decisions._rows import DecisionRows, microseconds
from armful.campaigns.decisions._segments import SIZE
from armful.campaigns.decisions.fold import DecisionFold
from armful.ledger import RoundBlock
from armful.policies import Policy
from armful.scan._threads import blas_at_one_thread

MOST_SEGMENTS = 12
"""Segments that are looked at, spread over all that are closed: some 6,000 decisions."""

WORDS = Words(
    rounds="decisions",
    period=f"block of {SIZE} decisions",
    periods=f"blocks of {SIZE} decisions",
    person="an arm",
    people="arms",
    contact="decision",
)
LEVELS = {"fine": "ok", "look": "warning", "problem": "problem"}
TITLES = {
    "cap": "The cap",
    "shocks": "Noise in common",
    "drift": "Effects that change",
    "shape": "Straight lines",
    "radius": "The radius",
    "delays": "Late rewards",
    "leakage": "Columns that know too much",
}
_REPAIRS = {
    "shocks": "The rewards of some {size} decisions rise and fall together, and `shock` is for those of one decision: "
    "give the model a column that says what changes, such as the hour, in `service.context`.",
    "drift": "Set `discount = {discount}` under `[learning]`: a decision then counts that fraction of the next one.",
}
"""What to do about findings on segments."""


@blas_at_one_thread()
def audit_decisions(fold: DecisionFold, policy: Policy, now: datetime) -> list[Finding]:
    """Return what some closed decisions say about each assumption; it reads them from the ledger."""
    closed = fold.segments.closed_indices()
    places = np.unique(np.linspace(0, len(closed) - 1, min(MOST_SEGMENTS, len(closed))).round().astype(int))
    records = [as_record(fold, closed[place], now) for place in places.tolist()] if closed else []
    without_shock = replace(fold.settings, learning=replace(fold.settings.learning, shock=0.0))
    findings = audit(records, policy, without_shock, list(fold.names), words=WORDS)
    return [_for_decisions(finding, SIZE * len(closed)) for finding in findings]


def _for_decisions(finding: Finding, n: int) -> Finding:
    """Return a finding on segments with what to do about it: the settings are those of single decisions, n of them."""
    if finding.name not in _REPAIRS or not finding.repair:
        return finding
    digits = 1 + len(str(n))
    return replace(finding, repair=_REPAIRS[finding.name].format(size=SIZE, discount=f"{1 - 2 / n:.{digits}f}"))


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
            "title": TITLES.get(finding.name, finding.name),
            "sentence": f"{finding.sentence} {finding.consequence}".strip(),
            "remedy": finding.repair,
        }
        for finding in findings
    ]


def _units(block: RoundBlock) -> Any:
    pairs = zip(block.numbers.tolist(), block.units, strict=True)
    return np.array([f"decision {number}" if unit is None else f"unit {unit}" for number, unit in pairs], dtype=np.str_)
