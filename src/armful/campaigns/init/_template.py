"""The text of a new `campaign.toml`: what was guessed, and every other option in a comment."""

from collections.abc import Sequence
from dataclasses import dataclass

from armful.campaigns.init._guessing import ColumnGuess
from armful.campaigns.init._profiles import ColumnProfile
from armful.campaigns.init._roles import RewardGuess
from armful.campaigns.settings._toml_text import toml_key, toml_list, toml_string

WIDTH = 40
"""Comments behind values begin in this column."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Guess:
    """All that is guessed about a campaign. columns: all columns of the file but the id."""

    name: str
    source: str
    delimiter: str
    n_rows: int
    id: str
    k: int
    reward: RewardGuess
    columns: Sequence[ColumnGuess]
    quota: ColumnProfile | None


def campaign_toml(guess: Guess) -> str:
    """Return the text of `campaign.toml`, which is valid."""
    parts = [_top(guess), _choose(guess), _policy(guess), _features(guess), _outcomes(guess), _REST]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _line(setting: str, comment: str = "") -> str:
    on_one_line = "".join(each if each.isprintable() else " " for each in comment)
    return f"{setting:<{WIDTH - 1}} # {on_one_line}" if comment else setting


def _top(guess: Guess) -> list[str]:
    return [
        "# The settings of a campaign. `armful check` says what is wrong with them after a change.",
        "# Lines that begin with # are not used: they show what else can be set.",
        "",
        _line(f"name = {toml_string(guess.name)}", "do not change it after the first round"),
        _line('store = "sqlite:///ledger.sqlite"', "in this folder; or postgresql://user@host/database"),
        _line(f"source = {toml_string(guess.source)}", f"looked at: {guess.n_rows:,} rows; `armful plan` uses it"),
        _line(f"id = {toml_string(guess.id)}", "the column that tells customers apart"),
        _line(f"delimiter = {toml_string(guess.delimiter)}", "between the columns of CSV files"),
        _line("seed = 0", "the same seed and the same files give the same rounds"),
    ]


def _choose(guess: Guess) -> list[str]:
    return [
        "[choose]",
        _line(f"k = {guess.k}", "contacts in a round"),
        _line("rest = 0", "for so many rounds after a contact nobody is contacted again"),
        _line('# exclude = ["opted-out.csv"]', "files in this folder with the ids of those never to choose"),
        _line('# require = ["vip.csv"]', "and of those always to choose"),
        "",
        *_quota(guess.quota),
        "",
        "# [choose.budget]",
        _line('# column = "cost"', "a column of the customers file; list it in leave_out if it is no feature"),
        _line("# limit = 10000.0", "what the contacts of a round may cost in all"),
    ]


def _quota(column: ColumnProfile | None) -> list[str]:
    name, groups = ("region", ["north", "south"]) if column is None else (column.name, list(column.counts))
    at_most = f"{{ {toml_key(groups[0])} = 100, {toml_key(groups[1])} = 0.5 }}"
    return [
        "# [[choose.quotas]]",
        _line(f"# column = {toml_string(name)}", "contacts are divided among its groups"),
        _line("# at_least = 0.05", "of every group: a share of k, or a whole number of contacts"),
        _line(f"# at_most = {at_most}", "or group by group"),
        _line("# nested = false", "true in a further quota: its groups lie within those of the quota before"),
    ]


def _policy(guess: Guess) -> list[str]:
    cap = guess.reward.cap
    return [
        "[policy]",
        _line('kind = "CappedC2UCB"', "or another policy of armful, with its options by name"),
        _line(f"cap = {cap}", guess.reward.why),
        _line('# radius = "pointwise"', "how much is explored"),
        _line('# noise = "auto"', "estimated from the outcomes"),
        _line("# ridge = 1.0"),
    ]


def _features(guess: Guess) -> list[str]:
    used = [column for column in guess.columns if column.settings is not None]
    pair = [column.name for column in used][:2] if len(used) > 1 else ["job", "age"]
    return [
        "[features]",
        _line("intercept = true", "one constant feature"),
        _line(f"# interactions = [{toml_list(pair)}]", "pairs of columns whose features are multiplied"),
        *_leave_out([column for column in guess.columns if column.settings is None]),
        "",
        "# Every column but the id is in leave_out or here, with its kind:",
        '#   number: { kind = "number" }, with log = true for very skewed ones, or spline = 4 for curves',
        '#   category: { kind = "category" }; at_most = 30 keeps the 30 most frequent ones, the rest is "other"',
        '#   ordered: { kind = "ordered", order = ["low", "middle", "high"] }',
        '#   date: { kind = "date" }',
        '#   text: { kind = "text" }; its words are hashed to buckets = 32 features',
        "[features.columns]",
        *(_line(_column(column), column.why) for column in used),
    ]


def _leave_out(columns: Sequence[ColumnGuess]) -> list[str]:
    if not columns:
        return [_line("leave_out = []", "columns of the file that are no features")]
    return ["leave_out = [", *(_line(f"    {toml_string(column.name)},", column.why) for column in columns), "]"]


def _column(column: ColumnGuess) -> str:
    assert column.settings is not None
    log = ", log = true" if column.settings.log else ""
    return f'{toml_key(column.name)} = {{ kind = "{column.settings.kind}"{log} }}'


def _outcomes(guess: Guess) -> list[str]:
    return [
        "[outcomes]",
        _line(f"reward = {toml_string(guess.reward.name)}", "the column of the outcomes file that counts, a number"),
        _line(f"# id = {toml_string(guess.id)}", "the column with the id, if its name differs there"),
        _line('# round = "week"', "a column with the number of the round; without it, the last round that fits"),
        _line('# time = "date"', "a column with the time of the outcome"),
        _line('# timezone = "UTC"', "of times that do not name theirs, like Europe/Lisbon"),
        _line('window = "14 days"', "how long after a round outcomes count; days, weeks, hours, minutes"),
        _line("missing = 0.0", 'what no outcome means when the window has closed; or "unknown"'),
        _line('learn = "when the window closes"', 'or "at once", if the delay does not depend on the outcome'),
        _line('repeats = "refuse"', "several rewards of one contact in a file: refuse, last, sum or max"),
    ]


_REST = [
    "[holdout]",
    _line("share = 0.05", "of the people: their contacts are not chosen by the model, to compare with"),
    _line('rule = "random"', 'or "score": those with the largest values of a column are contacted'),
    _line('# score = "..."', 'that column, for rule = "score"'),
    _line("no_contact = 0.0", "share of people who are never contacted, to see what contacts do at all"),
    "",
    "[learning]",
    _line("discount = 1.0", "0.9: a round counts a tenth less with every later round, for what changes"),
    _line("shock = 0.0", "how much more the outcomes of a round vary together; `armful report` says it"),
]
