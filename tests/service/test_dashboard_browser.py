"""The dashboard in a real Chromium, on made data."""

import json
import re
import shlex
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from armful.campaigns._intervals import wilson
from armful.service._openapi import document
from tests import browsers
from tests.service.dashboard_server import KEY, DashboardServer, open_page, tile

pytestmark = [pytest.mark.slow, pytest.mark.browser]

expect.set_options(timeout=browsers.PATIENCE_MS)
PLOTS = ["reward", "exploration", "coefficients", "quotas", "positions"]
NO_CONNECTION = ("Failed to load resource", "request failed", "ERR_")

CONTRAST = """() => {
  const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return { r, g, b, a }; };
  const over = (top, below) => {
    const mixed = ["r", "g", "b"].map((c) => [c, top[c] * top.a + below[c] * (1 - top.a)]);
    return { a: 1, ...Object.fromEntries(mixed) };
  };
  const behind = (node) => {
    if (!node) return parse(getComputedStyle(document.body).backgroundColor);
    const own = parse(getComputedStyle(node).backgroundColor);
    return own.a === 1 ? own : over(own, behind(node.parentElement));
  };
  const light = (c) => 0.2126 * channel(c.r) + 0.7152 * channel(c.g) + 0.0722 * channel(c.b);
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !parent.checkVisibility()) continue;
    if (parent.closest("svg, script, noscript, .hidden, option")) continue;
    const below = behind(parent);
    const [a, b] = [light(over(parse(getComputedStyle(parent).color), below)), light(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.push([walker.currentNode.data.trim().slice(0, 40), ratio]);
  }
  return poor;
}"""  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    with browsers.launched() as browser:
        yield browser


@pytest.fixture
def serve():
    """Starts servers, and stops them."""
    servers = []

    def start(**options):
        servers.append(DashboardServer(**options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def test_every_chart_is_drawn_and_has_its_table(browser, serve):
    server = serve()
    with open_page(browser, server.url) as page:
        expect(page.locator("h1")).to_have_text("front-page")
        expect(page.locator("#sentence")).to_have_text("Readers click 23\u00a0% more than with the holdout's slates.")
        for name in PLOTS:
            plot = page.locator(f"#{name}-plot")
            assert page.locator(f"#{name} figure").get_attribute("aria-label")
            expect(plot.locator(".plot-container")).to_have_attribute("aria-hidden", "true")
            assert plot.locator(".trace, .bars .point").count() > 0, name
            assert "table below" in plot.get_attribute("aria-label")
            details = page.locator(f"#{name} figure details")
            details.locator("summary").click()
            expect(details.locator("tbody tr").first).to_be_visible()
        data = server.source.data("front-page")
        last = [(each["decisions"], each["exploring"]) for each in data["series"][-2:]]
        explored = sum(n * share for n, share in last) / sum(n for n, _ in last)
        expect(tile(page, "Exploration")).to_have_text(f"{100 * explored:.2g} %")
        assert page.locator("#reward-table tbody tr").count() == len(data["series"])
        titles = page.locator("#reward-table thead th").all_text_contents()
        assert len(set(titles)) == len(titles)
        newest = data["series"][-1]
        values = ", ".join(f"{share} {newest[share]['mean']:.3g}" for share in ("chosen", "explored", "holdout"))
        assert f"Newest: {values} at " in page.locator("#reward-plot").get_attribute("aria-label")
        assert page.locator("#coefficients-table tbody th").all_text_contents() == [
            each["name"] for each in data["coefficients"]
        ]
        drawn = page.evaluate("document.getElementById('coefficients-plot').data[0].x")
        assert drawn == [each["value"] for each in data["coefficients"]][::-1]
        assert page.locator("#audit-list li").count() == len(data["audit"])
        assert page.locator("#notes-list li").all_text_contents() == data["notes"]


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


def test_on_a_phone_long_products_have_two_lines_and_scores_are_whole(browser, serve, monkeypatch):
    server = serve()
    made = server.source.data
    long = {"name": "topic: politics \u00d7 daypart: morning", "value": 0.2, "low": 0.1, "high": 0.3}

    def with_product(name):
        data = made(name)
        return {**data, "coefficients": [long, *data["coefficients"]]}

    monkeypatch.setattr(server.source, "data", with_product)
    with open_page(browser, server.url, viewport={"width": 390, "height": 844}) as page:
        assert page.evaluate("document.getElementById('coefficients-plot').data[0].y.at(-1)") == (
            "topic: politics \u00d7<br>daypart: morning"
        )
        item = page.locator("#decisions-list li").first
        item.locator("summary").click()
        region, cell = (
            item.locator(".scroll").bounding_box(),
            item.locator("tbody td:nth-child(3)").first.bounding_box(),
        )
        assert cell["x"] + cell["width"] <= region["x"] + region["width"]
        expect(item.locator(".when")).to_contain_text(",")


def test_pooled_points_keep_the_mean_of_all_rewards(browser, serve):
    server = serve()
    with open_page(browser, server.url) as page:
        lines = page.evaluate(
            "document.getElementById('reward-plot').data.filter((t) => t.name).map((t) => [t.name, t.y])"
        )
        series = server.source.data("front-page")["series"]
        for share, drawn in lines:
            groups = [[each[share] for each in series[i : i + 3] if each[share]["n"]] for i in range(0, 96, 3)]
            expected = [sum(e["n"] * e["mean"] for e in group) / sum(e["n"] for e in group) for group in groups]
            assert drawn == pytest.approx(expected)
        assert [name for name, _ in lines] == ["holdout", "explored", "chosen"]


def test_bands_of_clicks_stay_between_0_and_1_where_points_are_drawn_as_one(browser, serve):
    server = serve()
    with open_page(browser, server.url) as page:
        bands = page.evaluate("document.getElementById('reward-plot').data.filter((t) => t.fill).map((t) => t.y)")
        series = server.source.data("front-page")["series"]
        for share, band in zip(("holdout", "explored", "chosen"), bands, strict=True):
            groups = [[each[share] for each in series[i : i + 3] if each[share]["n"]] for i in range(0, 96, 3)]
            sizes = [sum(each["effective_n"] for each in group) for group in groups]
            means = [sum(e["n"] * e["mean"] for e in group) / sum(e["n"] for e in group) for group in groups]
            expected = [wilson(mean, n) for mean, n in zip(means, sizes, strict=True)]
            assert band == pytest.approx([high for _, high in expected] + [low for low, _ in expected][::-1])
            assert min(band) >= 0


TRACES = "document.getElementById('reward-plot').data.filter((t) => t.name).map((t) => [t.name, t.x.length, t.y])"


def drawn(page):
    """The lines of the chart of rewards by their names: how many points, and the values of those that have one."""
    return {name: (n, [y for y in ys if y is not None]) for name, n, ys in page.evaluate(TRACES)}


def test_around_a_lone_point_is_the_time_that_it_stands_for(browser, serve):
    server = serve(points=1)
    with open_page(browser, server.url) as page:
        for plot in ("reward-plot", "exploration-plot"):
            start, end = page.evaluate(f"document.getElementById('{plot}').layout.xaxis.range")
            assert datetime.fromisoformat(end) - datetime.fromisoformat(start) >= timedelta(minutes=15)
            labels = page.locator(f"#{plot} .xtick text").all_text_contents()
            assert len(set(labels)) == len(labels) > 1


def test_times_stand_upright_below_the_charts(browser, serve):
    server = serve(points=60)
    server.source.step = timedelta(seconds=1)  # the longest labels: hours, minutes and seconds
    server.source.pass_time()
    with open_page(browser, server.url) as page:
        turned = "[...document.querySelectorAll('.xtick text')].map((tick) => tick.getAttribute('transform') ?? '')"
        assert {float(angle) for each in page.evaluate(turned) for angle in re.findall(r"rotate\((.*?),", each)} <= {0}


def test_points_that_are_still_open_are_in_the_table_and_not_in_the_line(browser, serve):
    server = serve(points=24, n_open=3)
    with open_page(browser, server.url) as page:
        series = server.source.data("front-page")["series"]
        lines = drawn(page)
        assert set(lines) == {"holdout", "explored", "chosen"}
        assert lines["chosen"][1] == pytest.approx([each["chosen"]["mean"] for each in series[:21]])
        n = sum(each["open"] for each in series)
        expect(page.locator("#reward-text")).to_contain_text(f"{n} decisions are still open")
        page.locator("#reward details summary").click()
        windows = page.locator("#reward-table tbody tr td:nth-child(4)").all_text_contents()
        assert windows == [f"{each['open']} still open" if each["open"] else "closed" for each in series[::-1]]
        rows = page.locator("#reward-table tbody tr")
        expect(rows.first).to_contain_text("so far")
        expect(rows.nth(3)).not_to_contain_text("so far")
        server.source.n_open = 0
        server.source.pass_time()
        expect(page.locator("#reward-text")).not_to_contain_text("open")
        assert drawn(page)["chosen"][0] == 25


def test_a_young_service_shows_open_points_as_provisional(browser, serve):
    server = serve(points=8, n_open=8)
    with open_page(browser, server.url) as page:
        series = server.source.data("front-page")["series"]
        lines = drawn(page)
        assert set(lines) == {f"{share}, still open" for share in ("holdout", "explored", "chosen")}
        assert lines["chosen, still open"][1] == pytest.approx([each["chosen"]["mean"] for each in series])
        expect(page.locator("#reward-text")).to_contain_text("Hollow points are still open")
        assert "Hollow points are still open" in page.locator("#reward-plot").get_attribute("aria-label")
        server.source.n_open = 5
        version = server.source.pass_time()
        expect(tile(page, "Model version")).to_have_text(str(version))
        lines = drawn(page)
        assert (lines["chosen"][0], lines["chosen, still open"][0]) == (4, 5)
        symbols = page.evaluate(
            "document.getElementById('reward-plot').data.filter((t) => t.name).map((t) => [t.name, t.marker.symbol])"
        )
        assert all(symbol.endswith("-open") == name.endswith("still open") for name, symbol in symbols)


def test_a_range_that_is_mostly_open_shows_it(browser, serve):
    server = serve(points=24, n_open=4)  # the last hour
    with open_page(browser, server.url) as page:
        assert "chosen, still open" not in drawn(page)
        page.get_by_label("Show").select_option(label="last hour")
        expect(page.locator("#reward-text")).to_contain_text("Hollow points are still open")
        assert "chosen, still open" in drawn(page)
        page.get_by_label("Show").select_option(label="everything")
        expect(page.locator("#reward-text")).not_to_contain_text("Hollow")
        assert "chosen, still open" not in drawn(page)


def test_a_live_update_changes_the_page_and_leaves_the_reader_alone(browser, serve):
    server = serve()
    with open_page(browser, server.url) as page:
        box = page.locator("#reward-plot .nsewdrag").bounding_box()
        page.mouse.move(box["x"] + 200, box["y"] + 100)
        page.mouse.down()
        page.mouse.move(box["x"] + 600, box["y"] + 100, steps=5)
        page.mouse.up()
        page.wait_for_function("document.getElementById('reward-plot').layout.xaxis.autorange === false")
        page.locator("#reward details summary").click()
        decision = page.locator("#decisions-list li").nth(2)
        key = decision.get_attribute("data-key")
        decision.locator("summary").click()
        look = """() => ({
            zoom: document.getElementById('reward-plot').layout.xaxis.range,
            focus: document.activeElement.closest('li')?.dataset.key,
            open: [...document.querySelectorAll('details[open] summary')].length,
            place: document.activeElement.getBoundingClientRect().top })"""
        before = page.evaluate(look)
        rows = page.locator("#reward-table tbody tr").count()
        version = server.source.pass_time()
        expect(tile(page, "Model version")).to_have_text(str(version))
        assert page.locator("#reward-table tbody tr").count() == rows + 1
        after = page.evaluate(look)
        assert (after["zoom"], after["focus"], after["open"]) == (before["zoom"], key, before["open"])
        assert abs(after["place"] - before["place"]) < 50, "the line that is read stays where it is"
        page.get_by_role("button", name="Show newer decisions").click()
        newest = server.source.data("front-page")["last_decisions"]
        ids = page.locator("#decisions-list li").evaluate_all("(all) => all.map((each) => each.dataset.key)")
        assert ids == [each["decision_id"] for each in newest]
        expect(page.locator("#decisions-list summary").first).to_be_focused()


def test_decisions_that_nobody_reads_are_replaced_by_newer_ones(browser, serve):
    server = serve()
    with open_page(browser, server.url) as page:
        server.source.pass_time()
        newest = server.source.data("front-page")["last_decisions"][0]
        expect(page.locator("#decisions-list li .id").first).to_have_text(f"#{newest['decision_id']}")
        expect(page.get_by_role("button", name="newer")).to_have_count(0)
        page.locator("#decisions-list summary").first.click()
        rows = page.locator("#decisions-list li").first.locator("tbody tr")
        arms = [*newest["chosen"], *filter(None, [newest["runner_up"]])]
        ids = rows.locator("td:nth-child(2)").all_text_contents()
        assert [each.split()[0] for each in ids] == [each["id"] for each in arms]


def test_it_says_when_the_server_is_gone_and_comes_back_by_itself(browser, serve):
    server = serve()
    with open_page(browser, server.url, allowed=NO_CONNECTION) as page:
        expect(page.locator("#live-text")).to_have_text("Live")
        server.stop()
        expect(page.locator("#live")).to_have_attribute("data-state", "old")
        expect(page.locator("#live-text")).to_contain_text("Last seen")
        expect(page.locator("#announcement")).to_contain_text("lost")
        page.set_viewport_size({"width": 390, "height": 700})
        page.locator("footer").scroll_into_view_if_needed()
        expect(page.locator("#live-text")).to_be_in_viewport()
        version = server.source.pass_time()
        server.start()
        expect(page.locator("#live-text")).to_have_text("Live")
        expect(tile(page, "Model version")).to_have_text(str(version))


def test_an_error_of_the_store_is_shown_and_goes_away(browser, serve):
    server = serve()
    with open_page(browser, server.url) as page:
        server.source.trouble = "the disk of `shop` is gone"
        expect(page.locator("#trouble")).to_have_text("The server cannot read the campaign: the disk of shop is gone")
        expect(page.locator("#trouble code")).to_have_text("shop")
        server.source.trouble = ""
        expect(page.locator("#trouble")).to_be_hidden()


def test_pause_keeps_the_page_as_it_is(browser, serve):
    server = serve()
    with open_page(browser, server.url) as page:
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#live-text")).to_have_text("Paused")
        version = server.source.pass_time()
        while page.evaluate("fetch('dashboard/data').then((answer) => answer.json())")["model"]["version"] != version:
            page.wait_for_timeout(50)
        page.wait_for_timeout(500)
        expect(tile(page, "Model version")).to_have_text("41")
        page.get_by_role("button", name="Resume").click()
        expect(tile(page, "Model version")).to_have_text(str(version))


def test_a_key_is_asked_for_and_kept_for_the_tab(browser, serve):
    server = serve(needs_key=True)  # which says of another key: this is no key, `armful key create` prints one
    with open_page(browser, server.url, wait="#key-dialog[open]", allowed=["401 (Unauthorized)"]) as page:
        field = page.get_by_label("Key", exact=True)
        expect(field).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        expect(field).to_be_visible()
        field.fill("armful_wrong_key")
        page.keyboard.press("Enter")
        expect(page.locator("#key-error")).to_have_text("This is no key: armful key create prints one.")
        expect(page.locator("#key-error code")).to_have_text("armful key create")
        field.fill(f" {KEY} ")
        page.keyboard.press("Enter")
        page.wait_for_selector("#reward-plot .scatterlayer .trace")
        expect(page.locator("#key-dialog")).to_be_hidden()
        expect(page.locator("#main")).to_be_focused()
        assert KEY not in page.url
        assert page.evaluate("localStorage.length") == 0
        page.reload()
        page.wait_for_selector("#reward-plot .scatterlayer .trace")


def test_several_campaigns_have_a_selector_and_names_are_text(browser, serve):
    server = serve(campaigns=3)
    with open_page(browser, server.url) as page:
        odd = server.source.names[2]
        page.get_by_label("Campaign").select_option(odd)
        expect(page.locator("h1")).to_have_text(odd)
        page.reload()
        expect(page.locator("h1")).to_have_text(odd)


def test_the_keyboard_reaches_everything_and_focus_is_seen(browser, serve):
    server = serve(campaigns=2)
    with open_page(browser, server.url) as page:
        page.get_by_role("button", name="Pause").click()  # so that no line is replaced on the way
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        wanted = page.evaluate(
            """() => {
                const all = document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]');
                window.reached = [...all].filter((each) => each.checkVisibility());
                return window.reached.length;
            }"""
        )
        assert wanted > 40
        page.evaluate("document.body.setAttribute('tabindex', '-1'); document.body.focus()")
        unseen = []
        for _ in range(wanted + 5):
            page.keyboard.press("Tab")
            unseen += page.evaluate(
                """() => {
                    const at = document.activeElement;
                    window.reached = window.reached.filter((each) => each !== at);
                    const style = getComputedStyle(at);
                    const isSeen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
                    return at === document.body || isSeen ? [] : [at.outerHTML.slice(0, 90)];
                }"""
            )
        assert page.evaluate("window.reached.map((each) => each.outerHTML.slice(0, 90))") == []
        assert unseen == []


def test_the_page_can_be_found_by_its_landmarks_and_headings(browser, serve):
    with open_page(browser, serve().url) as page:
        for role in ("banner", "main", "contentinfo"):
            assert page.get_by_role(role).count() == 1, role
        assert page.get_by_role("navigation", name="Sections").count() == 1
        levels = page.evaluate(
            "[...document.querySelectorAll('h1, h2, h3')].filter((e) => e.checkVisibility()).map((e) => +e.tagName[1])"
        )
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(later - before <= 1 for before, later in pairwise(levels))
        assert page.evaluate(
            "[...document.querySelectorAll('section')].every((e) => e.hasAttribute('aria-labelledby'))"
        )
        page.keyboard.press("Tab")
        expect(page.get_by_text("Skip to the dashboard")).to_be_focused()
        expect(page.get_by_text("Skip to the dashboard")).to_be_in_viewport()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_both_themes_at_both_widths_fit_and_can_be_read(browser, serve, theme, width):
    server = serve(campaigns=3)
    size = {"width": width, "height": 844}
    with open_page(browser, server.url, viewport=size, color_scheme=theme, has_touch=width == 390) as page:
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        page.get_by_label("Campaign").select_option(server.source.names[2])
        expect(page.locator("h1")).to_have_text(server.source.names[2])
        page.wait_for_selector("#reward-plot .scatterlayer .trace")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(245, 247, 249)", "dark": "rgb(18, 22, 27)"}[theme]
        assert page.evaluate(CONTRAST) == []


def test_the_theme_can_be_switched_and_charts_follow(browser, serve):
    server = serve()
    with open_page(browser, server.url, color_scheme="light") as page:
        colour = "document.getElementById('reward-plot').data.at(-1).line.color"
        assert page.evaluate(colour) == "rgb(0, 114, 178)"
        page.get_by_label("Theme").select_option("dark")
        assert page.evaluate(colour) == "rgb(86, 180, 233)"
        page.reload()
        page.wait_for_selector("#reward-plot .scatterlayer .trace")
        assert page.evaluate(colour) == "rgb(86, 180, 233)"
        page.emulate_media(media="print")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(colour) == "rgb(0, 114, 178)"
        expect(page.locator(".bar")).to_be_hidden()


def test_nothing_moves_for_those_who_do_not_want_it(browser, serve):
    with open_page(browser, serve().url, reduced_motion="reduce") as page:
        assert page.evaluate("getComputedStyle(document.querySelector('.dot')).animationName") == "none"


def test_the_range_shows_the_last_hours(browser, serve):
    with open_page(browser, serve().url) as page:
        page.get_by_label("Show").select_option(label="last hour")
        for name in ("reward", "exploration"):
            first, last = page.evaluate(f"document.getElementById('{name}-plot').layout.xaxis.range.map(Date.parse)")
            assert last - first == 3600 * 1000
        page.get_by_label("Show").select_option(label="everything")
        assert page.evaluate("document.getElementById('reward-plot').layout.xaxis.autorange") is True


RANGE = "document.getElementById('{}-plot').layout.xaxis.range.map((each) => Date.parse(each))"


def test_a_range_moves_with_new_points_and_ends_with_another_campaign(browser, serve):
    server = serve(campaigns=2, moves=True)
    with open_page(browser, server.url) as page:
        page.get_by_label("Show").select_option(label="last hour")
        before = [page.evaluate(RANGE.format(name)) for name in ("reward", "exploration")]
        for _ in range(3):
            version = server.source.pass_time()
            expect(tile(page, "Model version")).to_have_text(str(version))
        after = [page.evaluate(RANGE.format(name)) for name in ("reward", "exploration")]
        assert after == [[each + 45 * 60 * 1000 for each in span] for span in before]
        page.get_by_label("Campaign").select_option("newsletter")
        expect(page.locator("h1")).to_have_text("newsletter")
        page.wait_for_function("document.getElementById('reward-plot').layout.xaxis.autorange === true")
        expect(page.get_by_label("Show")).to_have_value("0")


def zoom(page, name="reward"):
    """Drag across the middle of a chart over time."""
    page.locator(f"#{name}-plot").scroll_into_view_if_needed()
    box = page.locator(f"#{name}-plot .nsewdrag").bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 100, steps=5)
    page.mouse.up()
    page.wait_for_function(f"document.getElementById('{name}-plot').layout.xaxis.autorange === false")


@pytest.mark.parametrize("way", ["button", "double click", "another campaign"])
def test_a_zoom_is_of_both_charts_and_is_left_by(browser, serve, way):
    server = serve(campaigns=2)
    with open_page(browser, server.url) as page:
        buttons = page.get_by_role("button", name="Show all", exact=True)
        expect(buttons).to_have_count(0)
        zoom(page, "exploration")
        expect(buttons).to_have_count(2)
        assert page.evaluate(RANGE.format("reward")) == page.evaluate(RANGE.format("exploration"))
        if way == "button":
            buttons.first.click()
            expect(page.get_by_label("Show")).to_be_focused()
        elif way == "double click":
            page.locator("#exploration-plot .nsewdrag").dblclick()
        else:
            page.get_by_label("Campaign").select_option("newsletter")
            expect(page.locator("h1")).to_have_text("newsletter")
        expect(buttons).to_have_count(0)
        for name in ("reward", "exploration"):
            page.wait_for_function(f"document.getElementById('{name}-plot').layout.xaxis.autorange === true")


def test_a_short_range_of_a_long_series_has_markers_and_an_axis_of_its_own(browser, serve, monkeypatch):
    server = serve(points=200)
    made = server.source.data

    def with_an_early_peak(name):
        data = made(name)
        for each in data["series"][:20]:
            each["chosen"] = {"n": 700, "mean": 5.0, "low": 4.9, "high": 5.1}
        return data

    monkeypatch.setattr(server.source, "data", with_an_early_peak)
    with open_page(browser, server.url) as page:
        look = """(() => { const { data, layout } = document.getElementById('reward-plot');
            return [data.at(-1).marker.size, data.at(-1).x.length, layout.yaxis.range]; })()"""
        assert page.evaluate(look)[2][1] > 5
        page.get_by_label("Show").select_option(label="last 6 hours")
        size, n, (low, high) = page.evaluate(look)
        assert (size, n) == (7, 200)
        seen = [each[share] for each in made("x")["series"][-24:] for share in ("chosen", "holdout")]
        assert 0 <= low < min(each["low"] for each in seen)
        assert max(each["high"] for each in seen) < high < 0.5


def test_lines_and_bands_are_broken_where_nothing_was_decided_for_long(browser, serve, monkeypatch):
    server = serve(points=30)
    made = server.source.data

    def with_a_pause(name):
        data = made(name)
        for each in data["series"][:12]:
            each["from"], each["to"] = (
                (datetime.fromisoformat(each[end]) - timedelta(hours=9)).isoformat() for end in ("from", "to")
            )
        return data

    monkeypatch.setattr(server.source, "data", with_a_pause)
    with open_page(browser, server.url) as page:
        traces = page.evaluate("document.getElementById('reward-plot').data.map((t) => [t.name ?? null, t.y])")
        chosen = next(y for name, y in traces if name == "chosen")
        assert chosen.index(None) == 12
        assert chosen.count(None) == 1
        band = [y for name, y in traces if name is None][2]
        assert band.index(None) == 2 * 12
        area = page.evaluate("document.getElementById('exploration-plot').data[0].y")
        assert area.index(None) == 2 * 12


@pytest.mark.parametrize(("value", "expected"), [(0.0, [0, 1]), (0.4, None)])
def test_rewards_that_are_not_negative_have_an_axis_that_is_not(browser, serve, monkeypatch, value, expected):
    server = serve(points=6)
    made = server.source.data

    def with_equal_means(name):
        data = made(name)
        for each in data["series"]:
            each["chosen"] = each["holdout"] = {"n": 9, "mean": value, "low": None, "high": None}
            each["explored"] = None
        return data

    monkeypatch.setattr(server.source, "data", with_equal_means)
    with open_page(browser, server.url) as page:
        low, high = page.evaluate("document.getElementById('reward-plot').layout.yaxis.range")
        assert low >= 0
        assert expected is None or [low, high] == expected


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


def test_an_empty_service_says_what_to_do_next(browser, serve):
    example = {"candidates": [{"id": "a", "features": [0.2, 0.1]}]}
    server = serve(points=0, openapi=json.loads(document("front-page", example)))
    with open_page(browser, server.url, wait="#next pre") as page:
        command = shlex.split(page.locator("#next pre").text_content())
        assert command[:4] == ["curl", "-X", "POST", f"{server.url}/v1/decisions"]
        assert json.loads(command[command.index("-d") + 1]) == example
        expect(page.locator("#next a")).to_have_attribute("href", "docs")
        for name in ("reward", "coefficients", "decisions"):
            expect(page.locator(f"#{name}")).to_be_hidden()
        server.source.pass_time()
        page.wait_for_selector("#reward-plot .scatterlayer .trace")
        expect(page.locator("#next")).to_be_hidden()


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_sections_can_be_jumped_to_and_tables_keep_their_first_column(browser, serve, width):
    with open_page(browser, serve().url, viewport={"width": width, "height": 844}, has_touch=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".bar").bounding_box()["height"] < 60
        page.get_by_role("navigation", name="Sections").get_by_role("link", name="Audit").click()
        expect(page.locator("#audit-title")).to_be_in_viewport()
        expect(page.get_by_role("navigation", name="Sections")).to_be_in_viewport()
        page.locator("#reward details summary").click()
        expect(page.locator("#reward-table th", has_text=re.compile("^to$"))).to_be_hidden()
        first = page.locator("#reward-table tbody th").first
        at = first.bounding_box()["x"]
        page.evaluate("document.querySelector('#reward .scroll').scrollLeft = 200")
        assert first.bounding_box()["x"] == at


def test_a_campaign_without_any_reward_yet_says_so(browser, serve, monkeypatch):
    server = serve(points=0)
    made = server.source.data
    monkeypatch.setattr(server.source, "data", lambda name: {**made(name), "decisions": 3})
    with open_page(browser, server.url, wait="#content:not([hidden])") as page:
        expect(page.locator("#reward-text")).to_have_text("No reward has come yet.")
        expect(page.locator("#exploration")).to_be_hidden()
        server.source.pass_time()
        page.wait_for_selector("#reward-plot .scatterlayer .trace")
        page.wait_for_selector("#exploration-plot .scatterlayer .trace")


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


def test_the_page_of_the_interface_shows_every_route_with_a_command_to_copy(browser, serve):
    described = json.loads(document("front-page", {"candidates": [{"id": "a", "features": [0.2, 0.1]}]}))
    server = serve(openapi=described)
    with open_page(browser, f"{server.url}/docs", wait=".operation", permissions=["clipboard-read"]) as page:
        routes = [(method, path) for path, item in described["paths"].items() for method in item]
        shown = page.locator(".operation h2").evaluate_all(
            "(all) => all.map((each) => [...each.children].map((part) => part.textContent))"
        )
        assert [tuple(each) for each in shown] == routes
        decide = page.locator("#post--v1-decisions")
        for words in ("Idempotency-Key", "candidates", "constraint", "exclude", "model_version", "409"):
            expect(decide).to_contain_text(words)
        decide.get_by_role("button", name="Copy").click()
        expect(page.locator("#announcement")).to_have_text("Copied.")
        command = shlex.split(page.evaluate("navigator.clipboard.readText()"))
        example = described["paths"]["/v1/decisions"]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert command[:4] == ["curl", "-X", "POST", f"{server.url}/v1/decisions"]
        assert json.loads(command[command.index("-d") + 1]) == example
        assert "Authorization: Bearer KEY" in command
        expect(page.locator("main")).to_contain_text("where the service has no keys, leave out that line")
        expect(page.locator("#get--v1-decisions-id- pre").first).to_contain_text("/v1/decisions/17'")
        assert page.evaluate(CONTRAST) == []
    with open_page(
        browser, f"{server.url}/docs", wait=".operation", viewport={"width": 390, "height": 844}, color_scheme="dark"
    ) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate(CONTRAST) == []


def test_a_hostile_description_is_shown_as_text(browser, serve):
    bad = "<img src=x onerror=alert(1)>"
    loop = {"type": "object", "title": bad, "properties": {"again": {"$ref": "#/components/schemas/Loop"}}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Loop"}}}
    operation = {"summary": bad, "requestBody": {"content": content}, "responses": {"200": {"description": bad}}}
    described = {
        "openapi": "3.1.0",
        "info": {"title": bad, "version": bad, "description": bad},
        "paths": {f"/{bad}": {"post": operation}},
        "components": {"schemas": {"Loop": loop}},
    }
    with open_page(browser, f"{serve(openapi=described).url}/docs", wait=".operation") as page:
        expect(page.locator("h1")).to_have_text(bad)
        assert page.locator("img").count() == 0
