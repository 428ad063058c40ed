"""The text of a new `campaign.toml` for a service: what was guessed, and every other option in a comment."""

from collections.abc import Sequence
from dataclasses import dataclass

from armful.campaigns.init._guessing import ColumnGuess
from armful.campaigns.init._profiles import ColumnProfile
from armful.campaigns.init._roles import RewardGuess
from armful.campaigns.init._template import KINDS, column_line, leave_out_lines, line, policy_lines, quota_lines
from armful.campaigns.settings._toml_text import toml_list, toml_string


@dataclass(frozen=True, eq=False, kw_only=True)
class ServiceGuess:
    """All that is guessed about a service.

    columns: all columns of the file but the id. ready: how many ready features there are; 0 if there are columns.
    """

    name: str
    source: str | None
    delimiter: str
    n_rows: int
    id: str
    k: int
    reward: RewardGuess
    columns: Sequence[ColumnGuess] = ()
    quota: ColumnProfile | None = None
    context: Sequence[str] = ()
    ready: int = 0


def service_toml(guess: ServiceGuess) -> str:
    """Return the text of `campaign.toml`, which is valid."""
    features = _ready(guess) if guess.ready else _features(guess)
    parts = [
        _top(guess),
        _choose(guess),
        policy_lines(guess.reward),
        features,
        _outcomes(guess),
        _REST,
        _service(guess),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _top(guess: ServiceGuess) -> list[str]:
    if guess.source is None:
        source = [line('# source = "items.csv"', "not needed: requests bring ready features")]
    else:
        source = [
            line(
                f"source = {toml_string(guess.source)}", f"{guess.n_rows:,} rows; the first `armful serve` fits on it"
            ),
            line(f"delimiter = {toml_string(guess.delimiter)}", "between the columns of CSV files"),
        ]
    return [
        "# The settings of a service. `armful check` says what is wrong with them after a change.",
        "# Lines that begin with # are not used: they show what else can be set.",
        "",
        line(f"name = {toml_string(guess.name)}", "do not change it after the first decision"),
        line('store = "sqlite:///ledger.sqlite"', "in this folder; or postgresql://user@host/database"),
        *source,
        line(f"id = {toml_string(guess.id)}", "the column that tells items apart; in requests it is called id"),
        line("seed = 0", "mixed with new random bits at each start: each process draws numbers of its own"),
    ]


def _choose(guess: ServiceGuess) -> list[str]:
    return [
        "[choose]",
        line(f"k = {guess.k}", "items in a slate, unless the request says otherwise"),
        line('# exclude = ["recalled.csv"]', "files in this folder with the ids of items never to choose"),
        line('# require = ["pinned.csv"]', "and of items to choose wherever they are candidates"),
        "",
        *(text.replace("contacts", "items").replace("= 100,", "= 2,") for text in quota_lines(guess.quota)),
        "",
        "# [choose.budget]",
        line('# column = "cost"', "a column of the candidates; list it in leave_out if it is no feature"),
        line("# limit = 10.0", "what the items of a slate may cost in all"),
    ]


def _features(guess: ServiceGuess) -> list[str]:
    used = [column for column in guess.columns if column.settings is not None]
    arm = [column.name for column in used if column.name not in guess.context]
    pair = (
        [*arm[:1], *guess.context[:1]] if arm and guess.context else (arm[:2] if len(arm) > 1 else ["brand", "price"])
    )
    return [
        "[features]",
        line("intercept = true", "one constant feature"),
        line(f"# interactions = [{toml_list(pair)}]", "only these pairs instead of every column with the context"),
        "# Instead of columns and all else here, ready = 20: so many numbers that requests bring, used as they are.",
        *leave_out_lines([column for column in guess.columns if column.settings is None]),
        "",
        *KINDS,
        "[features.columns]",
        *(line(column_line(column), column.why) for column in used),
    ]


def _ready(guess: ServiceGuess) -> list[str]:
    return [
        "[features]",
        line(f"ready = {guess.ready}", 'numbers that requests bring; or their names: ready = ["price", "age", ...]'),
        line("leave_out = []", "further columns that requests may bring, for quotas or a budget"),
    ]


def _outcomes(guess: ServiceGuess) -> list[str]:
    return [
        "[outcomes]",
        line(f"reward = {toml_string(guess.reward.name)}", "what the reward of an item is called"),
        line('window = "30 minutes"', "how long to wait for rewards: seconds, minutes, hours, days; later ones count"),
        line("missing = 0.0", 'what no reward means when the window has closed; or "unknown"'),
        line('learn = "when the window closes"', 'or "at once", if the delay does not depend on the reward'),
    ]


_REST = [
    "[holdout]",
    line("share = 0.05", "of the units: they get random slates, to compare with; 0.0 for none"),
    "",
    "[learning]",
    line("discount = 1.0", "0.999: a decision counts a thousandth less with every later one"),
    line("shock = 0.0", "how much more the rewards of one decision vary together"),
]


def _service(guess: ServiceGuess) -> list[str]:
    context = "columns that come once with a request, and are crossed with those of the items"
    weights = ", ".join(f"{(1 + place) ** -0.5:.2f}" for place in range(guess.k))
    return [
        "[service]",
        line('update_every = "30 seconds"', "how often rewards are folded into a new model"),
        line("explore = 0.02", "the share of each slate that is drawn at random; it keeps probabilities above 0"),
        *([] if guess.ready else [line(f"context = {toml_list(guess.context)}", context)]),
        line(f"# positions = [{weights}]", 'how likely each place is looked at, or "estimate" from explore'),
        line("draws = 100", "of a randomised policy, for the probability that an item is chosen"),
        line('largest_body = "8 MiB"', "of a request"),
        line("most_arms = 10_000", "candidates in a request, and registered arms"),
        line("rate = 0.0", "requests per second and key; 0.0 for no limit"),
        line('timeout = "10 seconds"', "how long a request may take to arrive, and a set to be found"),
    ]
