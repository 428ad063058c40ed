"""Who may call: bearer keys with roles, or a request from this machine."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from armful.campaigns import Campaign
from armful.errors import LedgerError
from armful.service import _access, _shared_reads, keys
from armful.service._access import is_local
from tests.service.small_service import features, make_campaign, request_of, serving

CALLS = {
    "decide": [("POST", "/v1/decisions"), ("PUT", "/v1/arms")],
    "reward": [("POST", "/v1/decisions/1/rewards"), ("POST", "/v1/rewards")],
    "read": [("GET", "/v1/decisions/1"), ("GET", "/v1/status"), ("GET", "/v1/model"), ("GET", "/metrics")],
}


def add_key(folder, *roles, **more):
    key_id, key, kept = keys.new_key()
    with Campaign.open(folder) as campaign:
        campaign.ledger.add_key(id=key_id, hash=kept, roles=roles, label="test", **more)
    return key_id, key


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def folder(tmp_path):
    return make_campaign(tmp_path / "autumn")


@pytest.mark.parametrize("role", keys.ROLES)
def test_a_key_allows_what_its_role_says_and_no_more(folder, role):
    _, key = add_key(folder, role)
    with serving(folder, client=("203.0.113.9", 1)) as service:
        for needed, calls in CALLS.items():
            for method, path in calls:
                response = service.request(method, path, headers=bearer(key), json={} if method != "GET" else None)
                if needed == role:
                    assert response.status_code not in (401, 403)
                else:
                    assert response.status_code == 403
                    assert needed in response.json()["detail"]


def test_everybody_sees_that_it_is_alive_and_what_it_offers(folder):
    add_key(folder, "read")
    with serving(folder, client=("203.0.113.9", 1)) as service:
        for path in ("/healthz", "/readyz", "/openapi.json"):
            assert service.get(path).status_code == 200
        for path in ("/v1/status", "/metrics", "/dashboard/data"):
            assert service.get(path).status_code == 401
            assert service.get(path).headers["content-type"] == "application/problem+json"


def test_the_columns_of_the_campaign_are_shown_to_those_who_may_read(folder):
    reader, decider = (add_key(folder, role)[1] for role in ("read", "decide"))

    def n_features(response):
        example = response.json()["paths"]["/v1/decisions"]["post"]["requestBody"]["content"]["application/json"]
        return len(example["example"]["candidates"][0]["features"])

    with serving(folder, client=("203.0.113.9", 1)) as service:
        assert n_features(service.get("/openapi.json", headers=bearer(reader))) == 4
        assert n_features(service.get("/openapi.json", headers=bearer(decider))) == 2
        assert n_features(service.get("/openapi.json")) == 2
    with serving(folder) as service:
        assert n_features(service.get("/openapi.json")) == 4


def test_without_keys_only_this_machine_may_call(folder):
    with serving(folder) as service:
        assert service.post("/v1/decisions", request_of(features())).status_code == 200
        for headers in (
            {"Host": "shop.example"},
            {"X-Forwarded-For": "203.0.113.9"},
            {"X-Forwarded-Port": "443"},
            {"Via": "1.1 proxy.example"},
            {"Forwarded": "for=203.0.113.9"},
            {"Origin": "https://evil.example"},
        ):
            response = service.post("/v1/decisions", request_of(features()), headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"].startswith("Bearer")
    with serving(folder, client=("203.0.113.9", 1)) as service:
        assert service.post("/v1/decisions", request_of(features())).status_code == 401
    with serving(folder, client=None) as service:
        assert service.post("/v1/decisions", request_of(features())).status_code == 401


def test_with_keys_this_machine_needs_one_too_but_for_the_dashboard(folder):
    add_key(folder, "decide")
    with serving(folder) as service:
        assert service.post("/v1/decisions", request_of(features())).status_code == 401
        assert service.get("/dashboard/data").status_code == 200
        assert service.get("/dashboard/data", headers={"X-Forwarded-For": "203.0.113.9"}).status_code == 401
        assert service.get("/metrics").status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic dXNlcjpwYXNz",
        "Bearer armful_000000000000_" + "0" * 48,
        "Bearer armful__",
        "Bearer " + "x" * 10_000,
        "armful_000000000000_" + "0" * 48,
    ],
)
def test_what_is_no_key_of_the_campaign_is_refused(folder, header):
    add_key(folder, "decide")
    with serving(folder) as service:
        response = service.post("/v1/decisions", request_of(features()), headers={"Authorization": header})
        assert response.status_code == 401


def test_a_scheme_and_a_key_that_are_wrong_are_told_apart(folder):
    add_key(folder, "read")
    with serving(folder) as service:
        for header, sentence in [("Basic abc", "the header Authorization must be"), ("Bearer abc", "this is no key")]:
            response = service.get("/v1/status", headers={"Authorization": header})
            assert response.status_code == 401
            assert response.json()["detail"].startswith(sentence)


def test_a_wrong_secret_is_refused(folder):
    _, key = add_key(folder, "read")
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
    with serving(folder) as service:
        assert service.get("/v1/status", headers=bearer(key)).status_code == 200
        assert service.get("/v1/status", headers=bearer(wrong)).status_code == 401
        assert service.get("/v1/status", headers={"Authorization": f"bEaReR  {key}"}).status_code == 200


def test_a_key_of_another_campaign_is_refused(folder, tmp_path):
    _, foreign = add_key(make_campaign(tmp_path / "other"), "read")
    with serving(folder) as service:
        assert service.get("/v1/status", headers=bearer(foreign)).status_code == 401


def test_an_expired_key_is_refused(folder):
    now = datetime.now(UTC)
    _, key = add_key(folder, "read", expires_at=now + timedelta(hours=1))
    with serving(folder, now=lambda: now) as service:
        assert service.get("/v1/status", headers=bearer(key)).status_code == 200
        service.worker.access._now = lambda: now + timedelta(hours=1)
        response = service.get("/v1/status", headers=bearer(key))
        assert response.status_code == 401
        assert "expired" in response.json()["detail"]


def test_a_revoked_key_is_refused_as_soon_as_it_is_not_remembered_any_more(folder, monkeypatch):
    key_id, key = add_key(folder, "read")
    with serving(folder) as service:
        assert service.get("/v1/status", headers=bearer(key)).status_code == 200
        service.worker.ledger.revoke_key(key_id)
        clock = _shared_reads.time.monotonic() + _access.REMEMBERED
        monkeypatch.setattr(_shared_reads, "time", SimpleNamespace(monotonic=lambda: clock))  # not that of the loop
        response = service.get("/v1/status", headers=bearer(key))
        assert response.status_code == 401
        assert "revoked" in response.json()["detail"]


def test_a_revoked_key_stays_revoked_when_the_clock_is_set_back(folder):
    key_id, key = add_key(folder, "read")
    with Campaign.open(folder) as campaign:
        campaign.ledger.revoke_key(key_id)
    with serving(folder, now=lambda: datetime.now(UTC) - timedelta(hours=1)) as service:
        response = service.get("/v1/status", headers=bearer(key))
    assert response.status_code == 401
    assert "revoked" in response.json()["detail"]


@pytest.mark.parametrize(
    ("client", "host", "local"),
    [
        ("127.0.0.1", b"127.0.0.1:8000", True),
        ("127.0.0.1", b"localhost", True),
        ("127.8.8.8", b"localhost:80", True),
        ("::1", b"[::1]:8000", True),
        ("::1", b"[::1]", True),
        ("127.0.0.1", b"", False),
        ("127.0.0.1", b"localhost.evil.example", False),
        ("127.0.0.1", b"evil.example:8000", False),
        ("127.0.0.1", b"localhost:80:80", False),
        ("10.0.0.7", b"127.0.0.1:8000", False),
        ("unix", b"localhost", False),
    ],
)
def test_which_requests_are_local(client, host, local):
    assert is_local({"client": (client, 1)}, {b"host": host}) is local


def test_keys_are_hashed_and_differ():
    made = {keys.new_key()[1] for _ in range(100)}
    assert len(made) == 100
    key_id, key, kept = keys.new_key()
    assert keys.key_id(key) == key_id
    assert key.encode() not in kept
    assert keys.matches(key, kept)
    assert not keys.matches(key + "0", kept)
    with pytest.raises(ValueError, match="'admin'"):
        keys.check_roles(["read", "admin"])
    with pytest.raises(ValueError, match="role"):
        keys.check_roles([])
    assert keys.check_roles(["read", "decide", "read"]) == ("decide", "read")


@pytest.mark.parametrize(("method", "headers"), [("find_key", bearer(keys.new_key()[1])), ("keys", {})])
def test_a_store_that_cannot_say_who_may_call_is_a_reason_to_ask_again(folder, monkeypatch, method, headers):
    def fail(*_):
        raise LedgerError("no connection to db.example.com")

    with serving(folder) as service:
        monkeypatch.setattr(service.worker.ledger, method, fail)
        for path in ("/v1/status", "/v1/model", "/v1/decisions/1"):
            response = service.get(path, headers=headers)
            assert response.status_code == 503
            assert response.headers["retry-after"]
            assert "db.example.com" not in response.text


def test_who_is_refused_has_a_rate_too_and_costs_no_reads_beyond_it(tmp_path, monkeypatch):
    folder = make_campaign(tmp_path / "autumn", "service.rate = 0.001\n")
    _, key = add_key(folder, "read")
    with serving(folder, client=("203.0.113.9", 1)) as service:
        ledger, looked_up = service.worker.ledger, []
        find = ledger.find_key
        monkeypatch.setattr(ledger, "find_key", lambda key_id: looked_up.append(key_id) or find(key_id))
        assert service.get("/v1/status", headers=bearer(key)).status_code == 200
        assert service.get("/v1/status", headers=bearer(keys.new_key()[1])).status_code == 401
        for headers in (*(bearer(keys.new_key()[1]) for _ in range(5)), {}, {"Authorization": "Basic x"}):
            for path in ("/v1/status", "/dashboard/data"):
                response = service.get(path, headers=headers)
                assert response.status_code == 429
                assert "for one address" in response.json()["detail"]
                assert response.headers["retry-after"]
        assert len(looked_up) == 2
        assert "for one key" in service.get("/v1/status", headers=bearer(key)).json()["detail"], (
            "the key has its own rate"
        )


def test_who_guesses_keys_does_not_shut_out_a_valid_key_from_the_same_address(tmp_path, monkeypatch):
    folder = make_campaign(tmp_path / "autumn", "service.rate = 0.001\n")
    _, key = add_key(folder, "read")
    with serving(folder, client=("203.0.113.9", 1)) as service:
        monkeypatch.setattr(service.worker.rate_limit, "_rate", 0)
        assert service.get("/v1/status", headers=bearer(key)).status_code == 200
        statuses = [service.get("/v1/status", headers=bearer(keys.new_key()[1])).status_code for _ in range(3)]
        assert statuses == [401, 429, 429]
        clock = _shared_reads.time.monotonic() + _access.REMEMBERED
        monkeypatch.setattr(_shared_reads, "time", SimpleNamespace(monotonic=lambda: clock))
        assert service.get("/v1/status", headers=bearer(key)).status_code == 200


def test_who_reads_the_document_without_a_key_is_not_refused_later(tmp_path):
    folder = make_campaign(tmp_path / "autumn", "service.rate = 3\n")
    _, key = add_key(folder, "read")
    with serving(folder, client=("203.0.113.9", 1)) as service:
        for _ in range(8):
            assert service.get("/openapi.json").status_code == 200
        assert service.get("/v1/status", headers=bearer(key)).status_code == 200


def test_valid_keys_do_not_use_up_the_rate_of_their_address(tmp_path):
    folder = make_campaign(tmp_path / "autumn", "service.rate = 0.001\n")
    added = [add_key(folder, "read")[1] for _ in range(3)]
    with serving(folder, client=("203.0.113.9", 1)) as service:
        assert {service.get("/v1/status", headers=bearer(key)).status_code for key in added} == {200}
