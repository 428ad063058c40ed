"""The report of a reproduction in a real Chromium, at the width of a phone."""

import pytest

from armful.experiments import _reproduction as reproduction
from armful.experiments._report import write
from armful.experiments._reproduction import Protocol
from tests import browsers

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_no_wider_than_the_screen_and_its_figures_are_drawn(tmp_path, width):
    done = reproduction.run(Protocol(sizes=(2, 3), runs=3), tmp_path / "cells", workers=1)
    page_path = write(done, tmp_path, seconds=1.0)
    with browsers.launched() as browser:
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.set_default_timeout(browsers.PATIENCE_MS)
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(page_path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        pictures = "[...document.images].map((image) => image.complete && image.naturalWidth > 0)"
        drawn = page.evaluate(pictures)
        assert drawn
        assert all(drawn)
        assert errors == []
