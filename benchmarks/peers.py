"""The same job by armful and by other bandit libraries, side by side: ratios from one interleaved run.

Two jobs. `one decision`: score 1,000 arms with 50 features, choose 10, learn their rewards; every library makes 100
decisions, then it is the next one's turn. `repeated rounds`: the same with the same 1,000,000 arms every round,
choosing 1 %, a round each in turn; on one core, and on all. BLAS has one thread. The reward is linear in the features,
plus noise, and every library is used in the way that comes closest to armful's: one linear model shared by all arms,
each scored by estimate + 1 width. What it really computes is printed beside its number, and how many of its choices
armful shares.

Every library is first tried on 10,000 arms: it learns the same rewards as all others and chooses once. From there its
time for a million is extrapolated, and if that is above the limit, it plays the second job on 10,000 arms only and
its number is marked `~`. Quartiles of the ratios are printed first: how much they moved during the run.

    python benchmarks/peers.py            print the table
    python benchmarks/peers.py --write    also put it into docs/benchmarks.md, with its figure
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import importlib.metadata
import math
import statistics
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import armful

D, ALPHA, RIDGE, SEED = 50, 1.0, 1.0, 1
SMALL, TRIAL, LARGE = 1_000, 10_000, 1_000_000
K_SMALL, PER_CENT = 10, 100
DECISIONS, LONG = 100, 0.2
"""How many decisions a library makes in its turn, or fewer if they take longer than this many seconds."""
ONE, ROUNDS, ON_ALL = "one decision", "repeated rounds", "repeated rounds on all cores"
DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
CORES = os.sched_getaffinity(0)
NOT_INSTALLED = "not installed: `pip install '.[bench]'`"


# -- the environment -----------------------------------------------------------------------------------


class Environment:
    """Arms drawn once, and their rewards."""

    def __init__(self, n_arms: int, k: int) -> None:
        rng = np.random.default_rng(SEED)
        self.theta = rng.standard_normal(D) / math.sqrt(D)
        self.X = rng.standard_normal((n_arms, D))
        self.X /= math.sqrt(D)
        self.k = k

    def pay(self, chosen: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.X[chosen] @ self.theta + 0.1 * rng.standard_normal(len(chosen))


# -- the contenders ------------------------------------------------------------------------------------


class Contender:
    """One library in one environment; a subclass has `learn` and `scores`, or `choose` where it chooses by itself."""

    name: ClassVar[str]
    package: ClassVar[str]
    computes: ClassVar[str]
    growth: ClassVar[int] = 1
    """The time of a round grows with the number of arms to this power, when a fixed share of them is chosen."""
    same_scores: ClassVar[bool] = False
    """Whether its scores should equal armful's."""

    def __init__(self, X: np.ndarray, k: int) -> None:
        self.X, self.k = X, k

    def scores(self) -> np.ndarray:
        raise NotImplementedError

    def choose(self) -> np.ndarray:
        scores = self.scores()
        return np.argpartition(scores, len(scores) - self.k)[len(scores) - self.k :]

    def learn(self, chosen: np.ndarray, rewards: np.ndarray) -> None:
        """Learn the rewards of its last choice."""
        raise NotImplementedError

    def begin(self, chosen: np.ndarray, rewards: np.ndarray) -> None:
        """Learn rewards of arms that it did not choose."""
        self.learn(chosen, rewards)


class ArmfulPlain(Contender):
    name, package = "armful, plain array", "armful"
    computes = "one model, estimate + width of every arm in float64, from scratch every round"
    same_scores = True

    def __init__(self, X: np.ndarray, k: int) -> None:
        super().__init__(X, k)
        self.policy = armful.C2UCB(n_features=D, radius=ALPHA, ridge=RIDGE, seed=SEED)
        self.constraint = armful.TopK(k)
        self.arms: np.ndarray | armful.Table = X

    def scores(self) -> np.ndarray:
        return self.policy.scores(self.X, k=self.k)

    def choose(self) -> np.ndarray:
        self.choice = self.policy.choose(self.arms, self.constraint)
        return self.choice.indices

    def learn(self, chosen: np.ndarray, rewards: np.ndarray) -> None:
        self.policy.learn(self.choice.features, rewards)

    def begin(self, chosen: np.ndarray, rewards: np.ndarray) -> None:
        self.policy.learn(self.X[chosen], rewards)


class ArmfulTable(ArmfulPlain):
    name = "armful, Table"
    computes = "the same; remembers widths between rounds and computes only those that can matter"
    same_scores = False

    def __init__(self, X: np.ndarray, k: int) -> None:
        super().__init__(X, k)
        self.arms = armful.Table.wrap(X)


class LinUCB(Contender):
    name, package = "contextualbandits, LinUCB", "contextualbandits"
    computes = (
        "the same scores in float32, by one model for each of its actions, of which it takes no fewer than two: each "
        "learns from half of the chosen arms, and all arms are scored by both"
    )

    def __init__(self, X: np.ndarray, k: int) -> None:
        super().__init__(X, k)
        from contextualbandits.online import LinUCB

        self.policy = LinUCB(nchoices=2, alpha=ALPHA, lambda_=RIDGE, fit_intercept=False, random_state=SEED)

    def scores(self) -> np.ndarray:
        return self.policy.decision_function(self.X)[:, 0]

    def learn(self, chosen: np.ndarray, rewards: np.ndarray) -> None:
        self.policy.partial_fit(self.X[chosen], self.actions(len(chosen)), rewards)

    def actions(self, k: int) -> np.ndarray:
        return np.arange(k) % 2


class HalfLinUCB(LinUCB):
    name = "contextualbandits, half its LinUCB"
    computes = (
        "the same scores in float32: only one of its models learns, so that the other, which is scored too, costs "
        "little; features turned into float32 beforehand"
    )
    same_scores = True

    def __init__(self, X: np.ndarray, k: int) -> None:
        super().__init__(X.astype(np.float32), k)

    def actions(self, k: int) -> np.ndarray:
        return np.zeros(k, dtype=int)


class UCBRegression(Contender):
    name, package = "contextualbandits, regression only", "contextualbandits"
    computes = (
        "the same scores in float32, one model, by the regression inside its LinUCB used by itself; features turned "
        "into float32 beforehand"
    )
    same_scores = True

    def __init__(self, X: np.ndarray, k: int) -> None:
        super().__init__(X.astype(np.float32), k)
        from contextualbandits.linreg import LinearRegression

        self.model = LinearRegression(lambda_=RIDGE, fit_intercept=False)

    def scores(self) -> np.ndarray:
        return self.model.predict_ucb(self.X, ALPHA)

    def learn(self, chosen: np.ndarray, rewards: np.ndarray) -> None:
        self.model.partial_fit(self.X[chosen], rewards)


class MABWiser(Contender):
    name, package = "MABWiser, LinUCB", "mabwiser"
    computes = "the same scores in float64, one model (its only arm; ours are its contexts), a dictionary for each"
    same_scores = True

    def __init__(self, X: np.ndarray, k: int) -> None:
        super().__init__(X, k)
        from mabwiser.mab import MAB, LearningPolicy

        self.mab = MAB([0], LearningPolicy.LinUCB(alpha=ALPHA, l2_lambda=RIDGE), seed=SEED)

    def scores(self) -> np.ndarray:
        expectations = self.mab.predict_expectations(self.X)
        return np.fromiter((of_arm[0] for of_arm in expectations), dtype=float, count=len(self.X))

    def learn(self, chosen: np.ndarray, rewards: np.ndarray) -> None:
        self.mab.partial_fit(np.zeros(len(chosen), dtype=int), rewards, self.X[chosen])


class VowpalWabbit(Contender):
    name, package = "Vowpal Wabbit, parsed arms", "vowpalwabbit"
    computes = (
        "one model by stochastic gradient in float32, estimates only, no width; the k largest of its softmax "
        "probabilities; arms written as text and parsed beforehand"
    )
    options = "--cb_explore_adf --softmax --lambda 5 --cb_type mtr --noconstant --quiet"

    def __init__(self, X: np.ndarray, k: int) -> None:
        super().__init__(X, k)
        from vowpalwabbit import Workspace

        self.vw = Workspace(self.options)
        self.lines = self.write()
        self.arms = self.vw.parse(self.example())

    def example(self) -> list[str]:
        return self.lines

    def write(self) -> list[str]:
        line = "|x " + " ".join(f"{i}:%.9g" for i in range(D))
        return [line % tuple(x) for x in self.X.tolist()]

    def scores(self) -> np.ndarray:
        return np.array(self.vw.predict(self.arms))

    def learn(self, chosen: np.ndarray, rewards: np.ndarray) -> None:
        for arm, reward in zip(chosen.tolist(), rewards.tolist(), strict=True):
            self.vw.learn([f"0:{-reward}:1 {self.lines[arm]}"])  # alone, with probability 1: a plain regression step


class VowpalWabbitText(VowpalWabbit):
    name = "Vowpal Wabbit, arms as text"
    computes = "the same, its text written from the array and parsed every round, as arms that change must be"

    def scores(self) -> np.ndarray:
        self.lines = self.write()
        return np.array(self.vw.predict(self.lines))


class VowpalWabbitSlots(VowpalWabbit):
    name = "Vowpal Wabbit, CCB"
    computes = (
        "one slot after the other, each drawn from a softmax over the arms left, k slots; a model shared by the slots "
        "plus one for each; no width; arms parsed beforehand, growing as arms x slots"
    )
    options = "--ccb_explore_adf --softmax --lambda 5 --noconstant --quiet"
    growth = 2

    def example(self) -> list[str]:
        return ["ccb shared |s", *(f"ccb action {line}" for line in self.lines), *["ccb slot |"] * self.k]

    def choose(self) -> np.ndarray:
        return np.array([arms[0][0] for arms in self.vw.predict(self.arms)])  # the drawn arm stands first

    def learn(self, chosen: np.ndarray, rewards: np.ndarray) -> None:
        for begin in range(0, len(chosen), self.k):
            part = slice(begin, begin + self.k)
            actions = [f"ccb action {self.lines[arm]}" for arm in chosen[part]]
            slots = [f"ccb slot {i}:{-reward}:1 |" for i, reward in enumerate(rewards[part].tolist())]
            self.vw.learn(["ccb shared |s", *actions, *slots])


class BayesianBandits(Contender):
    name, package = "bayesianbandits, 1,000 draws", "bayesianbandits"
    computes = (
        "one model; draws from the posterior of every arm and takes their 84 % quantile, which is estimate + width "
        "up to chance; its default number of draws"
    )
    draws = 1_000

    def __init__(self, X: np.ndarray, k: int) -> None:
        super().__init__(X, k)
        import bayesianbandits as bb
        from bayesianbandits.featurizers import FunctionArmFeaturizer

        self.agent = bb.LipschitzContextualAgent(
            [bb.Arm(arm, learner=None) for arm in range(len(X))],
            bb.UpperConfidenceBound(alpha=statistics.NormalDist().cdf(ALPHA), samples=self.draws),
            FunctionArmFeaturizer(lambda _context, _arms: X.T[None]),
            bb.NormalRegressor(alpha=RIDGE, beta=1.0),
            random_seed=SEED,
        )

    def choose(self) -> np.ndarray:
        (chosen,) = self.agent.pull(np.zeros((1, 1)), top_k=self.k)
        return np.array(chosen)

    def learn(self, chosen: np.ndarray, rewards: np.ndarray) -> None:
        self.agent.learner.partial_fit(self.X[chosen], rewards)


class BayesianBanditsQuick(BayesianBandits):
    name = "bayesianbandits, 50 draws"
    computes = "the same with 50 draws"
    draws = 50


CONTENDERS: list[type[Contender]] = [
    ArmfulPlain,
    ArmfulTable,
    LinUCB,
    HalfLinUCB,
    UCBRegression,
    MABWiser,
    VowpalWabbit,
    VowpalWabbitText,
    VowpalWabbitSlots,
    BayesianBandits,
    BayesianBanditsQuick,
]


# -- measuring -----------------------------------------------------------------------------------------


@dataclass
class Row:
    """The measurements of one contender."""

    kind: type[Contender]
    trouble: str = ""
    shared: float = math.nan
    """The share of its first choice that armful chooses too, after learning the same rewards."""
    difference: float = math.nan
    """The largest difference of a score from armful's, relative to the largest score."""
    full: bool = False
    """Whether it runs the second job on all arms, and not on fewer."""
    times: dict[str, list[float]] = field(default_factory=dict)


def first_lesson(environment: Environment) -> tuple[np.ndarray, np.ndarray]:
    """Return arms and rewards that every contender learns first."""
    rng = np.random.default_rng(SEED + 1)
    chosen = rng.choice(len(environment.X), size=500, replace=False)
    return chosen, environment.pay(chosen, rng)


def begin(kind: type[Contender], environment: Environment) -> Contender:
    contender = kind(environment.X, environment.k)
    contender.begin(*first_lesson(environment))
    return contender


@contextmanager
def guarded(row: Row) -> Iterator[None]:
    """Report a library that fails, without stopping the others; armful must not fail."""
    if row.kind.package == "armful":
        yield
        return
    try:
        yield
    except ImportError as error:
        row.trouble = NOT_INSTALLED if error.name == row.kind.package else f"import fails: {error}"
    except Exception as error:
        row.trouble = f"fails: {type(error).__name__}: {error}".splitlines()[0]


def attempt(row: Row, environment: Environment, limit: float) -> None:
    """Compare its first choice with armful's, and estimate whether it can run with all arms."""
    reference = begin(ArmfulPlain, environment)
    begin(row.kind, Environment(SMALL, K_SMALL)).choose()  # importing is not counted
    started = time.perf_counter()
    contender = begin(row.kind, environment)
    chosen = contender.choose()
    expected = (time.perf_counter() - started) * (LARGE / len(environment.X)) ** row.kind.growth
    row.full = expected <= limit
    row.shared = len(np.intersect1d(chosen, reference.choose())) / environment.k
    if row.kind.same_scores:
        wanted = reference.scores()
        row.difference = float(np.abs(contender.scores() - wanted).max() / np.abs(wanted).max())


@dataclass
class Player:
    """A contender in its environment, with the noise of its rewards."""

    row: Row
    environment: Environment
    contender: Contender
    rng: np.random.Generator

    def play(self, times: int) -> float:
        """Return the seconds of one round, as the mean of several; of fewer if they take long."""
        spent = [self.play_once()]
        while len(spent) < times and sum(spent) < LONG:
            spent.append(self.play_once())
        return sum(spent) / len(spent)

    def play_once(self) -> float:
        """Return the seconds of one round: choosing and learning, without drawing the rewards."""
        started = time.perf_counter()
        chosen = self.contender.choose()
        chose = time.perf_counter()
        rewards = self.environment.pay(chosen, self.rng)
        paid = time.perf_counter()
        self.contender.learn(chosen, rewards)
        return time.perf_counter() - paid + chose - started


def players_of(rows: Sequence[Row], environments: dict[bool, Environment]) -> list[Player]:
    """Return a player for each row; `environments` has all arms under True and fewer arms under False."""
    players: list[Player] = []
    for row in rows:
        with guarded(row):
            environment = environments[row.full]
            players.append(Player(row, environment, begin(row.kind, environment), np.random.default_rng(SEED + 2)))
    return players


def interleave(players: Sequence[Player], job: str, n_arms: int, turns: int, *, untimed: int, times: int = 1) -> None:
    """Let all contenders take turns of several rounds."""
    for turn in range(untimed + turns):
        for player in players:
            row = player.row
            if row.trouble:
                continue
            with guarded(row):
                factor = (n_arms / len(player.environment.X)) ** row.kind.growth
                spent = player.play(times) * factor
                if turn >= untimed:
                    row.times.setdefault(job, []).append(spent)


def shared_by_table(players: Sequence[Player]) -> float:
    """Return the share of the Table's choice that the same policy makes from the plain array too, after all rounds."""
    (contender,) = (player.contender for player in players if isinstance(player.contender, ArmfulTable))
    plain = contender.policy.choose(contender.X, contender.constraint).indices
    return len(np.intersect1d(contender.choose(), plain)) / contender.k


def ratios(row: Row, reference: Row, job: str) -> list[float]:
    return [a / b for a, b in zip(row.times[job], reference.times[job], strict=True)]


def ratio(row: Row, reference: Row, job: str) -> float:
    return statistics.median(ratios(row, reference, job))


# -- reporting -----------------------------------------------------------------------------------------


@dataclass
class Report:
    """The rows of the table; `plain` and `table` are armful's own."""

    rows: list[Row]
    runs: dict[str, int]
    limit: float

    def __post_init__(self) -> None:
        of = {row.kind: row for row in self.rows}
        self.plain = of[ArmfulPlain]
        self.table = of[ArmfulTable]

    def decision(self, row: Row) -> float:
        return ratio(row, self.plain, ONE)

    def rounds(self, row: Row) -> float:
        return ratio(row, self.table, ROUNDS)

    def rounds_on_all(self, row: Row) -> float:
        return ratio(row, self.table, ON_ALL)

    def markdown(self) -> str:
        lines = [
            "| library | what it computes | same set | one decision | repeated rounds | on all cores |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for row in self.rows:
            about = f"| {titled(row)} | {row.kind.computes} |"
            if row.trouble:
                lines.append(f"{about} {row.trouble} | | | |")
                continue
            mark = "" if row.full else "~ "
            one = "" if row.kind is ArmfulTable else short(self.decision(row))
            many, on_all = short(self.rounds(row)), short(self.rounds_on_all(row))
            lines.append(f"{about} {agreement(row)} | {one} | {mark}{many} | {mark}{on_all} |")
        return "\n".join(lines)

    def section(self) -> str:
        decision = 1e3 * statistics.median(self.plain.times[ONE])
        rounds, on_all = (statistics.median(self.table.times[job]) for job in (ROUNDS, ON_ALL))
        return "\n\n".join(
            [
                f"{BEGIN}\n## Beside other libraries (`benchmarks/peers.py`)",
                paragraph(
                    "The time of other libraries divided by the time of armful: above 1 armful is faster, below 1 the "
                    "other is. All take turns in one run on one core, with BLAS at one thread."
                ),
                paragraph(
                    f"*One decision*: score {SMALL:,} arms with {D} features, choose {K_SMALL}, learn their rewards. "
                    f"Median of {self.runs[ONE]} turns of {DECISIONS} decisions; armful took {decision:.2f} ms."
                ),
                paragraph(
                    f"*Repeated rounds*: the same {LARGE:,} arms in every round, 1 % of them chosen. The first two "
                    f"rounds are not timed. Median of {self.runs[ROUNDS]} rounds, divided by armful with a `Table`, "
                    f"which took {rounds:.3f} s. *On all cores* ({len(CORES)}), each library uses threads as it does "
                    f"by default; the `Table` took {on_all:.3f} s. A `~` is extrapolated from {TRIAL:,} arms, in "
                    "proportion to the arms (CCB: to arms times slots), because setting up and choosing once from all "
                    f"of them would take longer than {self.limit:.0f} s."
                ),
                paragraph(
                    f"*Same set*: both learn the same rewards and choose {TRIAL // PER_CENT} from {TRIAL:,} arms; this "
                    "is the share of the library's choice that armful chooses too. For the `Table` it is the choice "
                    "from all arms after all rounds. Where scores should be equal, the largest difference is given."
                ),
                paragraph(
                    "The libraries do not all do the same thing. Each is used in the way that comes closest to one "
                    "linear model for all arms with an estimate and a width, ridge 1 and radius 1. If it does not "
                    "choose a set by itself, the k largest of its scores are taken. contextualbandits has three "
                    "rows: its LinUCB as it is, and two ways to make it do less. Arms are put into the form that is "
                    "best for Vowpal Wabbit before the time starts, except in the row that says so."
                ),
                self.markdown(),
                "![The time of each library divided by that of armful, on a logarithmic axis: one decision and "
                f"repeated rounds](images/peers.png)\n{END}",
            ]
        )

    def quartiles(self) -> str:
        """Return the quartiles of the ratios during the run."""
        lines = []
        for job, reference in ((ONE, self.plain), (ROUNDS, self.table), (ON_ALL, self.table)):
            for row in self.rows:
                if row.trouble or job not in row.times:
                    continue
                low, middle, high = statistics.quantiles(ratios(row, reference, job), n=4)
                lines.append(f"{job:28} {row.kind.name:36} {short(middle):>8}  ({short(low)} to {short(high)})")
        return "\n".join(lines)


def paragraph(text: str) -> str:
    return textwrap.fill(text, width=148, break_long_words=False, break_on_hyphens=False)


def titled(row: Row) -> str:
    if row.kind.package == "armful":
        return f"**{row.kind.name}**"
    try:
        return f"{row.kind.name} ({importlib.metadata.version(row.kind.package)})"
    except importlib.metadata.PackageNotFoundError:
        return row.kind.name


def agreement(row: Row) -> str:
    if row.kind is ArmfulPlain:
        return "itself"
    scores = f", scores within {row.difference:.0e}" if row.kind.same_scores else ""
    return f"{row.shared:.0%}{scores}".replace("%", " %").replace("e-0", "e-")


def short(value: float) -> str:
    """Return a number with two significant digits."""
    if value < 10:
        return f"{value:.1f}" if value >= 1 else f"{value:.2f}"
    return f"{round(value, 1 - math.floor(math.log10(value))):,.0f}"


def draw(report: Report, path: Path) -> None:
    """Draw one dot for each library and job, on a logarithmic axis; hollow where extrapolated."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = [row for row in report.rows if not row.trouble][::-1]
    panels: list[tuple[str, Callable[[Row], float]]] = [
        (f"One decision\n{SMALL:,} arms, choose {K_SMALL}", report.decision),
        (f"Repeated rounds\n{LARGE:,} arms, choose 1 %", report.rounds),
    ]
    figure, axes = plt.subplots(1, 2, figsize=(10, 0.42 * len(rows) + 1.6), sharey=True, layout="constrained")
    for axis, (title, value) in zip(axes, panels, strict=True):
        axis.set_xscale("log")
        axis.axvline(1, color="0.6", linewidth=1, zorder=0)
        for height, row in enumerate(rows):
            if title.startswith("One") and row.kind is ArmfulTable:
                continue
            estimated = title.startswith("Repeated") and not row.full
            draw_dot(axis, value(row), height, ours=row.kind.package == "armful", estimated=estimated)
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_xlabel("time, armful = 1" + ("; hollow: extrapolated" if value == report.rounds else ""))
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(left=False)
        axis.margins(x=0.25, y=0.06)
    axes[0].set_yticks(range(len(rows)), [row.kind.name for row in rows])
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_dot(axis: Any, value: float, height: int, *, ours: bool, estimated: bool) -> None:
    colour = "#D55E00" if ours else "#0072B2"  # vermilion and blue, which everybody can tell apart
    axis.hlines(height, min(1, value), max(1, value), color=colour, alpha=0.35, linewidth=2)
    axis.plot(value, height, "D" if ours else "o", color=colour, markerfacecolor="white" if estimated else colour)
    left = value < 1
    axis.annotate(
        ("~ " if estimated else "") + short(value),
        (value, height),
        xytext=(-8 if left else 8, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=9,
    )


def write(report: Report) -> None:
    """Replace the section between the two marks, and the figure."""
    page = DOCS / "benchmarks.md"
    text = page.read_text()
    section = report.section()
    if BEGIN in text and END in text:
        text = text[: text.index(BEGIN)] + section + text[text.index(END) + len(END) :]
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    page.write_text(text)
    draw(report, DOCS / "images" / "peers.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put table and figure into docs/")
    parser.add_argument("--runs", type=int, default=15, help="timed turns of the first job")
    parser.add_argument("--large-runs", type=int, default=7, help="timed rounds of the second")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds that a library may take for a million arms")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.sched_setaffinity(0, {max(CORES)})
    rows = [Row(kind) for kind in CONTENDERS]

    small, trial = Environment(SMALL, K_SMALL), Environment(TRIAL, TRIAL // PER_CENT)
    for row in rows:
        with guarded(row):
            attempt(row, trial, options.limit)
        print(f"{row.kind.name:36} {row.trouble or agreement(row)}", flush=True)
    able = [row for row in rows if not row.trouble]
    deciding = players_of([row for row in able if row.kind is not ArmfulTable], {True: small, False: small})
    interleave(deciding, ONE, SMALL, options.runs, untimed=1, times=DECISIONS)
    players = players_of(able, {True: Environment(LARGE, LARGE // PER_CENT), False: trial})
    interleave(players, ROUNDS, LARGE, options.large_runs, untimed=2)
    os.sched_setaffinity(0, CORES)
    interleave(players, ON_ALL, LARGE, options.large_runs, untimed=1)

    for row in rows:
        if row.kind is ArmfulTable:
            row.shared = shared_by_table(players)
    report = Report(rows, {ONE: options.runs, ROUNDS: options.large_runs}, options.limit)
    print(report.quartiles(), report.section(), sep="\n\n")
    if options.write:
        write(report)


if __name__ == "__main__":
    main()
