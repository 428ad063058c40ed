"""The made news page of `armful demo --serve`, and the whole demo as its user runs it."""

import csv
import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from armful.campaigns import Campaign, read_settings
from armful.service.client import ChosenArm, Decision
from armful.service.demo import ServiceDemo
from armful.service.demo._news import EXAMINED, N_ARTICLES, NewsPage, best_clicks, expected_clicks, random_clicks
from armful.service.demo._readers import Totals
from tests.service.running import Service, until

CONTEXT = {"device": "phone", "daypart": "morning"}


def test_clicks_have_the_probabilities_that_are_said():
    """Mean clicks on a fixed page over 20,000 readers; a false alarm in 5 standard errors is below one in a million."""
    page, rng = NewsPage(0), np.random.default_rng()
    probability = page.probability(CONTEXT)
    shown = list(probability)[:5]
    n = [len(page.clicks(shown, probability, rng)) for _ in range(20_000)]
    assert abs(np.mean(n) - expected_clicks(shown, probability)) < 5 * np.std(n) / np.sqrt(len(n))


def test_the_best_page_is_better_than_a_random_one_and_depends_on_the_reader():
    page, rng = NewsPage(0), np.random.default_rng(0)
    probability = page.probability(CONTEXT)
    pages = [rng.choice(list(probability), 5, replace=False).tolist() for _ in range(20_000)]
    clicks = [expected_clicks(shown, probability) for shown in pages]
    assert max(clicks) <= best_clicks(probability)
    assert best_clicks(probability) > 2 * random_clicks(probability)
    assert abs(np.mean(clicks) - random_clicks(probability)) < 5 * np.std(clicks) / np.sqrt(len(clicks))
    evening = page.probability({"device": "desktop", "daypart": "evening"})
    assert max(probability, key=probability.get) != max(evening, key=evening.get)
    assert len(EXAMINED) == 5
    assert len(page.articles) == N_ARTICLES


def test_totals_count_pages_of_the_model_and_of_the_holdout_apart():
    totals, probability = Totals(), {f"a{i}": 0.1 for i in range(10)}
    chosen = [ChosenArm(id=f"a{i}", position=i + 1) for i in range(5)]
    totals.add(Decision(decision_id="1", chosen=chosen), probability, 2)
    totals.add(Decision(decision_id="2", chosen=chosen, share="holdout"), probability, 1)
    assert (totals.pages, totals.holdout_pages, totals.clicks) == (1, 1, 3)
    assert totals.chosen == pytest.approx(totals.best) == pytest.approx(totals.at_random) == 0.1 * EXAMINED.sum()


def test_the_campaign_is_made_once_with_valid_settings(tmp_path):
    demo = ServiceDemo(tmp_path)
    demo.make_impressions()
    demo.init()
    assert any("interactions" in line for line in demo.edit())
    settings = read_settings(demo.campaign)
    assert (settings.choose.k, settings.service.context, settings.service.positions) == (
        5,
        ("device", "daypart"),
        "estimate",
    )
    with demo.impressions.open(encoding="utf-8") as file:
        assert next(csv.DictReader(file)).keys() >= {"article", "topic", "device", "clicked"}
    with pytest.raises(FileExistsError, match="is there already: remove it, or give another folder by --out"):
        demo.make_impressions()
    assert demo.totals() is None


@pytest.mark.slow
def test_one_command_shows_a_service_that_learns(tmp_path, interruptible):
    service = Service("armful", "demo", "--serve", "--port", "0", "--out", "try", "--json", cwd=tmp_path)
    try:
        with service.client() as client:
            until(lambda: client.status().rewards > 20 and client.status().model.n_observations > 0, "learning")
            assert client.status().registered_arms == N_ARTICLES
        assert service.end(signal.SIGINT) == 0
        assert re.search(r"pages were shown. In truth, the model's had \d\.\d+ clicks", service.log())
        clicks = json.loads((tmp_path / "try" / "news" / "readers.json").read_text(encoding="utf-8"))
        assert clicks["late"], "some clicks come seconds after their page"
        with Campaign.open(tmp_path / "try" / "news") as campaign:
            assert campaign.status().rewards == clicks["clicks"]
    finally:
        service.close()


@pytest.mark.slow
def test_it_ends_by_itself(tmp_path):
    command = [sys.executable, "-m", "armful", "demo", "--serve", "--port", "0", "--seconds", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900)
    assert (done.returncode, done.stderr) == (0, "")
    assert "armful init armful-demo/news --from armful-demo/impressions.csv --kind service" in done.stdout
    assert "armful serve goes on" in done.stdout
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900)
    assert (again.returncode, again.stdout) == (2, "")
    assert "is there already" in again.stderr
