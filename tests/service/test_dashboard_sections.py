"""What the sections of the dashboard say and draw, in a real Chromium."""

import pytest
from playwright.sync_api import expect

from tests import browsers
from tests.service.dashboard_server import open_page, tile

pytestmark = [pytest.mark.slow, pytest.mark.browser]
expect.set_options(timeout=browsers.PATIENCE_MS)


@pytest.mark.parametrize(("relative", "shown"), [(1.39, "+139 %"), (0.0423, "+4.2 %"), (0.995, "+100 %")])
def test_the_lift_is_as_precise_as_its_sentence(browser, serve, monkeypatch, relative, shown):
    server = serve()
    made = server.source.data

    def with_lift(name):
        data = made(name)
        return {**data, "lift": {**data["lift"], "relative": relative}}

    monkeypatch.setattr(server.source, "data", with_lift)
    with open_page(browser, server.url) as page:
        expect(tile(page, "Lift")).to_have_text(shown)


@pytest.mark.parametrize(
    ("certainty", "note", "level"),
    [
        ("sure", "against the holdout", "accent"),
        ("likely", "probably not chance", ""),
        ("open", "may be chance", "open"),
    ],
)
def test_a_lift_is_coloured_only_if_it_is_sure_however_often_one_looks(
    browser, serve, monkeypatch, certainty, note, level
):
    server = serve()
    made = server.source.data
    lift = {**made("front-page")["lift"], "certainty": certainty, "sentence": "-4 % (95 % CI -7 .. -1)"}
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "lift": lift, "sentence": "no window yet"})
    with open_page(browser, server.url) as page:
        box = page.locator("#tiles > div").first
        expect(box.locator("span")).to_contain_text(note)
        expect(box).to_have_attribute("data-level", level)
        expect(page.locator("#sentence")).to_have_text("No window yet")
        expect(page.locator("#lift-sentence")).to_have_text("\u22124\u00a0% (95\u00a0% CI \u22127 .. \u22121)")


def test_a_lift_that_is_no_share_has_its_interval_beside_it(browser, serve, monkeypatch):
    server = serve()
    made = server.source.data
    lift = {**made("front-page")["lift"], "relative": None}
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "lift": lift})
    with open_page(browser, server.url) as page:
        expect(tile(page, "Lift")).to_have_text("+0.0312")
        note = tile(page, "Lift").locator("xpath=following-sibling::span")
        expect(note).to_have_text("95\u00a0% interval +0.0248 to +0.0377, against the holdout")


def test_predictions_are_for_places_that_are_examined_where_places_have_weights(browser, serve, monkeypatch):
    server = serve()
    made = server.source.data
    with open_page(browser, server.url) as page:
        expect(page.locator("#reward-table thead th").last).to_have_text("predicted, if examined")
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "positions": []})
    server.source.pass_time()
    with open_page(browser, server.url) as page:
        expect(page.locator("#reward-table thead th").last).to_have_text("predicted")


def test_coefficients_of_ready_features_are_for_a_rise_by_1(browser, serve, monkeypatch):
    server = serve()
    made = server.source.data
    with open_page(browser, server.url) as page:
        expect(page.locator("#coefficients-text")).to_contain_text("between the lowest and the highest value")
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "ready_features": True})
    server.source.pass_time()
    with open_page(browser, server.url) as page:
        expect(page.locator("#coefficients-text")).to_contain_text("changes as a feature rises by 1, all others")


def bounded(*bounds, column="topic"):
    return [
        {"column": column, "group": f"group {i}", "n": 40 - i, "share": 0.25, "at_least": least, "at_most": most}
        for i, (least, most) in enumerate(bounds)
    ]


@pytest.mark.parametrize(
    ("kind", "quotas", "said", "titles", "row"),
    [
        ("service", bounded((None, None)), "", [], []),
        (
            "service",
            bounded((None, 2), (None, 2)),
            " Of the arms of each decision, the settings give each topic at most 2.",
            ["in each decision"],
            ["at most 2"],
        ),
        (
            "service",
            bounded((1, 0.125), (None, None), (None, 0)) + bounded((None, None), column="author"),
            " Of the arms of each decision, the settings give group 0 at least 1 and at most 12.5\u00a0%, group 2 at "
            "most 0.",
            ["in each decision"],
            ["at least 1 and at most 12.5\u00a0%"],
        ),
        (
            "service",
            bounded(*[(None, 1 + i) for i in range(5)]),
            " The table has what the settings allow of each group in a decision.",
            ["in each decision"],
            ["at most 1"],
        ),
        (
            "campaign",
            bounded((10, 50)),
            " The marks are the bounds that were set.",
            ["at least", "at most"],
            ["10", "50"],
        ),
    ],
)
def test_beside_each_group_stands_what_the_settings_allow(browser, serve, monkeypatch, kind, quotas, said, titles, row):
    server = serve()
    made = server.source.data
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "kind": kind, "quotas": quotas})
    with open_page(browser, server.url) as page:
        text = page.locator("#quotas-text").text_content()
        assert text.partition(".")[2] == said
        page.locator("#quotas summary").click()
        assert page.locator("#quotas-table th[scope=col]").all_text_contents()[4:] == titles
        assert page.locator("#quotas-table tbody tr").first.locator("td").all_text_contents()[3:] == row
        label = page.locator("#quotas-plot").get_attribute("aria-label")
        assert label.endswith("the numbers and the bounds." if titles else "the numbers.")
        marks = page.evaluate("document.getElementById('quotas-plot').data.slice(1).flatMap((each) => each.x)")
        assert marks == ([10 * 0.25 / 40, 50 * 0.25 / 40] if kind == "campaign" else [])


@pytest.mark.parametrize(("rewards", "missing", "said"), [(0, 0.0, True), (0, None, False), (10**7, 0.0, False)])
def test_more_outcomes_than_rewards_are_explained(browser, serve, monkeypatch, rewards, missing, said):
    server = serve(points=6)
    made = server.source.data
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "rewards": rewards, "missing": missing})
    with open_page(browser, server.url) as page:
        text = page.locator("#model-text").text_content()
        assert ("when its window closes is learned as 0, as missing says" in text) == said
        assert ("missing" in text) == said


def test_the_quotas_are_as_wide_as_their_card_without_positions(browser, serve, monkeypatch):
    server = serve()
    made = server.source.data
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "kind": "campaign", "positions": []})
    with open_page(browser, server.url) as page:
        expect(page.locator("#positions")).to_be_hidden()
        card = page.locator("#quotas figure").bounding_box()
        drawn = page.locator("#quotas-plot .main-svg").first.bounding_box()
        assert abs(drawn["width"] - card["width"]) < 2
        assert card["width"] > 900


@pytest.mark.parametrize(
    ("n", "said"), [(40, ""), (41, " The 40 largest of 41"), (200, " The 40 largest of 200 or more")]
)
def test_of_many_groups_the_largest_are_drawn_and_the_text_says_so(browser, serve, monkeypatch, n, said):
    server = serve()
    made = server.source.data
    one = {"column": "grp", "share": 1 / n, "at_least": None, "at_most": 2}
    quotas = [{**one, "group": f"<i>group</i> number {i} of a catalogue", "n": 500 - i} for i in range(n)]
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "quotas": quotas})
    with open_page(browser, server.url, viewport={"width": 390, "height": 844}) as page:
        assert ("largest of" in page.locator("#quotas-text").text_content()) == bool(said)
        expect(page.locator("#quotas-text")).to_contain_text(said)
        names = page.evaluate("document.getElementById('quotas-plot').data[0].y")
        assert names == [f"\u2026{i}\u2026" for i in range(40)][::-1]


def test_a_card_beside_a_long_one_is_not_drawn_out(browser, serve, monkeypatch):
    server = serve()
    made = server.source.data
    quotas = bounded(*[(None, 2)] * 40)
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "quotas": quotas})
    with open_page(browser, server.url) as page:
        heights = [page.locator(f"#{name}").bounding_box()["height"] for name in ("quotas", "positions")]
        assert heights[1] < 600 < heights[0]


@pytest.mark.parametrize(
    ("by", "explores", "note", "added", "column"),
    [
        ("bonus", "The bonus in the scores explores too", "chosen last", "bonus for what is not known yet", "bonus"),
        ("draw", "each score is drawn at random", "chosen last", "random draw, to explore", "draw"),
        ("random", "every score is random", "not by epsilon", "random part, to explore", "random part"),
    ],
)
def test_exploration_is_told_as_the_policy_does_it(browser, serve, monkeypatch, by, explores, note, added, column):
    server = serve()
    made = server.source.data
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "explores_by": by})
    with open_page(browser, server.url) as page:
        expect(page.locator("#exploration-text")).to_contain_text(explores)
        expect(tile(page, "Exploration").locator("xpath=following-sibling::span")).to_contain_text(note)
        expect(page.locator("#decisions-added")).to_have_text(added)
        page.locator("#decisions-list summary").first.click()
        expect(page.locator("#decisions-list th[scope=col]").nth(4)).to_have_text(column)
        said = " ".join(page.locator("#exploration-text, #decisions-text").all_text_contents())
        assert ("bonus" in said) == (by == "bonus")


def test_each_arm_has_its_reason_and_a_bar_as_long_as_its_score(browser, serve, monkeypatch):
    server = serve()
    made = server.source.data
    scores = [(0.3, 0.1), (0.4, -0.2), (0.1, 0.05), (0.2, 0.0)]

    def with_scores(name):
        data = made(name)
        decision = next(each for each in data["last_decisions"] if each["share"] == "chosen")
        decision["chosen"] = [
            {**arm, "predicted": predicted, "bonus": bonus, "score": predicted + bonus, "share": share}
            for arm, (predicted, bonus), share in zip(
                decision["chosen"], scores, ["chosen", "chosen", "chosen", "explored"], strict=False
            )
        ]
        decision["runner_up"] = {"id": "late", "predicted": 0.18, "bonus": 0.0, "score": 0.18}
        return {**data, "explores_by": "draw", "last_decisions": [decision]}

    monkeypatch.setattr(server.source, "data", with_scores)
    with open_page(browser, server.url) as page:
        page.locator("#decisions-list summary").first.click()
        assert page.locator("#decisions-list td small").all_text_contents() == [
            "by its score, above the best left out",
            "by its score, above the best left out",
            "by the constraint: the best left out scores more",
            "drawn at random",
            "left out",
        ]
        bars = page.locator("#decisions-list svg").evaluate_all(
            "(all) => all.map((each) => [...each.children].map((r) => [r.getAttribute('class'), +r.getAttribute('x'), "
            "+r.getAttribute('width')]))"
        )
        unit = 90 / 0.4
        assert bars[0] == [
            ["predicted", 0, pytest.approx(0.3 * unit)],
            ["bonus", pytest.approx(0.3 * unit), pytest.approx(0.1 * unit)],
        ]
        assert bars[1] == [
            ["predicted", 0, pytest.approx(90)],
            ["taken", pytest.approx(0.2 * unit), pytest.approx(0.2 * unit)],
        ]


def test_the_constant_is_no_change_and_nothing_is_believed_before_anything_is_learned(browser, serve, monkeypatch):
    server = serve()
    made = server.source.data
    with open_page(browser, server.url) as page:
        expect(page.locator("#coefficients-text")).not_to_contain_text("constant")
    constant = {"name": "constant", "value": 0.2, "low": 0.1, "high": 0.3}

    def with_constant(name):
        data = made(name)
        model = {**data["model"], "n_observations": 5.0 if server.source.version > 42 else 0.0}
        return {**data, "model": model, "coefficients": [constant, *data["coefficients"]]}

    monkeypatch.setattr(server.source, "data", with_constant)
    server.source.pass_time()
    with open_page(browser, server.url) as page:
        expect(page.locator("#coefficients")).to_be_hidden()
        server.source.pass_time()
        expect(page.locator("#coefficients-text")).to_contain_text("constant is not such a change")
        page.wait_for_selector("#coefficients-plot .scatterlayer .trace")


@pytest.mark.parametrize(
    ("levels", "value", "note"),
    [
        (["open"] * 5, "\u2013", "too few outcomes yet"),
        (["ok"] * 4 + ["open"], "Fine", "4 of 5 checked"),
        (["ok"] * 5, "Fine", "nothing to repair"),
        (["open"] * 3 + ["warning", "warning"], "2", "to look at, below"),
        (["open"] * 3 + ["warning", "problem"], "1 problem", "and 1 to look at, below"),
        (["open"] * 3 + ["problem", "problem"], "2 problems", "see below"),
    ],
)
def test_the_audit_is_fine_only_as_far_as_it_was_checked(browser, serve, levels, value, note):
    server = serve()
    server.source.audit_levels = levels
    with open_page(browser, server.url) as page:
        expect(tile(page, "Audit")).to_have_text(value)
        expect(tile(page, "Audit").locator("xpath=following-sibling::span")).to_have_text(note)
