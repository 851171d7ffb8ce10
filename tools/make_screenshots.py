"""Write the pictures of the page in docs/serve.md: `python tools/make_screenshots.py`, where chromium is installed."""

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PAIR = "#pair?head=barista&tail=coffee"
ANALOGY = (
    "#analogy?stem=word:language&choice=paint:portrait&choice=poetry:rhythm&choice=note:music&choice=tale:story"
    "&choice=week:year"
)
COMPARE = (
    "#compare?pair=barista:coffee&pair=baker:bread&pair=brewer:beer&pair=cup:coffee&pair=bottle:wine&pair=Paris:France"
    "&pair=Tokyo:Japan&pair=hot:cold&pair=wet:dry"
)
WIDE, PHONE = (1100, 800), (390, 844)

PICTURES = {
    "pair": (PAIR, "light", WIDE),
    "analogy": (ANALOGY, "light", WIDE),
    "compare": (COMPARE, "dark", WIDE),
    "phone": (ANALOGY, "light", PHONE),
}


def main() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "relvec", "serve", "--port", str(port), *sys.argv[1:]])
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.2)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name in PICTURES:
                take(browser, port, name)
    finally:
        server.terminate()
        server.wait()


def take(browser: Browser, port: int, name: str) -> None:
    address, scheme, (width, height) = PICTURES[name]
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        device_scale_factor=1.5,
    )
    page.goto(f"http://127.0.0.1:{port}/{address}")
    page.wait_for_load_state("networkidle", timeout=300_000)
    page.evaluate("document.activeElement.blur()")
    page.screenshot(path=IMAGES / f"serve-{name}.png", full_page=True)
    page.close()


if __name__ == "__main__":
    main()
