"""The text of a new `campaign.toml`: what was guessed, and every other option in a comment."""

from collections.abc import Sequence
from dataclasses import dataclass

from armful.campaigns.init._guessing import ColumnGuess
from armful.campaigns.init._profiles import ColumnProfile
from armful.campaigns.init._roles import RewardGuess
from armful.campaigns.settings._toml_text import toml_key, toml_list, toml_string

WIDTH = 40
"""Comments behind values begin in this column."""
KINDS = [
    "# Every column but the id is in leave_out or here, with its kind:",
    '#   number: { kind = "number" }, with log = true for very skewed ones, or spline = 4 for curves',
    '#   category: { kind = "category" }; at_most = 30 keeps the 30 most frequent ones, the rest is "other"',
    '#   ordered: { kind = "ordered", order = ["low", "middle", "high"] }',
    '#   date: { kind = "date" }',
    '#   text: { kind = "text" }; its words are hashed to buckets = 32 features',
]


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
    parts = [_top(guess), _choose(guess), policy_lines(guess.reward), _features(guess), _outcomes(guess), _REST]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def line(setting: str, comment: str = "") -> str:
    """Return a line with its comment."""
    on_one_line = "".join(each if each.isprintable() else " " for each in comment)
    return f"{setting:<{WIDTH - 1}} # {on_one_line}" if comment else setting


def _top(guess: Guess) -> list[str]:
    return [
        "# The settings of a campaign. `armful check` says what is wrong with them after a change.",
        "# Lines that begin with # are not used: they show what else can be set.",
        "",
        line(f"name = {toml_string(guess.name)}", "do not change it after the first round"),
        line('store = "sqlite:///ledger.sqlite"', "in this folder; or postgresql://user@host/database"),
        line(f"source = {toml_string(guess.source)}", f"looked at: {guess.n_rows:,} rows; `armful plan` uses it"),
        line(f"id = {toml_string(guess.id)}", "the column that tells customers apart"),
        line(f"delimiter = {toml_string(guess.delimiter)}", "between the columns of CSV files"),
        line("seed = 0", "the same seed and the same files give the same rounds"),
    ]


def _choose(guess: Guess) -> list[str]:
    return [
        "[choose]",
        line(f"k = {guess.k}", "contacts in a round"),
        line("rest = 0", "for so many rounds after a contact nobody is contacted again"),
        line('# exclude = ["opted-out.csv"]', "files in this folder with the ids of those never to choose"),
        line('# require = ["vip.csv"]', "and of those always to choose"),
        "",
        *quota_lines(guess.quota),
        "",
        "# [choose.budget]",
        line('# column = "cost"', "a column of the customers file; list it in leave_out if it is no feature"),
        line("# limit = 10000.0", "what the contacts of a round may cost in all"),
    ]


def quota_lines(column: ColumnProfile | None) -> list[str]:
    """Return a quota in comments, on a column that has been found for it."""
    name, groups = ("region", ["north", "south"]) if column is None else (column.name, list(column.counts))
    at_most = f"{{ {toml_key(groups[0])} = 100, {toml_key(groups[1])} = 0.5 }}"
    return [
        "# [[choose.quotas]]",
        line(f"# column = {toml_string(name)}", "contacts are divided among its groups"),
        line("# at_least = 0.05", "of every group: a share of k, or a whole number of contacts"),
        line(f"# at_most = {at_most}", "or group by group"),
        line("# nested = false", "true in a further quota: its groups lie within those of the quota before"),
    ]


def policy_lines(reward: RewardGuess) -> list[str]:
    """Return the table of the policy."""
    return [
        "[policy]",
        line('kind = "CappedC2UCB"', "or another policy of armful, with its options by name"),
        line(f"cap = {reward.cap}", reward.why),
        line('# radius = "pointwise"', "how much is explored"),
        line('# noise = "auto"', "estimated from the outcomes"),
        line("# ridge = 1.0"),
    ]


def _features(guess: Guess) -> list[str]:
    used = [column for column in guess.columns if column.settings is not None]
    pair = [column.name for column in used][:2] if len(used) > 1 else ["job", "age"]
    return [
        "[features]",
        line("intercept = true", "one constant feature"),
        line(f"# interactions = [{toml_list(pair)}]", "pairs of columns whose features are multiplied"),
        *leave_out_lines([column for column in guess.columns if column.settings is None]),
        "",
        *KINDS,
        "[features.columns]",
        *(line(column_line(column), column.why) for column in used),
    ]


def leave_out_lines(columns: Sequence[ColumnGuess]) -> list[str]:
    """Return the columns that are left out, with the reasons."""
    if not columns:
        return [line("leave_out = []", "columns of the file that are no features")]
    return ["leave_out = [", *(line(f"    {toml_string(column.name)},", column.why) for column in columns), "]"]


def column_line(column: ColumnGuess) -> str:
    """Return the line of a column that is used."""
    assert column.settings is not None
    log = ", log = true" if column.settings.log else ""
    return f'{toml_key(column.name)} = {{ kind = "{column.settings.kind}"{log} }}'


def _outcomes(guess: Guess) -> list[str]:
    return [
        "[outcomes]",
        line(f"reward = {toml_string(guess.reward.name)}", "the column of the outcomes file that counts, a number"),
        line(f"# id = {toml_string(guess.id)}", "the column with the id, if its name differs there"),
        line('# round = "week"', "a column with the number of the round; without it, the last round that fits"),
        line('# time = "date"', "a column with the time of the outcome"),
        line('# timezone = "UTC"', "of times that do not name theirs, like Europe/Lisbon"),
        line('window = "14 days"', "how long after a round outcomes count; days, weeks, hours, minutes"),
        line("missing = 0.0", 'what no outcome means when the window has closed; or "unknown"'),
        line('learn = "when the window closes"', 'or "at once", if the delay does not depend on the outcome'),
        line('repeats = "refuse"', "several rewards of one contact in a file: refuse, last, sum or max"),
    ]


_REST = [
    "[holdout]",
    line("share = 0.05", "of the people: their contacts are not chosen by the model, to compare with"),
    line('rule = "random"', 'or "score": those with the largest values of a column are contacted'),
    line('# score = "..."', 'that column, for rule = "score"'),
    line("no_contact = 0.0", "share of people who are never contacted, to see what contacts do at all"),
    "",
    "[learning]",
    line("discount = 1.0", "0.9: a round counts a tenth less with every later round, for what changes"),
    line("shock = 0.0", "how much more the outcomes of a round vary together; `armful report` says it"),
]
