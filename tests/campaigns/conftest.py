import pytest

from tests.campaigns.small import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()
