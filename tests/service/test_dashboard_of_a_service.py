"""The dashboard as a part of the service: what is decided is shown, to those who may read it."""

import asyncio
from contextlib import asynccontextmanager

import httpx
import pytest

from armful.campaigns import Campaign
from armful.service.app import create_app
from armful.service.keys import new_key
from armful.service.options import ServeOptions

SETTINGS = """
name = "front-page"
id = "id"
choose.k = 2
policy.cap = 1
features.ready = 2
outcomes.reward = "click"
holdout.share = 0
service.explore = 0
"""
FAR = ("203.0.113.7", 4711)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "campaign.toml").write_text(SETTINGS)
    return str(tmp_path)


@asynccontextmanager
async def running(folder, *, client=("127.0.0.1", 4711), **options):
    app = create_app(folder, options=ServeOptions(**options))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, client=client)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
            yield asking
        if options.get("dashboard", True):
            app.state.before_shutdown()


def new_keys(folder, *roles):
    with Campaign.open(folder) as campaign:
        found = []
        for role in roles:
            id, secret, kept = new_key()
            campaign.ledger.add_key(id=id, hash=kept, roles=(role,), label="", expires_at=None)
            found.append({"Authorization": f"Bearer {secret}"})
        return found


def test_decisions_and_their_rewards_are_shown(folder):
    async def decide():
        async with running(folder) as asking:
            arms = [{"id": name, "features": [0.1 * i, 0.3]} for i, name in enumerate("abcd")]
            decided = (await asking.post("/v1/decisions", json={"candidates": arms, "unit": "user-17"})).json()
            first = decided["chosen"][0]["id"]
            await asking.post(f"/v1/decisions/{decided['decision_id']}/rewards", json={"rewards": {first: 1.0}})
            stored = (await asking.get(f"/v1/decisions/{decided['decision_id']}")).json()
            return stored, (await asking.get("/dashboard/data")).json(), await asking.get("/")

    stored, shown, page = asyncio.run(decide())
    (decision,) = shown["last_decisions"]
    assert decision["chosen"] == stored["chosen"]
    assert decision["runner_up"] == stored["runner_up"]
    assert decision["chosen"][0]["reward"] == 1.0
    assert decision["unit_present"]
    assert "user-17" not in str(shown)
    assert "scores" in decision["why"]
    assert (shown["campaign"], shown["decisions"]) == ("front-page", 1)
    assert "script-src 'self'" in page.headers["content-security-policy"]


def test_from_elsewhere_only_a_key_that_may_read_opens_it(folder):
    decide, read = new_keys(folder, "decide", "read")

    async def ask():
        async with running(folder, client=FAR) as asking:
            headers = [{}, {"Authorization": "Bearer armful_0_wrong"}, decide, read]
            found = [(await asking.get("/dashboard/data", headers=each)).status_code for each in headers]
            return found, await asking.get("/dashboard/events"), (await asking.get("/")).status_code

    statuses, refused, page = asyncio.run(asyncio.wait_for(ask(), 120))  # a stream that is let in does not end
    assert statuses == [401, 401, 403, 200]
    assert (refused.status_code, refused.headers["content-type"]) == (401, "application/problem+json")
    assert refused.headers["x-request-id"]
    assert page == 200


def test_this_machine_needs_no_key_and_another_site_gets_nothing(folder):
    new_keys(folder, "read")

    async def ask():
        async with running(folder) as asking:
            headers = [{}, {"Host": "evil.example"}, {"X-Forwarded-For": "1.2.3.4"}, {"Origin": "https://evil.example"}]
            return [(await asking.get("/dashboard/campaigns", headers=each)).status_code for each in headers]

    assert asyncio.run(ask()) == [200, 401, 401, 401]


def test_it_can_be_left_out(folder):
    async def ask():
        async with running(folder, dashboard=False) as asking:
            return [(await asking.get(path)).status_code for path in ("/", "/docs", "/dashboard/data")]

    assert asyncio.run(ask()) == [404, 404, 404]
