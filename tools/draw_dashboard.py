"""Draw the dashboard in Chromium, into docs/images: dashboard.png of made data, served-demo.png of the demo.

Run it from the root of the clone: .venv/bin/python tools/draw_dashboard.py [--demo]
"""

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests import browsers  # noqa: E402
from tests.service.dashboard_server import DashboardServer, open_page  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1180, "height": 1640}
DEMO_SECONDS = 150


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", action="store_true", help="draw served-demo.png, which takes some minutes")
    if parser.parse_args().demo:
        with served_demo() as url:
            draw(url, IMAGES / "served-demo.png", {**SIZE, "height": 1060})
    else:
        server = DashboardServer()
        draw(server.url, IMAGES / "dashboard.png", SIZE)
        server.stop()


@contextmanager
def served_demo() -> Iterator[str]:
    """Run `armful demo --serve`, and give the address of its dashboard after a while."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "armful",
            "demo",
            "--serve",
            "--port",
            "0",
            "--json",
            "--out",
            f"{folder}/demo",
        ]
        demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert demo.stdout is not None
        url = json.loads(demo.stdout.readline())["url"]
        time.sleep(DEMO_SECONDS)
        yield url
        demo.terminate()
        demo.wait()


def draw(url: str, target: Path, size: dict[str, int]) -> None:
    with (
        browsers.launched() as browser,
        open_page(browser, url, viewport=size, color_scheme="light", reduced_motion="reduce") as page,
    ):
        page.wait_for_selector("#coefficients-plot .scatterlayer .trace")
        drawn = Image.open(io.BytesIO(page.screenshot()))
    drawn.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
