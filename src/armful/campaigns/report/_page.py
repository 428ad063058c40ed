"""The page of a report: one HTML file that fetches nothing."""

import json
import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from armful.campaigns.audit._finding import Finding, percent
from armful.campaigns.audit._words import CAMPAIGN, title
from armful.campaigns.lift._words import ended
from armful.campaigns.report._data import Mean, ReportData
from armful.campaigns.report._section import NONE, Drawn, Section, Table, counted, known
from armful.campaigns.report._sections import sections
from armful.experiments import _page as page

STYLE = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
SCRIPT = Path(__file__).with_name("report.js").read_text(encoding="utf-8")

# Nothing may be fetched: not by this page, and not by what a user's data might try to be.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)

NUMBER_AND_UNIT = re.compile(r"(?<=[0-9]) %")
"""A line must not end between a number and its per cent sign."""

LEVELS = {"fine": ("✓", "fine"), "look": ("!", "look"), "problem": ("✕", "problem"), "open": (NONE, "not yet")}
ORDER = ["problem", "look", "fine", "open"]
CHECKS = {name: title(name, CAMPAIGN) for name in ("cap", "shocks", "drift", "shape", "radius", "delays", "leakage")}


def document(data: ReportData, plotly: str) -> str:
    """Return the whole page; `plotly` is the source of plotly.js."""
    found = sections(data)
    parts = [_section(each, position) for position, each in enumerate(found)]
    first = found[0].key if found else "audit"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(data.name)}: campaign report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>",
            f'<a class="skip" href="#{first}">Skip to the figures</a>\n<main>',
            _header(data),
            _navigation(found),
            *parts,
            _audit(data),
            f"</main>\n{_footer(data)}\n<script>{plotly}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        ]
    )


def embedded(value: object) -> str:
    r"""Return JSON that can stand in a script element, whatever is in its texts.

    Examples
    --------
    >>> print(embedded(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def verdict(data: ReportData) -> str:
    """Return what the lift means, with care for people who look often."""
    lift = data.lift
    if lift.low is None or lift.high is None or lift.anytime_low is None or lift.anytime_high is None:
        return _without_lift(data)
    means = (
        f"The chosen earned {known(lift.treated_mean)} per contact, the holdout {known(lift.baseline)}, over "
        f"{counted(lift.n_rounds, 'round')} and {counted(lift.n_contacts, 'contact')}."
    )
    if lift.anytime_low > 0:
        return f"It works: even if you looked after every round, chance does not explain the difference. {means}"
    if lift.low > 0:
        return f"It probably works; if you looked after every round, the difference may still be chance. {means}"
    if lift.anytime_high < 0:
        return f"It does worse than the house rule, and chance does not explain that. {means}"
    if lift.high < 0:
        return f"It probably does worse than the house rule; if you looked after every round, it may be chance. {means}"
    return f"Whether it works cannot be told yet: the difference may be chance. {means}"


def _without_lift(data: ReportData) -> str:
    """Return why nothing is known of the lift, and what is known of both shares."""
    if data.rounds and not any(each.n_holdout for each in data.rounds):
        return "Without a holdout nobody can say whether it works: set holdout.share, and later rounds can show it."
    closed = [each for each in data.rounds if each.closed]
    chosen, holdout = (_known_mean([getattr(each, share) for each in closed]) for share in ("chosen", "holdout"))
    if not chosen.n or not holdout.n:
        return "Whether it works will be seen when outcomes of both shares are known."
    return (
        f"Whether it works cannot be told yet: so far the chosen earned {known(chosen.value)} per contact, by "
        f"{counted(chosen.n, 'known outcome')}, and the holdout {known(holdout.value)}, by {holdout.n:,}."
    )


def _known_mean(means: list[Mean]) -> Mean:
    """Return the mean of all rewards of some rounds."""
    some = [each for each in means if each.n]
    n = sum(each.n for each in some)
    value = sum(each.value * each.n for each in some) / n if n else math.nan
    return Mean(value=value, low=math.nan, high=math.nan, n=n)


def _header(data: ReportData) -> str:
    sentence = ended(data.lift.sentence[:1].upper() + data.lift.sentence[1:])
    tiles = "".join(
        f"<div><dt>{escape(title)}</dt><dd><strong>{_text(value)}</strong><span>{escape(note)}</span></dd></div>"
        for title, value, note in _tiles(data)
    )
    return (
        f'<header>\n<p class="eyebrow">Campaign report · {data.made_at.day} {data.made_at:%B %Y}</p>\n'
        f'<h1>{escape(data.name)}</h1>\n<p class="hero">{_text(sentence)}</p>\n'
        f'<p class="verdict">{_text(verdict(data))}</p>\n<dl class="tiles">{tiles}</dl>\n</header>'
    )


def _tiles(data: ReportData) -> list[tuple[str, str, str]]:
    """Return title, value and note of each of the numbers on top."""
    n_closed = sum(each.closed for each in data.rounds)
    contacts = sum(each.n_chosen + each.n_holdout for each in data.rounds)
    waiting = sum(each.outstanding for each in data.rounds)
    relative, last = data.lift.relative, data.rounds[-1] if data.rounds else None
    tiles = [
        ("lift per contact", NONE if relative is None else f"{100 * relative:+.0f} %", "against the holdout"),
        ("rounds", str(len(data.rounds)), f"{n_closed} closed"),
        ("contacts", f"{contacts:,}", f"{waiting:,} outcomes outstanding"),
    ]
    if last is not None and math.isfinite(last.exploring):
        tiles.append(("exploration", percent(last.exploring), "of the chosen in the last round"))
    tiles.append(("audit", *_verdict_of_audit(data.findings)))
    return tiles


def _verdict_of_audit(findings: Sequence[Finding]) -> tuple[str, str]:
    """Return the audit as a value and a note; what could not be checked yet is not called fine."""
    n_bad = sum(each.level != "fine" for each in findings)
    checked = sum(each.checked for each in findings)
    if n_bad:
        return str(n_bad), "to look at, see below"
    if not checked:
        return NONE, "too few outcomes yet"
    return "fine", "nothing to repair" if checked == len(findings) else f"{checked} of {len(findings)} checked"


def _navigation(found: list[Section]) -> str:
    links = [*((each.key, each.title) for each in found), ("audit", "Audit")]
    items = "".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _section(section: Section, position: int) -> str:
    return "\n".join(
        [
            f'<section id="{section.key}" aria-labelledby="{section.key}-title">',
            f'<h2 id="{section.key}-title">{escape(section.title)}</h2>',
            *(_paragraph(text) for text in section.text),
            *(_drawn(each, f"figure-{position}-{i}") for i, each in enumerate(section.drawn)),
            *(_table(each) for each in section.tables),
            "</section>",
        ]
    )


def _drawn(drawn: Drawn, key: str) -> str:
    height = drawn.figure["layout"]["height"]
    return (
        f'<figure>\n<div class="plot" role="img" aria-label="{escape(drawn.label)}" data-figure="{key}" '
        f'style="min-height:{height}px"></div>\n'
        f'<script type="application/json" id="{key}">{embedded(drawn.figure)}</script>\n'
        f"<figcaption>{_table(drawn.table)}</figcaption>\n</figure>"
    )


def _table(table: Table) -> str:
    summary = f"<summary>{escape(table.title)} <span>as a table</span></summary>"
    return f"<details>{summary}{page.table(table.columns, table.rows)}</details>"


def _audit(data: ReportData) -> str:
    checked = sum(each.checked for each in data.findings)
    text = (
        f"What the method takes for granted, checked on the outcomes: {checked} of {len(data.findings)} assumptions "
        "could be checked."
    )
    if checked:
        text += " If nothing is wrong, about one audit in a hundred finds something all the same."
    ranked = sorted(data.findings, key=lambda each: ORDER.index(_level(each)))
    return (
        '<section id="audit" aria-labelledby="audit-title">\n<h2 id="audit-title">Audit</h2>\n'
        f'{page.paragraph(text)}\n<ul class="findings">{"".join(map(_finding, ranked))}</ul>\n</section>'
    )


def _finding(finding: Finding) -> str:
    sign, word = LEVELS[_level(finding)]
    parts = [
        f'<p class="badge"><span aria-hidden="true">{sign}</span> {word}</p>',
        f"<h3>{escape(CHECKS.get(finding.name, finding.name))}</h3>",
        _paragraph(finding.sentence),
        _paragraph(finding.consequence) if finding.consequence else "",
        page.lead("What to do.", finding.repair) if finding.repair else "",
    ]
    return f'<li class="{_level(finding)}">{"".join(parts)}</li>'


def _level(finding: Finding) -> str:
    return finding.level if finding.checked else "open"


def _footer(data: ReportData) -> str:
    people = f" It names {len(data.people)} people by their id: write it anew after `armful forget`."
    text = (
        f"Made by armful {page.plain(data.version)} on {data.made_at:%Y-%m-%d %H:%M %Z}. Policy: "
        f"{page.code(data.policy)}. Everything is in this file; it fetches nothing.{people if data.people else ''}"
    )
    without = "<noscript><p>The figures need JavaScript; the tables do not.</p></noscript>"
    return f"<footer>{without}{page.paragraph(text)}</footer>"


def _text(text: str) -> str:
    return NUMBER_AND_UNIT.sub("\u00a0%", escape(text))


def _paragraph(text: str) -> str:
    return page.paragraph(NUMBER_AND_UNIT.sub("\u00a0%", text))
