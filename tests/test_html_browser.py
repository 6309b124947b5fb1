"""The pages in a real browser. Skipped only where Chromium is missing and CI is not set."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_samples import CRASH_LOOP, HOSTILE, LONG_LOOP, READY, SAMPLES
from rich_reports import RICH
from test_render_html import MANY_RUNS, html

from loopdetect.cli.main import main
from loopdetect.render.segments import chart

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
NPM = shutil.which("npm")
CI = bool(os.environ.get("CI"))
AXE = "axe-core@4"
WIDTHS = (390, 820, 1280)
FIXTURES = Path(__file__).parent.parent / "fixtures"
GOOD = FIXTURES / "vllm" / "clean-cold-compile-ready.log"
BAD = FIXTURES / "vllm" / "crash-loop-truncated-shard.log"

pytestmark = pytest.mark.skipif(
    not CI and not (CHROMIUM and DRIVER),
    reason="needs Chromium: apt-get install chromium chromium-driver",
)


class Browser:
    """Chromium with a page in it."""

    def __init__(self, folder: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM or "chromium"
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER or "chromedriver"))
        self.folder = folder

    def open(self, document: str, *, width: int = 1280, dark: bool = False) -> None:
        self.console()
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": scheme})
        self.size(width, 900)
        page = self.folder / "report.html"
        page.write_text(document, "utf-8")
        self.driver.get(page.as_uri())

    def size(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def find(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def press(self, *keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> str:
        return str(self.run("return document.activeElement.getAttribute('aria-label') ?? ''"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("pages"))
    yield found
    found.driver.quit()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    if NPM is None and not CI:
        pytest.skip("needs npm for axe-core")
    folder = tmp_path_factory.mktemp("axe")
    command = [NPM or "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix"]
    subprocess.run([*command, str(folder), AXE], check=True, timeout=180)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


@pytest.fixture
def compared(tmp_path: Path) -> str:
    page = tmp_path / "compare.html"
    assert main(["compare", str(GOOD), str(BAD), "--format", "html", "-o", str(page)]) == 0
    return page.read_text("utf-8")


def inspected(tmp_path: Path, *logs: Path) -> str:
    page = tmp_path / "inspect.html"
    main(["inspect", *map(str, logs), "--format", "html", "-o", str(page)])
    return page.read_text("utf-8")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_opens_without_a_word_on_the_console(browser: Browser, name: str) -> None:
    browser.open(html(SAMPLES[name]))
    assert browser.console() == []
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.find("h1")[0].is_displayed()


def test_the_page_of_a_log_and_the_page_of_two_open_too(
    browser: Browser, tmp_path: Path, compared: str
) -> None:
    for document in (inspected(tmp_path, BAD), compared, html(RICH), html(READY, CRASH_LOOP)):
        browser.open(document)
        assert browser.console() == []


def test_each_phase_of_each_drawn_run_is_one_segment_that_can_be_seen(browser: Browser) -> None:
    browser.open(html(CRASH_LOOP))
    segments = browser.find("svg.bar .seg")
    assert len(segments) == sum(len(run.phases) for run in CRASH_LOOP.runs) == 12
    widths = browser.run(
        "return [...document.querySelectorAll('.seg rect')]"
        ".map(rect => rect.getBoundingClientRect().width)"
    )
    assert min(widths) > 3
    assert len(browser.find("svg.bar .mark.o-crashed")) == 4


def test_a_long_history_has_the_segments_of_the_drawn_runs_only(browser: Browser) -> None:
    browser.open(html(LONG_LOOP))
    drawn = chart(LONG_LOOP.runs, 48).drawn
    assert len(browser.find(".seg")) == sum(len(lane.segments) for lane in drawn) == 6
    assert "the same (187 runs" in browser.find(".lane.folded")[0].text


def column(browser: Browser, number: int) -> list[str]:
    return [cell.text for cell in browser.find(f"table.runs tbody tr > :nth-child({number})")]


def test_a_heading_sorts_up_and_down_and_says_so(browser: Browser) -> None:
    from selenium.webdriver import Keys

    browser.open(html(CRASH_LOOP))
    headings = browser.find("table.runs th[scope=col]")
    button = headings[0].find_element("css selector", "button")
    assert column(browser, 1) == ["1", "2", "3", "4"]
    button.click()
    assert headings[0].get_attribute("aria-sort") == "ascending"
    button.send_keys(Keys.ENTER)
    assert column(browser, 1) == ["4", "3", "2", "1"]
    assert headings[0].get_attribute("aria-sort") == "descending"
    headings[1].find_element("css selector", "button").click()
    assert column(browser, 1) == ["1", "2", "3", "4"]
    assert headings[0].get_attribute("aria-sort") is None


def test_numbers_sort_as_numbers_and_unknown_ones_stay_last(browser: Browser) -> None:
    from dataclasses import replace

    lengths = (9.0, None, 100.0, 30.0)
    runs = tuple(
        replace(run, duration_s=length)
        for run, length in zip(CRASH_LOOP.runs, lengths, strict=True)
    )
    browser.open(html(replace(CRASH_LOOP, runs=runs)))
    names = [cell.text for cell in browser.find("table.runs th[scope=col]")]
    place = next(n for n, name in enumerate(names) if name.startswith("lasted"))
    button = browser.find("table.runs th[scope=col] button")[place]
    button.click()
    assert column(browser, 1) == ["1", "4", "3", "2"]
    button.click()
    assert column(browser, 1) == ["3", "4", "1", "2"]


def test_the_timeline_is_one_stop_and_the_arrows_move_in_it(browser: Browser) -> None:
    from selenium.webdriver import Keys

    browser.open(html(CRASH_LOOP))
    assert len(browser.find(".seg[tabindex='0']")) == 1
    for _ in range(30):
        browser.press(Keys.TAB)
        if browser.focused().startswith("run 1, config"):
            break
    assert browser.focused() == "run 1, config: 20 s, from line 1"
    readout = browser.find("[data-readout]")[0]
    browser.press(Keys.ARROW_RIGHT)
    assert browser.focused() == "run 1, load-weights: 8 min 8 s, from line 60"
    assert readout.text == browser.focused()
    browser.press(Keys.ARROW_DOWN)
    assert browser.focused().startswith("run 2, load-weights")
    browser.press(Keys.END)
    assert browser.focused().startswith("run 2, kv-cache: its length is not in the log")
    browser.press(Keys.ARROW_RIGHT)
    browser.press(Keys.HOME, Keys.ARROW_UP, Keys.ARROW_UP)
    assert browser.focused().startswith("run 1, config")
    assert (
        browser.run("return getComputedStyle(document.activeElement.firstChild).strokeWidth")
        == "4px"
    )
    browser.press(Keys.TAB)
    assert not browser.focused().startswith("run 1, load")


def test_pointing_at_a_segment_shows_its_numbers(browser: Browser) -> None:
    from selenium.webdriver import ActionChains

    browser.open(html(CRASH_LOOP))
    segment = browser.find(".seg.p-load-weights")[2]
    ActionChains(browser.driver).move_to_element(segment).perform()
    assert browser.find("[data-readout]")[0].text == "run 3, load-weights: 8 min 8 s, from line 682"


HOSTILE_LOG = b"".join(
    (
        b"INFO 03-01 10:00:00 [api_server.py:10] vLLM API server version 0.10.1\n",
        b"INFO 03-01 10:00:01 [gpu_model_runner.py:1] Starting to load model "
        b"<script>window.owned=1</script><img src=x onerror=window.owned=1>...\n",
        b"\x1b]0;owned\x07\x1b[2J\x1b[31m</style></script><svg onload=window.owned=1>\n",
        b"\xff\xfe\x80 broken \xc3\x28 {{ 7*7 }} javascript:window.owned=1\n",
        b"A" * 1_048_576 + b"<script>window.owned=1</script>\n",
        b"ERROR 03-01 10:00:09 [core.py:1] EngineCore failed to start.\n",
        b"Traceback (most recent call last):\n",
        b'  File "/x/<script>window.owned=1</script>.py", line 1, in <module>\n',
        b"ValueError: \x1b[31m</code></table><script>window.owned=1</script> \xe2\x80\xae\xff"
        b"<iframe src=javascript:parent.owned=1> To serve at least one request with the models's "
        b"max seq len (8192), (4.00 GiB KV cache is needed, which is larger than the available "
        b"KV cache memory (1.0 GiB)\n",
    )
)


def test_a_hostile_log_is_shown_and_does_nothing(browser: Browser, tmp_path: Path) -> None:
    log = tmp_path / "<img src=x onerror=window.owned=1>.log"
    log.write_bytes(HOSTILE_LOG * 3)
    document = inspected(tmp_path, log)
    browser.open(document)
    assert browser.console() == []
    assert browser.run("return window.owned ?? null") is None
    assert browser.run("return document.scripts.length") == 1
    assert browser.find("img, iframe, [onload], [onerror]") == []
    assert len(document) < 200_000
    shown = browser.find("main")[0].text
    assert "<script>window.owned=1</script>" in shown
    assert "\\u202e" in shown
    assert "49" not in browser.find(".cause")[0].text


def test_the_policy_stops_what_would_get_in(browser: Browser) -> None:
    browser.open(html(READY))
    browser.run(
        """window.blocked = [];
        document.addEventListener('securitypolicyviolation',
            event => window.blocked.push(event.effectiveDirective));
        document.body.insertAdjacentHTML('beforeend',
            '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" onerror="window.owned=1">');
        const script = document.createElement('script');
        script.textContent = 'window.owned = 2';
        document.body.append(script);"""
    )
    blocked = browser.driver.execute_async_script(
        "const done = arguments[0];"
        "const look = () => window.blocked.length > 1 ? done(window.blocked) : setTimeout(look, 10);"
        "look()"
    )
    assert {"img-src", "script-src-elem"} <= set(blocked)
    assert browser.run("return window.owned ?? null") is None


@pytest.mark.parametrize("width", WIDTHS)
def test_a_picture_of_each_page_at_each_width(
    browser: Browser, tmp_path: Path, compared: str, width: int
) -> None:
    folder = Path(os.environ.get("TEST_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        "loop": inspected(tmp_path, BAD),
        "compare": compared,
        "rich": html(RICH),
        "many": html(*SAMPLES.values()),
        "hostile": html(HOSTILE),
    }
    for name, document in pages.items():
        for dark in (False, True):
            browser.open(document, width=width, dark=dark)
            sides = "return [document.documentElement.scrollWidth, innerWidth]"
            needed, given = browser.run(sides)
            assert needed <= given, f"{name} is wider than {width}"
            browser.size(width, browser.run("return document.documentElement.scrollHeight"))
            picture = folder / f"{name}-{width}{'-dark' if dark else ''}.png"
            assert browser.driver.save_screenshot(str(picture))
            back = browser.run("return getComputedStyle(document.body).backgroundColor")
            assert (back == "rgb(16, 19, 24)") is dark


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing(
    browser: Browser, axe: str, tmp_path: Path, compared: str, dark: bool, width: int
) -> None:
    several = html(*SAMPLES.values())
    for document in (inspected(tmp_path, BAD), html(RICH), several, compared, html()):
        browser.open(document, width=width, dark=dark)
        # What a test adds is no part of the page, so its policy does not hold for it.
        browser.driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
        browser.driver.refresh()
        browser.run(axe)
        found = browser.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document).then(r => done(r.violations.map("
            "v => [v.id, v.nodes.map(n => n.html.slice(0, 200))])))"
        )
        browser.driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})
        assert found == []


def test_five_thousand_runs_open(browser: Browser) -> None:
    browser.open(html(MANY_RUNS))
    assert browser.console() == []
    assert len(browser.find("table.runs tbody tr")) == 240
    assert 0 < len(browser.find(".seg")) < 200


def test_printing_opens_what_is_folded_and_is_light(browser: Browser) -> None:
    browser.open(html(RICH), dark=True)
    assert browser.find("details[open]") == []
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
    assert len(browser.find("details[open]")) == 1
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    back = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert back == "rgb(255, 255, 255)"
    assert not browser.find("[data-readout]")[0].is_displayed()


def test_without_script_everything_but_sorting_is_there(browser: Browser) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(html(RICH))
        assert browser.find("table.runs button") == []
        assert browser.find(".seg")[0].get_attribute("aria-label").startswith("run 1, config")
        assert "What loopdetect did not understand" in browser.find("main")[0].text
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
