import pickle

import numpy as np
import pytest

import armful


def unmet_restriction():
    armful.Requiring(armful.Excluding(armful.TopK(1), [0]), [0]).best(np.ones(3))


def mistaken_settings():
    raise armful.SettingsError("campaign.toml", ["line 1: one mistake", "line 2: and another"])


def refused_by_a_service():
    raise armful.ServiceError("no such arm", 404, {"title": "Not found"})


@pytest.mark.parametrize("fails", [unmet_restriction, mistaken_settings, refused_by_a_service])
def test_an_error_of_another_process_says_the_same_here(fails):
    """Processes exchange exceptions by pickle, which makes them anew."""
    with pytest.raises((ValueError, RuntimeError)) as raised:
        fails()
    error = raised.value
    received = pickle.loads(pickle.dumps(error))
    assert str(received) == str(error)
    assert isinstance(error, type(received))
    for name in ("problems", "where", "status", "problem"):
        assert getattr(received, name, None) == getattr(error, name, None)
