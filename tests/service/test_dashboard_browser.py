"""The dashboard in a real Chromium, on made data."""

import json
import re
import shlex
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from armful.service._openapi import document
from tests import browsers
from tests.service.dashboard_server import KEY, open_page, tile

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


def test_every_chart_is_drawn_and_has_its_table(browser, serve):
    server = serve()
    with open_page(browser, server.url) as page:
        expect(page.locator("h1")).to_have_text("front-page")
        expect(page.locator("#sentence")).to_have_text("Chosen sets earn 23\u00a0% more than random ones.")
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
