"""The report of the reproduction: figures, tables and one self-contained page."""

import math
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np

import armful
from armful import theory
from armful.environments import PaperInstance
from armful.experiments import _figures as figures
from armful.experiments import _page as page
from armful.experiments._reproduction import CAMPAIGN_SIZE, KINDS, ROUNDS_PER_K, B, Reproduction, paper_policies
from armful.experiments._standing import REGRET, Standing
from armful.experiments._verdict import OURS, PAPERS_RULE, rule_differences, too_few_runs, verdict
from armful.experiments.results import tidy, write_table
from armful.files._atomic_file import write_bytes

DELTA = 0.1

CAPTIONS = {
    "grouped": "(a) Grouped type: the allowed sets are two groups of k arms, in one of which a single arm looks ever "
    "more promising and pays nothing.",
    "uniform": "(b) Uniform type: any k arms are allowed.",
    "campaign": f"(c) Beyond the paper, its motivating case of k much larger than T: {CAMPAIGN_SIZE}. The paper's rule "
    "scores all uncertain arms alike, and with large k nearly all arms are uncertain for long.",
    "cap": "(d) Beyond the paper: regret when B, the largest mean reward, is misjudged. C2UCB uses no B; its band is "
    "one standard error.",
}

CHOICES = (
    "theta* in the noise half is ±1/sqrt(kT/2) in each of its four dimensions: the scale of the lower bound for the "
    "rounds of that half.",
    "|I| = k in the noise half for both types; only the second half is grouped.",
    "f(t) = t mod k counts t from 1 over all rounds, so that the second half starts at t = T/2 + 1.",
    f"B = {B}, the largest mean reward of the second half, for both capped rules.",
    "k = 2, 4, 8, 16 (and 32 with `--full`) with T = 20 k.",
    "Regret is the pseudo-regret, in true means; error bars are one standard error of the mean over the runs.",
    "In one run all policies meet the same noise, arm by arm and round by round.",
    "Ties are broken at random.",
    "By the symmetry of the cube the 16 theta* are alike in distribution, so that the worst of them is the worst "
    "by chance; with `--full` it is chosen, for each policy, at the largest kT on seeds that are not reported.",
    "Figure (d) takes all signs of theta* positive, with `--full` too.",
    "Randomised algorithms (epsilon-greedy, Thompson sampling) have random numbers of their own in each run.",
)


RUNS_NEEDED = "How many runs might be enough supposes that the difference stays."


def write(reproduction: Reproduction, out: Path, seconds: float) -> Path:
    """Write everything into the folder `out`; return the path of the page."""
    styles = figures.style_of(paper_policies())
    drawn = {
        "grouped": figures.regret_by_size(reproduction.of("grouped"), "(a) grouped type"),
        "uniform": figures.regret_by_size(reproduction.of("uniform"), "(b) uniform type"),
        "campaign": figures.regret_by_round(reproduction.campaign, f"(c) {CAMPAIGN_SIZE}"),
        "cap": cap_figure(reproduction),
    }
    for name, figure in drawn.items():
        figure.save(out / f"figure-{name}", styles)
    write_table(tidy(reproduction.paper, "type"), out / "regret")
    write_table(tidy(reproduction.campaign, "type"), out / "campaign")
    cap_rows = [{"cap_over_B": factor, **row} for factor, result in reproduction.cap for row in tidy([result], "type")]
    write_table(cap_rows, out / "cap")
    path = out / "report.html"
    title = "Takemura et al. (2021), reproduced by armful"
    write_bytes(path, page.page(title, _parts(reproduction, out, seconds)).encode())
    return path


def cap_figure(reproduction: Reproduction) -> figures.Figure:
    """Return the figure of regret against the factor by which B is misjudged."""
    lines = []
    for name in ("CappedC2UCB-paper", "CappedC2UCB"):
        points = [(f, r.mean, r.stderr) for f, r in reproduction.cap if r.policy == name and f is not None]
        x, y, spread = zip(*points, strict=True)
        lines.append(figures.Line(name, x, y, spread))
    (reference,) = (r for f, r in reproduction.cap if f is None)
    lines.append(figures.Line("C2UCB", x, [reference.mean] * len(x), [reference.stderr] * len(x), is_reference=True))
    return figures.Figure(f"(d) grouped type, k = {reference.k}", "cap used / true B", "regret", lines, log_y=False)


def _parts(reproduction: Reproduction, out: Path, seconds: float) -> list[str]:
    protocol = reproduction.protocol
    campaign = Standing.of("campaign", reproduction.campaign)
    parts = list(map(page.lead, ("Expected.", "Observed.", "Where armful differs."), verdict(reproduction)))
    if few := too_few_runs(reproduction):
        unclear = f"{protocol.runs} runs leave questions open. {' '.join(few)} {RUNS_NEEDED}"
        parts.append(page.paragraph(unclear, kind="warning"))
    parts += [
        page.heading("What was run"),
        page.paragraph(
            "Takemura et al., Near-Optimal Regret Bounds for Contextual Combinatorial Semi-Bandits with Linear Payoff "
            "Functions (AAAI 2021), numerical experiments: sizes "
            f"k = {', '.join(map(str, sorted(protocol.sizes)))} with T = 20 k rounds, {protocol.runs} runs of each, "
            f"mean regret and standard error. Regret is {REGRET}. `{PAPERS_RULE}` is the paper's Algorithm 2 to the "
            f"letter; `{OURS}` is armful's default rule with the paper's parameters. In one run all policies meet the "
            "same arms and noise, so they are compared run by run."
        ),
        page.heading("What was seen"),
        page.bullets(findings(reproduction)),
    ]
    for kind in KINDS:
        standing = Standing.of(kind, reproduction.of(kind))
        parts += [
            page.heading(f"Figure {CAPTIONS[kind][:3]} {kind} type"),
            page.image(out / f"figure-{kind}.svg", f"{CAPTIONS[kind]} Lower is better; bars are one standard error."),
            standing.regret_table(),
            *standing.differences(),
        ]
    parts += [page.heading("armful's rule and the paper's"), *rule_comparison(reproduction)]
    parts += [
        page.paragraph(
            "The growth exponent e in the tables above is that of regret ~ (kT)^e, fitted on log-log axes over all "
            "sizes. Since k and T grow together, e = 1/2 is the growth of d sqrt(kT) and of dk alike, and e = 1 that "
            "of dk^2. Its error is that of the means only."
        ),
        page.heading("Bounds and the measured regret"),
        page.paragraph(
            f"Explicit bounds at delta = {DELTA} with R = 1, lambda = d = 7, S = |theta*|, L the largest arm norm and "
            f"B = {B}. They are for the radius beta_T, while the runs use the paper's constant sqrt(d). They bound the "
            "worst case; where they exceed 2BkT, the most that can be lost at all, they say nothing. "
            "The last bound is a derivation of armful's (docs/theory.md), unrefereed."
        ),
        bounds_table(reproduction),
        page.heading(f"Figure (c) {CAMPAIGN_SIZE}"),
        page.image(out / "figure-campaign.svg", CAPTIONS["campaign"]),
        campaign.regret_table(),
        *campaign.differences(),
        page.heading("Figure (d) B misjudged"),
        page.image(out / "figure-cap.svg", CAPTIONS["cap"]),
        page.table(
            ["policy", "cap / B", "regret"],
            [
                [f"`{r.policy}`", "no cap" if f is None else f"{f:g}", page.plus_minus(r.mean, r.stderr)]
                for f, r in reproduction.cap
            ],
        ),
        page.heading("Chosen where the paper is silent"),
        page.bullets(CHOICES),
        page.heading("How this was made"),
        page.bullets(provenance(reproduction, seconds)),
    ]
    return parts


def findings(reproduction: Reproduction) -> list[str]:
    """Return what the numbers say at the largest size, in sentences."""
    sentences = []
    k = max(reproduction.protocol.sizes)
    for kind in KINDS:
        results = {r.policy: r for r in reproduction.of(kind) if r.k == k}
        ours = results["CappedC2UCB"]
        others = sorted((r for r in results.values() if r is not ours), key=lambda r: r.mean)
        ratios = ", ".join(f"`{r.policy}` {r.mean / ours.mean:.2f}" for r in others)
        sentences.append(
            f"{kind.capitalize()} type, k = {k}: `CappedC2UCB` lost {page.plus_minus(ours.mean, ours.stderr)}; "
            f"the others, as multiples of that: {ratios}."
        )
    campaign = {r.policy: r.mean for r in reproduction.campaign}
    sentences.append(
        f"{CAMPAIGN_SIZE}: the paper's rule lost "
        f"{campaign['CappedC2UCB-paper'] / campaign['CappedC2UCB']:.1f} times as much as `CappedC2UCB`."
    )
    by_factor = {(r.policy, f): r.mean for f, r in reproduction.cap}
    low, high = (by_factor["CappedC2UCB", f] / by_factor["CappedC2UCB", 1.0] for f in (0.5, 4.0))
    sentences.append(
        f"With B taken at half its value `CappedC2UCB` lost {low:.2f} times, at four times its value {high:.2f} times "
        "what it lost with the true B."
    )
    return sentences


def rule_comparison(reproduction: Reproduction) -> list[str]:
    """Return how much more armful's rule lost than the paper's, by size and type."""
    pairs = rule_differences(reproduction)
    sizes = sorted(reproduction.protocol.sizes)
    rows = [[f"k = {k}, T = {ROUNDS_PER_K * k}", *(page.interval(pairs[kind, k][0]) for kind in KINDS)] for k in sizes]
    note = (
        f"Regret of `{OURS}` beyond that of `{PAPERS_RULE}`, run by run, with intervals that hold at once with 95 %. "
        "Below 0 armful's rule lost less."
    )
    return [page.paragraph(note), page.table(["size", *KINDS], rows)]


def bounds_table(reproduction: Reproduction) -> str:
    """Return the bounds of docs/theory.md for each size, with the regret of C2UCB and CappedC2UCB."""
    rows = []
    for k in sorted(reproduction.protocol.sizes):
        instance, T, d = PaperInstance(k=k), ROUNDS_PER_K * k, PaperInstance.n_features
        setting: theory.Setting = {"k": k, "rounds": T, "n_features": d, "length": instance.length, "ridge": float(d)}
        norm = float(np.linalg.norm(instance.theta(T)))
        radius = theory.beta(t=T, k=k, n_features=d, noise=1.0, norm=norm, length=instance.length, ridge=d, delta=DELTA)
        measured = {(r.environment, r.policy): r.mean for r in reproduction.paper if r.k == k}
        rows.append(
            [
                f"k = {k}, T = {T}",
                *(f"{measured[kind, name]:,.0f}" for name in ("C2UCB", "CappedC2UCB") for kind in KINDS),
                f"{2 * B * k * T:,.0f}",
                _large(theory.c2ucb_bound(radius=radius, bound=B, **setting)),
                _large(theory.capped_bound(radius=radius, bound=B, **setting)),
                _large(theory.c2ucb_round_counting_bound(radius=radius, bound=B, **setting)),
            ]
        )
    columns = [
        "size",
        "`C2UCB` grouped",
        "uniform",
        "`CappedC2UCB` grouped",
        "uniform",
        "2BkT",
        "C2UCB, any constraint",
        "Algorithm 2, any constraint (C2UCB on the uniform type)",
        "C2UCB by counting rounds",
    ]
    return page.table(columns, rows)


def provenance(reproduction: Reproduction, seconds: float) -> list[str]:
    """Return seeds, versions and run time, in sentences."""
    protocol = reproduction.protocol
    computed = sum(r.seconds for r in [*reproduction.paper, *reproduction.campaign, *(r for _, r in reproduction.cap)])
    lines = [
        f"armful {armful.__version__}, numpy {np.__version__}, scipy {version('scipy')}, "
        f"matplotlib {version('matplotlib')}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}.",
        f"Seed {protocol.seed}: run i of every policy draws from streams keyed by the seed and i, so that the numbers "
        "are the same for any number of workers.",
        f"This run took {_duration(seconds)}; the reported cells {_duration(computed)} of one core in all.",
        "`regret.csv`, `campaign.csv`, `cap.csv` (and .parquet) hold the numbers, `cells/` the regret of every run.",
    ]
    if protocol.worst_signs:
        chosen = "; ".join(
            f"{kind} `{policy}` {''.join('+' if s > 0 else '-' for s in signs)}"
            for (kind, policy), signs in reproduction.worst_signs.items()
        )
        lines.append(f"Signs of theta* chosen as the worst, on seed {protocol.seed + 1}: {chosen}.")
    return lines


def _large(value: float) -> str:
    return f"{value:,.0f}" if value < 1e7 else f"{value:.1e}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{math.floor(seconds / 60)} min {seconds % 60:.0f} s"
