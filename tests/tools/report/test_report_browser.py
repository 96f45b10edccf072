"""Reports in a browser: at two widths, light, dark and printed; nothing runs, nothing loads."""

import base64
import json
import shutil

import pytest
from hostile import SCRIPT, hostile_report

pytest.importorskip("selenium", reason="needs pip install 'gpuforest[checks]'")
from selenium import webdriver
from selenium.common.exceptions import WebDriverException

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
    *("disable-background-networking", "disable-component-update", "disable-sync"),
)
LEAST = 4.5  # of text, by the Web Content Accessibility Guidelines 2.2, level AA

# The least contrast of text, over all elements that have some of their own, and where it is.
# Colours are read from a canvas, which knows all ways to write them.
CONTRAST = """
const canvas = document.createElement("canvas");
const pen = canvas.getContext("2d", {willReadFrequently: true});
function over(colour, below) {
  pen.fillStyle = below ?? "#fff"; pen.fillRect(0, 0, 1, 1);
  pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
  return `rgb(${[...pen.getImageData(0, 0, 1, 1).data].slice(0, 3)})`;
}
function luminance(colour) {
  const [r, g, b] = colour.match(/\\d+/g).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function background(element) {
  if (!element) return "rgb(255,255,255)";
  return over(getComputedStyle(element).backgroundColor, background(element.parentElement));
}
let least = [99, ""];
for (const element of document.body.querySelectorAll("*")) {
  const own = [...element.childNodes].filter(n => n.nodeType === 3 && n.data.trim());
  if (!own.length || ["title", "desc"].includes(element.tagName)) continue;
  const style = getComputedStyle(element), ground = background(element);
  const colour = over(element.ownerSVGElement ? style.fill : style.color, ground);
  const both = [luminance(colour), luminance(ground)].sort((a, b) => b - a);
  const ratio = (both[0] + 0.05) / (both[1] + 0.05);
  if (ratio < least[0]) least = [ratio, `${element.tagName} ${own[0].data.slice(0, 40)}`];
}
return least;
"""
# elements whose text is wider than they are, and that do not scroll by themselves
CUT = """
const page = document.documentElement.clientWidth, found = [];
for (const element of document.body.querySelectorAll("*")) {
  if (element.closest(".box") || element.ownerSVGElement) continue;
  const at = element.getBoundingClientRect();
  if (at.width && (at.right > page + 1 || at.left < -1)) found.push(element.tagName);
}
return found;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if BROWSER is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    folder = tmp_path_factory.mktemp("browser")
    for flag in (*FLAGS, f"user-data-dir={folder}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        found = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    except WebDriverException as error:
        pytest.skip(f"chromium does not start: {(error.msg or '').splitlines()[0]}")
    yield found
    found.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(hostile_report(), "utf-8")
    return path.as_uri()


def shown(browser, address, width, scheme):
    """Open a page at a width in pixels, light or dark."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [feature]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(address)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1600, 1280, 400])
def test_a_report_is_read_at_any_width_and_in_any_light(browser, report, width, scheme):
    shown(browser, report, width, scheme)
    assert browser.execute_script("return innerWidth") == width
    wide = "return [document.documentElement.scrollWidth, document.body.scrollWidth]"
    assert max(browser.execute_script(wide)) <= width
    assert browser.execute_script(CUT) == []
    right = browser.execute_script(
        "return Math.max(...[...document.querySelectorAll('main p, main table, main svg')]"
        ".map(e => e.getBoundingClientRect().right))"
    )
    assert right > 0.85 * width  # no third of a wide screen is empty
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    ratio, where = browser.execute_script(CONTRAST)
    assert ratio >= LEAST, where


def test_nothing_runs_and_nothing_loads(browser, report):
    shown(browser, report, 1280, "light")
    # an alert would have made the next command fail
    assert browser.execute_script("return document.scripts.length") == 0
    assert SCRIPT in browser.execute_script("return document.body.innerText")
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [e["params"]["request"]["url"] for e in events if e["method"].endswith("WillBeSent")]
    assert sent == [report]


def test_the_policy_stops_a_script_that_somebody_adds(browser, report, tmp_path):
    text = hostile_report().replace("<main>", "<main><script>document.title = 'ran'</script>")
    path = tmp_path / "edited.html"
    path.write_text(text, "utf-8")
    shown(browser, path.as_uri(), 1280, "light")
    assert browser.title == f"Report: RandomForestClassifier for {SCRIPT}"
    assert any("Content Security Policy" in e["message"] for e in browser.get_log("browser"))


def test_trees_unfold_without_scripts(browser, report):
    shown(browser, report, 1280, "light")
    details = browser.find_element("css selector", "details.whole")
    root = details.find_element("css selector", ".tree > li")
    assert not root.is_displayed()
    details.find_element("css selector", "summary").click()
    assert root.is_displayed()
    assert root.text.startswith("all rows · ")


def test_a_report_prints(browser, report):
    shown(browser, report, 1280, "dark")
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") > 3
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"  # also of a dark screen
    ratio, where = browser.execute_script(CONTRAST)
    assert ratio >= LEAST, where
    tree = "document.querySelector('details.whole .tree > li')"  # nobody opened it
    assert browser.execute_script(f"return {tree}.getBoundingClientRect().height") > 100
