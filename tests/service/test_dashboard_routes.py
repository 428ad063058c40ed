"""The dashboard's routes, without a browser: headers, data, keys, errors and the feed."""

import asyncio
import gzip
import json
import threading

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import Response

from armful.campaigns import Campaign
from armful.service.dashboard import CONTENT_POLICY, Feed, _static, routes
from armful.service.dashboard._static import FOLDER, plotly_path
from armful.service.showing import dashboard_app
from tests.service.made_dashboard import MadeSource
from tests.service.small_service import Service, make_campaign


class Client:
    """Requests to the routes, without a server."""

    def __init__(self, source=None, **options):
        self.app = Starlette(routes=routes(source or MadeSource(), **options))

    def get(self, path, *, raw=False, **options):
        """The answer; with `raw` the answer and its body as it was sent."""

        async def ask():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                if not raw:
                    return await client.get(path, **options)
                async with client.stream("GET", path, **options) as answer:
                    return answer, b"".join([part async for part in answer.aiter_raw()])

        return asyncio.run(asyncio.wait_for(ask(), 60))  # a stream of events that is let in does not end


async def collected(stream, n):
    found = []
    async for each in stream:
        found.append(each)
        if len(found) == n:
            break
    await stream.aclose()
    return found


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_allow_nothing_but_their_own_files(path):
    answer = Client().get(path)
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == CONTENT_POLICY
    assert "unsafe" not in CONTENT_POLICY
    assert "http" not in answer.text.replace("http-equiv", "")
    assert "{" not in answer.text, "a placeholder was left"
    assert "style=" not in answer.text
    assert "onclick" not in answer.text


@pytest.mark.parametrize(
    ("address", "headers", "is_sent"),
    [
        ("https://news.example/", {}, True),
        ("http://127.0.0.1/", {"Sec-Fetch-Mode": "navigate"}, True),
        ("http://192.0.2.7/", {}, False),
    ],
)
def test_an_opener_policy_is_sent_where_a_browser_heeds_it(address, headers, is_sent):
    ours = Client()
    answer = ours.get(address, headers=headers)
    assert ("cross-origin-opener-policy" in answer.headers) == is_sent
    assert answer.headers["vary"] == "Accept-Encoding, Sec-Fetch-Mode"
    again = ours.get(address, headers={**headers, "If-None-Match": answer.headers["etag"]})
    assert (again.status_code, "cross-origin-opener-policy" in again.headers) == (304, is_sent)


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_files_are_sent_with_their_type_and_checked_again_by_their_tag(name):
    ours = Client()
    answer = ours.get(f"/dashboard/static/{name}")
    if name.endswith(".html"):
        assert answer.status_code == 404
        return
    assert answer.content == (FOLDER / name).read_bytes()
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = ours.get(f"/dashboard/static/{name}", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert not again.content


def test_plotly_is_the_one_of_its_package_compressed_and_kept():
    ours = Client()
    answer, sent = ours.get("/dashboard/static/plotly.min.js", raw=True, headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(sent) == plotly_path().read_bytes()
    assert len(sent) < len(plotly_path().read_bytes()) / 2
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("name", ["nothing.js", "..%2froutes.py", "index.html", "%2e%2e", "a%00b", "a" * 300])
def test_other_files_are_not_there(name):
    assert Client().get(f"/dashboard/static/{name}").status_code == 404


def test_names_of_no_file_are_not_remembered():
    """Anybody may ask for them, without a key and for as many as they like."""
    ours = Client()
    for i in range(50):
        assert ours.get(f"/dashboard/static/{i}.js").status_code == 404
    caches = [each.cache_info().currsize for each in vars(_static).values() if hasattr(each, "cache_info")]
    assert sum(caches) < 50


def test_data_are_those_of_the_source():
    source = MadeSource(2)
    ours = Client(source)
    answer = ours.get("/dashboard/campaigns").json()
    assert [each["name"] for each in answer["campaigns"]] == source.names
    assert ours.get("/dashboard/data", params={"campaign": "newsletter"}).json() == source.data("newsletter")
    assert ours.get("/dashboard/data").json()["campaign"] == source.names[0]
    assert ours.get("/dashboard/data").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/dashboard/data?campaign=x", "/dashboard/events?campaign=x"])
def test_an_unknown_campaign_is_not_found(path):
    answer = Client().get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"] == "The store has no campaign 'x'."


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("POST", "/dashboard/data", 405)])
def test_what_the_dashboard_alone_does_not_have_is_a_problem(tmp_path, method, path, status):
    make_campaign(tmp_path / "autumn")
    with Campaign.open(tmp_path / "autumn"), Service(dashboard_app(str(tmp_path / "autumn"))) as shown:
        answer = shown.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert path in answer.json()["detail"]
    assert ("allow" in answer.headers) == (status == 405)


def test_without_an_interface_there_is_no_page_for_it():
    ours = Client(api=False)
    assert ours.get("/docs").status_code == 404
    assert ours.get("/dashboard/campaigns").json()["api"] is False


@pytest.mark.parametrize("path", ["campaigns", "data", "events"])
def test_the_guard_is_asked_before_data_are_sent_and_not_for_pages(path):
    async def guard(request):
        return Response(status_code=401)

    source = MadeSource()
    ours = Client(source, guard=guard)
    assert ours.get(f"/dashboard/{path}").status_code == 401
    assert ours.get("/").status_code == 200
    assert source.reads == 0


def test_a_stream_ends_when_the_guard_no_longer_lets_its_reader_in():
    answers = iter([None, None, Response(status_code=503), None, Response(status_code=401)])

    async def guard(request):
        return next(answers)

    events = Client(Feed(MadeSource(), every=0), guard=guard).get("/dashboard/events").text.split("\n\n")
    assert [event.partition("\n")[0] for event in events] == ["event: update", "event: alive", "event: alive", ""]


def test_a_store_that_cannot_be_read_is_a_sentence():
    source = MadeSource()
    source.trouble = "the disk is gone"
    answer = Client(source).get("/dashboard/data")
    assert (answer.status_code, answer.json()["detail"]) == (503, "the disk is gone")


def test_a_mistake_is_in_the_log_and_not_in_the_answer(caplog):
    source = MadeSource()
    source.trouble = RuntimeError("secret of the inside")
    answer = Client(source).get("/dashboard/data")
    assert (answer.status_code, "secret" in answer.text) == (503, False)
    assert "secret of the inside" in caplog.text


def test_many_readers_cost_one_read():
    source = MadeSource()

    async def read():
        feed = Feed(source, every=60)
        await asyncio.gather(*(feed.snapshot("front-page") for _ in range(50)))
        feed.close()

    asyncio.run(read())
    assert source.reads == 1


def test_nothing_is_read_again_while_the_stamp_is_the_same():
    source = MadeSource()

    async def read():
        feed = Feed(source, every=0)
        return await collected(feed.changes("front-page"), 5)

    first, *later = asyncio.run(read())
    assert {name: json.loads(text) for name, text in first.items()} == source.data("front-page")
    assert later == [{}] * 4
    assert source.reads == 2  # one of them is this test's


def test_what_changed_is_sent_and_an_error_does_not_end_the_stream():
    source = MadeSource()

    async def read():
        feed = Feed(source, every=0)
        stream = feed.changes("front-page")
        first = await anext(stream)
        source.trouble = "gone"
        error = await anext(stream)
        source.trouble = ""
        source.pass_time()
        changed = await anext(stream)
        await stream.aclose()
        return first, error, changed

    first, error, changed = asyncio.run(read())
    assert str(error) == "gone"
    assert {"series", "model", "last_decisions", "decisions"} <= changed.keys()
    assert not {"audit", "coefficients", "campaign", "notes"} & changed.keys()
    assert {name: json.loads(text) for name, text in {**first, **changed}.items()} == source.data("front-page")


def test_closing_from_another_thread_ends_all_streams():
    async def read():
        feed = Feed(MadeSource(), every=3600)
        streams = [feed.changes("front-page") for _ in range(3)]
        for stream in streams:
            await anext(stream)
        threading.Thread(target=feed.close).start()
        ended = [anext(stream, "ended") for stream in streams]
        return await asyncio.wait_for(asyncio.gather(*ended), 60), feed.is_full

    assert asyncio.run(read()) == (["ended"] * 3, True)


@pytest.mark.parametrize("method", ["campaigns", "stamp"])
def test_streams_that_wait_for_the_source_end_too(monkeypatch, method):
    begun, may_go_on = threading.Event(), threading.Event()
    plain = getattr(MadeSource, method)

    def slow(*arguments):
        begun.set()
        assert may_go_on.wait(120)
        return plain(*arguments)

    async def read():
        source = MadeSource(2)
        monkeypatch.setattr(MadeSource, method, slow)
        feed = Feed(source, every=3600)
        reading = [asyncio.ensure_future(collected(feed.changes(name), 2)) for name in source.names]
        await asyncio.to_thread(begun.wait, 120)
        feed.close()
        may_go_on.set()
        return await asyncio.gather(*reading)

    found = asyncio.run(read())
    assert all(len(each) <= 1 for each in found)
    assert not any(isinstance(changed, Exception) for each in found for changed in each)


def test_who_asks_when_the_service_ends_is_told_so_and_nothing_is_logged(caplog):
    feed = Feed(MadeSource())
    feed.close()
    answer = Client(feed).get("/dashboard/data")
    assert (answer.status_code, answer.json()["detail"][:21]) == (503, "the service is ending")
    assert caplog.text == ""


def test_no_more_streams_than_allowed_are_opened():
    async def read():
        feed = Feed(MadeSource(), every=3600, most_streams=2)
        streams = [feed.changes("front-page") for _ in range(2)]
        before = feed.is_full
        for stream in streams:
            await anext(stream)
        full = feed.is_full
        await streams[0].aclose()
        after = feed.is_full
        feed.close()
        await streams[1].aclose()
        return before, full, after

    assert asyncio.run(read()) == (False, True, False)
