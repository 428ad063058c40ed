"""The charts over time of the dashboard, in a real Chromium: points, ranges, zoom."""

import re
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import expect

from armful.campaigns.decisions._series import mean_of
from tests import browsers
from tests.service.dashboard_server import open_page, tile

pytestmark = [pytest.mark.slow, pytest.mark.browser]
expect.set_options(timeout=browsers.PATIENCE_MS)


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


def added(means):
    """The totals behind several means."""
    sums = {name: sum(each[name] for each in means) for name in ("n", "squares", "product", "sizes")}
    sums["sum"] = sum(each["n"] * each["mean"] for each in means)
    return {f"a_{name}": value for name, value in sums.items()}


def test_bands_of_clicks_stay_between_0_and_1_where_points_are_drawn_as_one(browser, serve):
    server = serve()
    with open_page(browser, server.url) as page:
        bands = page.evaluate("document.getElementById('reward-plot').data.filter((t) => t.fill).map((t) => t.y)")
        series = server.source.data("front-page")["series"]
        for share, band in zip(("holdout", "explored", "chosen"), bands, strict=True):
            groups = [[each[share] for each in series[i : i + 3] if each[share]["n"]] for i in range(0, 96, 3)]
            expected = [mean_of(added(group), "a", yes_or_no=True) for group in groups]
            assert band == pytest.approx([each["high"] for each in expected] + [e["low"] for e in expected][::-1])
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
        expect(page.locator("#range option:checked")).to_have_text("what was zoomed")
        span = page.evaluate(RANGE.format("reward"))
        assert span == page.evaluate(RANGE.format("exploration"))
        middles = [
            sum(datetime.fromisoformat(each[end]).timestamp() * 500 for end in ("from", "to"))
            for each in server.source.data("front-page")["series"]
        ]
        for name in ("reward", "exploration"):
            markers = page.locator(f"#{name}-plot .scatterlayer .trace:last-child .point")
            shown = markers.evaluate_all("(all) => all.filter((each) => each.checkVisibility()).length")
            assert shown == sum(span[0] <= each <= span[1] for each in middles)
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
