"""The dashboard as its users open it: of `armful demo --serve` and of `armful dashboard`, in a real Chromium."""

import pytest
from playwright.sync_api import expect

from tests import browsers
from tests.cli.campaigns import day, in_a_process, read_rows, write_customers, write_rows
from tests.service.dashboard_server import open_page, tile
from tests.service.running import Service, until

pytestmark = [pytest.mark.slow, pytest.mark.browser]
expect.set_options(timeout=browsers.PATIENCE_MS)


def number(page, title):
    return int(tile(page, title).text_content().replace(",", ""))


def test_the_demo_is_drawn_and_goes_on_without_reloading(browser, tmp_path):
    service = Service("armful", "demo", "--serve", "--port", "0", "--out", "try", "--json", cwd=tmp_path)
    try:
        with service.client() as client:
            until(lambda: client.status().model.n_observations > 0, "learning")
        with open_page(browser, service.url) as page:
            for name in ("reward", "exploration", "coefficients", "positions"):
                page.wait_for_selector(f"#{name}-plot svg .trace, #{name}-plot svg .bars .point", state="attached")
            page.evaluate("window.wasNotReloaded = true")
            decisions, version = number(page, "Decisions"), number(page, "Model version")
            until(lambda: number(page, "Decisions") > decisions, "another decision on the page")
            until(lambda: number(page, "Model version") > version, "another model on the page")
            assert page.evaluate("window.wasNotReloaded")
            expect(page.locator("#live-text")).to_have_text("Live")
    finally:
        service.close()


def test_a_campaign_of_the_command_line_is_shown(browser, tmp_path):
    """All who were chosen bought, and nobody of the holdout: the headline is the same whoever was chosen."""
    write_customers(tmp_path / "customers.csv", n=300)
    in_a_process("init", "autumn", "--from", "customers.csv", "--k", "60", "--reward", "bought", cwd=tmp_path)
    in_a_process("choose", "autumn", "customers.csv", "--now", day(0), cwd=tmp_path)
    chosen = read_rows(tmp_path / "autumn" / "rounds" / "001" / "chosen.csv")
    bought = [int(row["share"] == "chosen") for row in chosen]
    write_rows(tmp_path / "outcomes.csv", {"customer_id": [row["id"] for row in chosen], "bought": bought})
    in_a_process("learn", "autumn", "outcomes.csv", "--now", day(7), cwd=tmp_path)
    service = Service("armful", "dashboard", "autumn", "--port", "0", "--json", cwd=tmp_path)
    try:
        with open_page(browser, service.url) as page:
            expect(page.locator("h1")).to_have_text("autumn")
            headline = page.locator("#sentence")
            expect(headline).to_contain_text("No lift can be given yet: all known rewards of the holdout are 0")
            assert number(page, "Rounds") == 1
            assert number(page, "Rewards") == len(chosen)
            assert page.locator("#coefficients-plot svg .trace").count() > 0
    finally:
        service.close()
