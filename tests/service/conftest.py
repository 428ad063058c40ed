"""Chromium, and servers of a dashboard for it."""

import pytest

from tests import browsers


@pytest.fixture(scope="module")
def browser():
    with browsers.launched() as browser:
        yield browser


@pytest.fixture
def serve():
    """Give a function that starts the server of a dashboard of made data."""
    from tests.service.dashboard_server import started_servers  # noqa: PLC0415 - most tests here need no server

    with started_servers() as start:
        yield start
