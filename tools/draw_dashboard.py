"""Draw docs/images/dashboard.png: the dashboard of a made service, in Chromium.

Run it from the root of the clone: .venv/bin/python tools/draw_dashboard.py
"""

import io
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests import browsers  # noqa: E402
from tests.service.dashboard_server import DashboardServer, open_page  # noqa: E402

TARGET = ROOT / "docs" / "images" / "dashboard.png"
SIZE = {"width": 1180, "height": 1640}


def main() -> None:
    found = browsers.chromium()
    if found is None:
        raise SystemExit(f"there is no Chromium: {browsers.HOW}")
    server = DashboardServer()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=browsers.flags())
        with open_page(browser, server.url, viewport=SIZE, color_scheme="light", reduced_motion="reduce") as page:
            page.wait_for_selector("#coefficients-plot .scatterlayer .trace")
            drawn = Image.open(io.BytesIO(page.screenshot()))
        browser.close()
    server.stop()
    drawn.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(TARGET, optimize=True)
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
