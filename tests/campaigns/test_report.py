import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs
from scipy.stats import binomtest

from armful import C2UCB, CombLinTS, theory
from armful.campaigns import report as _report
from armful.campaigns._intervals import wilson
from armful.campaigns.audit._data import gather
from armful.campaigns.audit._finding import Finding, number, percent, signed
from armful.campaigns.lift import Lift, estimate_lift, lift_data
from armful.campaigns.report import Rounds, report_data, write_campaign_report, write_report
from armful.campaigns.report._drawing import distinct, short
from armful.campaigns.report._page import SCRIPT, document, embedded, verdict
from armful.campaigns.report._rounds import mean_of
from armful.campaigns.report._surprises import calibration, surprising_groups, surprising_people
from armful.campaigns.settings import QuotaSettings
from tests.campaigns.made_rounds import World, made_policy, made_settings, opened, play

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
NASTY = """</script><script>alert(1)</script><!-- ]]> "quoted" 'single' &amp; <b>bold</b> `code` \u2028 %{x}"""
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """What is on a page: elements with their attributes, texts of scripts by id, cells of tables by their summary."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts, self.tables, self.stack = [], {}, {}, []
        self.texts = []
        self.feed(text)
        self.close()
        assert not self.stack, "not all elements are closed"

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes), [each[0] for each in self.stack]))
        if tag not in VOID:
            self.stack.append((tag, dict(attributes)))
        if tag == "details":
            self.summary, self.rows = "", []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.stack.pop()[0] == tag
        if tag == "details":
            self.tables[self.summary.removesuffix(" as a table")] = self.rows

    def handle_data(self, text):
        inside = [each[0] for each in self.stack]
        if inside and inside[-1] == "script":
            self.scripts.setdefault(self.stack[-1][1].get("id"), []).append(text)
        elif "summary" in inside:
            self.summary += text
        elif "td" in inside or "th" in inside:
            self.rows[-1][-1] += text
        if inside and inside[-1] not in ("script", "style"):
            self.texts.append(text)

    def figures(self):
        return {key: json.loads("".join(text)) for key, text in self.scripts.items() if key is not None}

    def all_of(self, tag):
        return [attributes for name, attributes, _ in self.elements if name == tag]


@pytest.fixture(scope="module")
def campaign():
    world = World(np.random.default_rng(8), level=0.3)
    policy = made_policy(world)
    records = play(world, policy, rounds=5)
    records[1] = replace(records[1], details={**records[1].details, "prices": [{"limit": "at most 9", "price": 0.25}]})
    came = records[0].rewards > 0
    records[0] = replace(records[0], came=came)
    records[-1] = opened(records[-1], np.arange(records[-1].ids.size) % 3 == 0)
    settings = made_settings()
    quotas = (QuotaSettings(column="region", at_least=0.1, at_most={"north": 100}),)
    settings = replace(settings, choose=replace(settings.choose, quotas=quotas))
    return SimpleNamespace(world=world, policy=policy, records=records, settings=settings, names=world.names)


def data_of(campaign, **changes):
    made = SimpleNamespace(**{**vars(campaign), **changes})
    return report_data(made.records, made.policy, made.settings, made.names, now=NOW)


@pytest.fixture(scope="module")
def data(campaign):
    return data_of(campaign)


@pytest.fixture(scope="module")
def page(data):
    return Page(document(data, "plotly"))


# -- what is computed


def test_a_round_has_the_means_and_counts_of_its_people(campaign, data):
    for line, record in zip(data.rounds, campaign.records, strict=True):
        for share, mean in (("chosen", line.chosen), ("holdout", line.holdout)):
            rewards = [r for r, s in zip(record.rewards, record.shares, strict=True) if s == share and np.isfinite(r)]
            assert mean.n == len(rewards)
            assert mean.value == pytest.approx(np.mean(rewards))
            expected = binomtest(int(sum(rewards)), len(rewards)).proportion_ci(0.95, method="wilson")
            assert (mean.low, mean.high) == pytest.approx((expected.low, expected.high), abs=1e-4)
        assert (line.n_chosen, line.n_holdout) == (200, 50)
        assert line.came + line.assumed + line.outstanding + line.unknown == 250
    assert data.rounds[0].assumed == 250 - campaign.records[0].came.sum() > 0
    assert data.rounds[-1].outstanding == 250 - campaign.records[-1].came.sum() > 0


def test_outcomes_that_did_not_come_in_time_are_unknown_if_missing_is_unknown(campaign):
    record = opened(campaign.records[0], np.arange(250) < 100)
    data = data_of(campaign, records=[replace(record, closed=True)])
    assert (data.rounds[0].unknown, data.rounds[0].outstanding, data.rounds[0].came) == (150, 0, 100)


def test_people_without_contact_are_counted_and_nothing_else(campaign):
    record = campaign.records[1]
    shares = np.where(np.arange(250) < 10, "no-contact", record.shares)
    line = data_of(campaign, records=[replace(record, shares=shares)]).rounds[0]
    assert (line.n_no_contact, line.n_chosen, line.came) == (10, 190, 240)


def test_the_mean_of_one_reward_or_none_has_no_interval():
    assert np.isnan(mean_of(np.array([1.0])).low)
    assert np.isnan(mean_of(np.zeros(0)).value)


def test_intervals_of_rewards_of_0_and_1_stay_between_them(campaign):
    record = campaign.records[0]
    rewards = np.zeros(250)
    rewards[np.flatnonzero(record.is_share("chosen"))[:3]] = 1
    line = data_of(campaign, records=[replace(record, rewards=rewards, closed=True)]).rounds[0]
    assert 0 < line.chosen.low < line.chosen.value < line.chosen.high < 0.1
    assert line.holdout.low == line.holdout.value == 0 < line.holdout.high < 0.1
    nothing, other = replace(record, rewards=np.zeros(250), closed=True), campaign.records[1]
    later = replace(other, rewards=(np.arange(other.rewards.size) % 50 == 0).astype(float), closed=True)
    line = data_of(campaign, records=[nothing, later]).rounds[0]
    assert line.holdout.low == line.holdout.value == 0 < line.holdout.high < 0.1
    amounts = data_of(campaign, records=[replace(record, rewards=2.5 * rewards, closed=True)]).rounds[0]
    assert amounts.chosen.low < 0


def test_calibration_of_rewards_of_0_and_1_stays_between_them(campaign):
    rows = gather(campaign.records, len(campaign.names)).rows
    part = replace(rows, rewards=(np.arange(rows.rewards.size) % 50 == 0).astype(float))
    assert all(0 <= each.observed.low <= each.observed.high <= 1 for each in calibration(part))


def test_calibration_counts_a_person_once_where_all_rewards_are_the_same(campaign):
    rows = gather(campaign.records, len(campaign.names)).rows
    rewards = (np.arange(rows.rewards.size) == np.flatnonzero(rows.learned)[0]).astype(float)
    found = calibration(replace(rows, rewards=rewards, person=np.zeros(rewards.size)))
    nothing = [each.observed for each in found if each.observed.value == 0]
    assert len(nothing) == len(found) - 1
    assert {each.high for each in nothing} == {wilson(0.0, 1)[1]}


def test_the_lift_is_that_of_the_closed_rounds(campaign, data):
    assert data.lift == estimate_lift(lift_data(campaign.records), unit="purchases")
    assert data.lifts[-1].per_contact == data.lift.per_contact
    assert data.lift_rounds == (1, 2, 3, 4)


def test_lifts_are_shown_at_the_rounds_after_which_they_are(campaign):
    lonely = replace(campaign.records[1], shares=np.full(250, "chosen"))
    data = data_of(campaign, records=[campaign.records[0], lonely, *campaign.records[2:]])
    assert data.lift_rounds == (1, 3, 4)


@pytest.mark.parametrize("kind", ["C2UCB", "CappedC2UCB"])
def test_the_certificate_is_that_of_the_theory(kind):
    world = World(np.random.default_rng(9), level=0.3)
    options = {"radius": "logdet", "noise": 0.5, "norm": 1.0}
    d = len(world.names)
    policy = C2UCB(n_features=d, seed=0, **options) if kind == "C2UCB" else made_policy(world, **options)
    records = play(world, policy, rounds=4, holdout=0)
    records = [replace(record, closes_at=record.chosen_at) for record in records]
    found = report_data(records, policy, made_settings(), world.names, now=NOW).certificate
    features, alphas, state = [], [], policy.state.empty()
    for record in records:
        X = record.features.astype(float)
        features.append(X)
        alphas.append(
            theory.log_det_radius(log_det_gain=float(state.log_det_gain), ridge=1.0, delta=0.1, noise=0.5, norm=1.0)
        )
        state = state.learn(X, record.rewards)
    clip = {"bound": 1.0, "clip": True} if kind == "CappedC2UCB" else {}
    expected = theory.regret_certificate(features, ridge=1.0, radius=alphas, k=200, **clip)
    np.testing.assert_allclose(found.lost, expected, rtol=1e-5)
    assert found.contacts == (200, 400, 600, 800)
    assert found.holds
    assert found.reasons == ()


def test_the_certificate_says_why_it_is_no_proof(campaign, data):
    assert not data.certificate.holds
    words = " ".join(data.certificate.reasons)
    assert all(each in words for each in ("'pointwise'", "estimated", "outstanding"))
    learning = replace(campaign.settings.learning, discount=0.9)
    assert (
        "discounted"
        in data_of(campaign, settings=replace(campaign.settings, learning=learning)).certificate.reasons[-1]
    )


def test_policies_with_another_score_have_no_certificate(campaign):
    d = len(campaign.names)
    for policy in (CombLinTS(n_features=d, seed=0), made_policy(campaign.world, rule="paper")):
        assert data_of(campaign, policy=policy).certificate is None


def test_calibration_is_of_predictions_made_after_the_model_had_learned(campaign, data):
    learned = [record for record in campaign.records[:-1] if np.any(record.predicted != 0)]
    predicted, rewards = (
        np.concatenate([getattr(each, name) for each in learned]) for name in ("predicted", "rewards")
    )
    order = np.argsort(predicted, kind="stable")
    parts = np.array_split(order, 10)
    assert [each.observed.n for each in data.calibration] == [part.size for part in parts]
    np.testing.assert_allclose(
        [each.predicted for each in data.calibration], [predicted[part].mean() for part in parts]
    )
    np.testing.assert_allclose(
        [each.observed.value for each in data.calibration], [rewards[part].mean() for part in parts]
    )


def test_there_is_no_calibration_before_the_model_has_learned(campaign):
    assert calibration(gather(campaign.records[:1], len(campaign.names)).rows) == ()


def test_quotas_have_their_bounds_and_counts(campaign, data):
    (quota,) = data.quotas
    assert [each.name for each in quota.groups] == ["east", "north", "south", "west"]
    for group in quota.groups:
        assert group.counts == tuple(int((record.groups["region"] == group.name).sum()) for record in campaign.records)
        assert group.at_least == 20
    assert [each.at_most for each in quota.groups] == [None, 100, None, None]


def test_quotas_that_can_no_longer_be_met_are_shown_without_bounds(campaign):
    impossible = (QuotaSettings(column="region", at_least=150),)
    settings = replace(campaign.settings, choose=replace(campaign.settings.choose, quotas=impossible))
    assert {each.at_least for each in data_of(campaign, settings=settings).quotas[0].groups} == {None}


def test_a_group_that_the_model_misjudges_is_a_surprise(campaign):
    rows = gather(campaign.records, len(campaign.names)).rows
    better = rows.rewards + 2.0 * (rows.groups["region"] == "south")
    groups, n_groups = surprising_groups(replace(rows, rewards=better), campaign.names)
    assert groups[0].name == "region: south"
    assert groups[0].chance < 1e-6
    assert groups[0].observed > groups[0].predicted + 1
    assert n_groups > 12 == len(groups)


def test_groups_of_a_quota_and_of_a_feature_with_the_same_name_are_looked_at_once(campaign):
    rows = gather(campaign.records, len(campaign.names)).rows
    with_quota = surprising_groups(rows, campaign.names)[1]
    assert with_quota == surprising_groups(replace(rows, groups={}), campaign.names)[1]
    other = {"city": rows.groups["region"]}
    large = sum(np.sum(rows.groups["region"][rows.learned] == each) >= 30 for each in np.unique(rows.groups["region"]))
    assert surprising_groups(replace(rows, groups=other), campaign.names)[1] == with_quota + large


def test_a_person_who_always_buys_is_a_surprise(campaign):
    rows = gather(campaign.records, len(campaign.names)).rows
    rewards, predicted = np.zeros(rows.n), np.full(rows.n, 0.001)
    most = np.unique(rows.ids[rows.learned], return_counts=True)
    name = most[0][most[1].argmax()]
    rewards[rows.ids == name] = 1.0
    people, n_people = surprising_people(replace(rows, rewards=rewards, predicted=predicted))
    assert people[0].name == name
    assert people[0].n == most[1].max()
    assert people[0].chance < 0.01
    assert n_people == most[0].size


def test_one_reward_of_few_is_no_surprise_among_many_people(campaign):
    rows = gather(campaign.records, len(campaign.names)).rows
    rewards = np.zeros(rows.n)
    rewards[np.flatnonzero(rows.learned)[0]] = 1.0
    people, _ = surprising_people(replace(rows, rewards=rewards, predicted=np.full(rows.n, 0.01)))
    assert people[0].distance > 10
    assert people[0].chance > 0.9


# -- the page


def test_the_page_is_well_formed_and_each_figure_has_a_label_and_a_table(page):
    figures = [each for each in page.all_of("div") if each.get("class") == "plot"]
    assert len(figures) == len(page.figures()) == 9
    assert all(each["role"] == "img" and each["aria-label"] and each["data-figure"] in page.scripts for each in figures)
    in_figures = [inside for tag, _, inside in page.elements if tag == "table" and "figure" in inside]
    assert len(in_figures) == len(figures)
    assert len(page.all_of("h1")) == 1


def test_ids_are_unique_and_links_lead_somewhere(page):
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [each["href"] for each in page.all_of("a")]
    assert len(links) == 11
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    labels = [each["aria-labelledby"] for each in page.all_of("section")]
    assert set(labels) <= set(ids)


def test_the_tables_have_the_numbers_of_the_data(data, page):
    rows = page.tables[f"Mean {data.reward} per round"][1:]
    for row, line in zip(rows, data.rounds, strict=True):
        assert row[0] == str(line.number) + ("" if line.closed else " (open)")
        assert [row[2], row[3]] == [f"{line.chosen.n:,}", number(line.chosen.value)]
        assert row[4] == f"{number(line.chosen.low)} to {number(line.chosen.high)}"
        assert [row[5], row[6]] == [f"{line.holdout.n:,}", number(line.holdout.value)]
    rows = page.tables["Lift so far"][1:]
    assert [row[3] for row in rows] == [signed(each.per_contact) for each in data.lifts]
    rows = page.tables["Coefficients"][1:]
    assert [row[:2] for row in rows] == [[each.name, signed(each.value)] for each in data.coefficients]
    rows = page.tables["Outcomes by round"][1:]
    assert [row[3:7] for row in rows] == [
        [str(each.came), str(each.assumed), str(each.outstanding), str(each.unknown)] for each in data.rounds
    ]
    assert [row[1] for row in page.tables["Exploration"][1:]] == [percent(each.exploring) for each in data.rounds]
    assert [row[2] for row in page.tables["Lost at most"][1:]] == [number(each) for each in data.certificate.lost]
    assert page.tables["Prices of the limits"][1:] == [["2", "at most 9", "0.25"]]
    (quota,) = data.quotas
    assert [row[3:] for row in page.tables["Contacts by region"][1:]] == [
        [str(n) for n in each.counts] for each in quota.groups
    ]


def test_the_figures_draw_the_numbers_of_the_data(data, page):
    figures = page.figures()
    holdout, chosen = figures["figure-0-0"]["data"]
    closed = data.rounds[:-1]
    assert chosen["x"] == [each.number for each in closed]
    assert chosen["y"] == [each.chosen.value for each in closed]
    assert holdout["y"] == [each.holdout.value for each in closed]
    assert chosen["error_y"]["array"] == pytest.approx([each.chosen.high - each.chosen.value for each in closed])
    assert chosen["error_y"]["arrayminus"] == pytest.approx([each.chosen.value - each.chosen.low for each in closed])
    anytime_low, anytime_high, low, high, line = figures["figure-1-0"]["data"]
    assert line["y"] == [each.per_contact for each in data.lifts]
    assert [low["y"], high["y"]] == [[each.low for each in data.lifts], [each.high for each in data.lifts]]
    assert anytime_low["y"] == [each.anytime_low for each in data.lifts]
    assert anytime_high["y"] == [each.anytime_high for each in data.lifts]
    dots = figures["figure-4-0"]["data"][0]
    assert dots["x"][::-1] == [each.value for each in data.coefficients]
    stacked = figures["figure-8-0"]["data"]
    assert np.sum([each["y"] for each in stacked], axis=0).tolist() == [250] * 5


def painted(value, key=""):
    if isinstance(value, dict):
        return {name: painted(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [painted(each) for each in value]
    return "#123456" if key.lower().endswith("color") else value


def colours(value, key=""):
    if isinstance(value, dict):
        return set().union(*(colours(each, name) for name, each in value.items()))
    if isinstance(value, list):
        return set().union(*map(colours, value)) if value else set()
    return {value} if key.lower().endswith("color") else set()


def test_plotly_accepts_every_figure(page):
    for figure in page.figures().values():
        go.Figure(painted(figure))


def test_both_palettes_have_every_colour_of_the_figures(page):
    used = colours(page.figures())
    palettes = re.findall(r"(?:light|dark): \{(.*?)\}", SCRIPT, re.DOTALL)
    assert len(palettes) == 2
    for palette in palettes:
        assert used <= set(re.findall(r"(\w+): \"", palette))


def test_the_page_fetches_nothing(page):
    for tag, attributes, _ in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form"), tag
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
    (policy,) = [each["content"] for each in page.all_of("meta") if "http-equiv" in each]
    assert policy.startswith("default-src 'none'")
    style = Path(_report.__file__).with_name("report.css").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "@import" not in style
    assert "http" not in style + SCRIPT


def test_names_of_users_are_text_and_nothing_else(campaign):
    names = [NASTY + str(i) for i in range(len(campaign.names))]
    records = [
        replace(
            record,
            ids=np.array([NASTY + each for each in record.ids]),
            groups={NASTY: np.array([NASTY + each for each in record.groups["region"]])},
            details={**record.details, "prices": [{"limit": NASTY, "price": 1.0}]},
        )
        for record in campaign.records
    ]
    settings = replace(
        campaign.settings,
        name=NASTY,
        outcomes=replace(campaign.settings.outcomes, reward=NASTY),
        choose=replace(campaign.settings.choose, quotas=(QuotaSettings(column=NASTY, at_most=500),)),
    )
    data = data_of(campaign, records=records, settings=settings, names=names)
    finding = Finding(name=NASTY, level="look", sentence=NASTY, consequence=NASTY, repair=NASTY)
    data = replace(data, policy=NASTY, findings=(finding,), lift=replace(data.lift, sentence=NASTY, notes=(NASTY,)))
    page = Page(document(data, "plotly"))
    assert len(page.all_of("script")) == len(page.figures()) + 2
    assert not page.all_of("b")
    assert NASTY in page.texts
    assert page.tables["Coefficients"][1][0] == data.coefficients[0].name
    assert page.tables["Prices of the limits"][1][1] == NASTY
    assert page.tables[f"Contacts by {NASTY}"][0][0] == NASTY
    assert page.tables[f"Contacts by {NASTY}"][1][0] == NASTY + "east"
    assert page.tables[f"The furthest of {data.n_people} people"][1][0].startswith(NASTY)
    labels = page.figures()["figure-4-0"]["data"][0]["y"]
    assert len(set(labels)) == len(labels)
    assert not any("<" in label for label in labels)


def test_names_that_are_cut_alike_stay_apart():
    names = ["the same beginning of a very long name, and the same end " + "x" * i for i in (30, 40)]
    assert short(names[0]) == short(names[1])
    assert distinct(names) == [short(names[0]), f"{short(names[0])} (2)"]
    assert len(short("x" * 100)) == 30


def test_json_in_a_page_ends_no_script_and_reads_back():
    value = {"a": [NASTY, 1.5, None], NASTY: "\u2029"}
    assert json.loads(embedded(value)) == value
    assert not set(embedded(value)) & set("<>&\u2028\u2029")


def lift_with(low, high, anytime_low, anytime_high):
    return Lift(
        sentence="", level=0.95, per_contact=1.0, low=low, high=high, anytime_low=anytime_low, anytime_high=anytime_high
    )


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((1, 3, 0.5, 4), "It works:"),
        ((1, 3, -1, 4), "It probably works"),
        ((-1, 3, -2, 4), "cannot be told yet"),
        ((-3, -1, -4, 1), "It probably does worse"),
        ((-3, -1, -4, -0.5), "It does worse"),
    ],
)
def test_the_verdict_believes_the_interval_for_many_looks(data, ends, words):
    assert words in verdict(replace(data, lift=lift_with(*ends)))


def said(data):
    """The headline and the verdict."""
    return data.lift.sentence, verdict(data)


def test_the_verdict_says_what_is_known_of_both_shares_if_chance_cannot_be_judged(campaign):
    def rewarded(record, mean):
        rewards = np.where(record.shares == "holdout", 0.0, np.arange(record.ids.size) % 5 < 5 * mean)
        return replace(record, rewards=rewards)

    closed = campaign.records[:2]
    headline, words = said(data_of(campaign, records=[rewarded(each, 0.4) for each in closed]))
    assert headline == "No lift can be given yet: all known rewards of the holdout are 0, so chance cannot be judged."
    assert words == (
        "Whether it works cannot be told yet: so far the chosen earned 0.4 per contact, by 400 known outcomes, and the "
        "holdout 0, by 100."
    )
    _, words = said(data_of(campaign, records=[rewarded(each, 0.0) for each in closed]))
    assert "so far the chosen earned 0 per contact, by 400 known outcomes, and the holdout 0, by 100." in words
    first = opened(campaign.records[0], np.zeros(campaign.records[0].ids.size, dtype=bool))
    assert "will be seen when outcomes of both shares are known" in said(data_of(campaign, records=[first]))[1]
    assert "will be seen when outcomes of both shares are known" in said(data_of(campaign, records=[]))[1]


def test_without_a_holdout_the_report_says_how_to_have_one(campaign):
    records = [replace(each, shares=np.full(each.ids.size, "chosen")) for each in campaign.records]
    headline, words = said(data_of(campaign, records=records))
    assert headline.endswith("with; holdout.share says how many there are.")
    assert words == (
        "Without a holdout nobody can say whether it works: set holdout.share, and later rounds can show it."
    )


@pytest.mark.parametrize(
    ("findings", "value", "note"),
    [
        ([Finding(name="cap", level="fine", sentence="", checked=False)], "\u2013", "too few outcomes yet"),
        ([Finding(name="cap", level="fine", sentence="")], "fine", "nothing to repair"),
        ([Finding(name="cap", level="look", sentence="")], "1", "to look at, see below"),
        (
            [Finding(name=name, level="fine", sentence="", checked=name == "cap") for name in ("cap", "drift")],
            "fine",
            "1 of 2 checked",
        ),
    ],
)
def test_the_audit_is_fine_only_as_far_as_it_was_checked(data, findings, value, note):
    texts = Page(document(replace(data, findings=tuple(findings)), "plotly")).texts
    at = texts.index("audit")
    says_how_often = any("one audit in a hundred" in text for text in texts)
    assert says_how_often == (sum(finding.checked for finding in findings) > 0)
    assert texts[at : at + 3] == ["audit", value, note]


def test_the_sentence_on_top_of_a_report_ends_with_a_full_stop(data):
    texts = [each.replace("\u00a0", " ") for each in Page(document(data, "plotly")).texts]
    assert f"{data.lift.sentence}." in texts


def test_a_campaign_without_outcomes_has_a_report(campaign):
    nobody = np.zeros(250, dtype=bool)
    data = data_of(campaign, records=[opened(campaign.records[0], nobody)])
    page = Page(document(data, "plotly"))
    assert data.lift.sentence in " ".join(page.texts)
    assert [row[5] for row in page.tables["Outcomes by round"][1:]] == ["250"]
    assert "rewards" not in [each.get("id") for each in page.all_of("section")]


def test_a_campaign_without_rounds_has_a_report(campaign):
    data = data_of(campaign, records=[], policy=made_policy(campaign.world))
    page = Page(document(data, "plotly"))
    assert page.all_of("section")[-1]["id"] == "audit"
    for figure in page.figures().values():
        go.Figure(painted(figure))


def test_many_rounds_and_many_groups_can_be_drawn(campaign, data):
    many = tuple(replace(data.rounds[0], number=i + 1) for i in range(60))
    (quota,) = data.quotas
    groups = tuple(replace(quota.groups[0], name=f"g{i}", counts=(i,) * 60) for i in range(300))
    page = Page(
        document(replace(data, rounds=many, quotas=(replace(quota, groups=groups),), certificate=None), "plotly")
    )
    assert len(page.tables["Contacts by region"]) == 301
    (bars, *_) = page.figures()["figure-5-0"]["data"]
    assert len(bars["y"]) == 40
    assert min(bars["x"]) == 260


def test_the_file_holds_plotly_and_stays_small(data, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("an older one")
    write_report(data, path)
    text = path.read_text(encoding="utf-8")
    assert get_plotlyjs() in text
    assert "</script" not in get_plotlyjs()
    assert path.stat().st_size < 6_000_000
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_a_report_into_a_folder_that_is_not_there_is_refused_in_one_sentence(data, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_report(data, tmp_path / "nowhere" / "report.html")


def test_the_report_of_a_campaign_is_of_its_rounds_at_its_time(campaign, tmp_path):
    stand_in = SimpleNamespace(
        recipe=SimpleNamespace(names=campaign.names),
        settings=campaign.settings,
        records=lambda: iter(campaign.records),
        policy=lambda: campaign.policy,
        now=lambda: NOW,
    )
    write_campaign_report(stand_in, tmp_path / "report.html")
    write_report(data_of(campaign), tmp_path / "other.html")
    assert (tmp_path / "report.html").read_bytes() == (tmp_path / "other.html").read_bytes()


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_rounds_are_kept_only_if_they_are_small(campaign, monkeypatch, limit):
    monkeypatch.setattr(_report, "MOST_BYTES", limit)
    readings = []

    def read():
        readings.append(1)
        yield from campaign.records

    rounds = Rounds(read)
    for _ in range(3):
        assert [each.number for each in rounds] == [1, 2, 3, 4, 5]
    assert len(readings) == (1 if limit else 3)
