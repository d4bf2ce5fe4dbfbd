"""The page: every record is on it, hostile names break nothing, and its figures work in a real browser."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from haloscope import records
from haloscope.commands import report
from haloscope.measure import campaign
from haloscope.report import page
from haloscope.report.page import choices, content, surroundings
from test_records import measurement, write
from test_terminal import STEERS
from toy import TOY

KEPT = Path(__file__).parents[3] / "results"
HOSTILE = (
    "\x1b[2J\ud800</script><script>window.hostile = 1</script><img src=x onerror='window.hostile = 2'>\u202e`${7}`"
)
MANY_LAUNCHES = [f"launch-{n}" for n in range(1, 9)]


def page_of(found, **options) -> str:
    return page.render(content.title(found), content.sections(found, **options))


def text_of(html: str) -> str:
    """The page without its scripts."""
    return re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)


def of_choices(times: dict[str, float], **request) -> list[dict]:
    """Records of strategies with these seconds per step, eight launches each, nearly without noise."""
    return [
        measurement(
            name, launch, [10 * seconds * (1 + 0.001 * ((n + k) % 3)) for k in range(3)], strategy=name, **request
        )
        for name, seconds in times.items()
        for n, launch in enumerate(MANY_LAUNCHES)
    ]


def summary(found: list[dict]) -> str:
    return "\n".join(choices.summary(choices.cases_of(found)).words)


def test_a_faster_choice_is_recommended_with_its_least_gain():
    found = summary(of_choices({"ordered/p2p": 2.0, "direct/shared": 1.0}))
    assert re.search(
        r"use bulk direct/shared, 2\.00 times as fast as bulk ordered/p2p \(at least (1\.9\d|2\.00)\)", found
    )


def test_the_reason_is_the_phase_that_shrinks_most():
    slow, fast = of_choices({"ordered/p2p": 2.0}), of_choices({"direct/shared": 1.0})
    for record in fast:
        record["phases_s"]["wait"] = dict.fromkeys(record["phases_s"]["wait"], 1e-5)
    assert "waiting for messages takes 10.00 us a step instead of 3000" in summary(slow + fast)


def test_equal_choices_lead_to_no_recommendation():
    assert "bulk ordered/p2p is as good as any" in summary(of_choices({"ordered/p2p": 1.0, "direct/shared": 1.0}))


def test_few_launches_claim_nothing():
    found = [
        r for r in of_choices({"ordered/p2p": 2.0, "direct/shared": 1.0}) if r["launch"]["id"] in MANY_LAUNCHES[:2]
    ]
    assert "was the fastest, but 2 launches cannot distinguish choices for sure: 8 can" in summary(found)


def test_one_choice_is_no_choice():
    assert "nothing to recommend" in summary(of_choices({"ordered/p2p": 1.0}))


def test_choices_of_other_grids_machines_or_networks_are_not_compared():
    plain = of_choices({"ordered/p2p": 1.0})
    larger = of_choices({"direct/p2p": 1.0}, cells=[16, 16])
    elsewhere = of_choices({"direct/shared": 1.0})
    for record in elsewhere:
        record["environment"]["cpu"] = "another"
    assert [len(case.rows) for case in choices.cases_of(plain + larger + elsewhere)] == [1, 1, 1]


def test_oversubscribed_choices_are_hatched_and_warned_of():
    crowded = of_choices({"direct/shared": 1.0})
    for record in crowded:
        record["environment"]["oversubscribed"] = True
    found = of_choices({"ordered/p2p": 2.0}) + crowded
    [section] = [choices.rankings(choices.cases_of(found))]
    assert section.charts[0].traces[0]["marker"]["pattern"]["shape"] == ["", "/"]
    assert "1 choice with more threads than cores, not ranked." in surroundings.warnings(found)


def test_failed_and_skipped_configurations_are_named_with_their_reasons():
    head = {"schema": "haloscope.record", "schema_version": 2, "launch": {"id": "launch-1", "order": 0}}
    failed = head | {"kind": "failed", "id": "f", "request": {}, "reason": "it crashed"}
    skipped = head | {"kind": "skipped", "id": "s", "request": {}, "reason": "no GPU"}
    found = surroundings.warnings([failed, skipped])
    assert any("1 failed: it crashed" in text for text in found) and any("no GPU" in text for text in found)


@pytest.mark.parametrize("file", ["demo.jsonl", "studies/vanecek2020/records.jsonl.xz", "transports.jsonl"])
def test_every_configuration_of_kept_records_is_on_the_page(file):
    found = records.read(KEPT / file).records
    html = page_of(found)
    assert len(html) <= page.MOST_BYTES
    charts = [chart for section in content.sections(found) for chart in section.charts]
    wanted = {r["id"] for r in found if r["kind"] in ("measurement", "blocks")}
    listed = sum(len(case.rows) for case in choices.cases_of(found)) or sum(len(c.table.lines) for c in charts)
    assert wanted and listed == len(wanted)


def test_hostile_texts_are_shown_as_texts():
    found = of_choices({"ordered/p2p": 2.0, "direct/shared": 1.0})
    for record in found:
        record["id"] += HOSTILE
        record["request"]["app"] = HOSTILE
        record["environment"]["cpu"] = HOSTILE
        record["warnings"] = [HOSTILE]
    html = page_of(found)
    assert not STEERS.search(text_of(html)) and html.encode()
    assert "<img" not in text_of(html) and "window.hostile = 1</script>" not in html
    data = re.search(r'<script type="application/json" id="charts">(.*?)</script>', html, re.DOTALL)[1]
    assert json.loads(data) and "<" not in data


def test_long_texts_stay_short_in_figures():
    found = of_choices({"ordered/p2p": 2.0, "x" * 10_000: 1.0})
    [chart] = choices.rankings(choices.cases_of(found)).charts
    assert max(map(len, chart.traces[0]["y"])) <= 2 * page.MOST_LABEL


def test_a_page_stays_small_whatever_the_number_of_records():
    found = [measurement(f"{n}", strategy=f"ordered/p2p:{n}", seconds=(1.0 + n,)) for n in range(10_000)]
    section = page.Section("Many", tables=[page.Table(["a", "b"], [[r["id"], "text" * 60] for r in found])])
    html = page.render("many", [section])
    assert len(html) <= page.MOST_BYTES and "more lines are in the records." in html


def test_numbers_that_are_none_leave_gaps():
    chart = page.Chart("t", "c", [{"x": [1.0, float("nan")]}], {}, page.Table(["a"], [[float("inf")]]))
    assert '"x":[1.0,null]' in page.render("t", [page.Section("s", charts=[chart])])


def test_the_command_writes_the_page_and_names_it(haloscope, tmp_path):
    write(tmp_path / "r.jsonl", *of_choices({"ordered/p2p": 2.0, "direct/shared": 1.0}))
    result = haloscope("report", str(tmp_path / "r.jsonl"), "-o", str(tmp_path / "page.html"))
    assert result.code == 0 and result.out.splitlines()[-1] == f"page: {tmp_path / 'page.html'}"
    assert "What to use" in (tmp_path / "page.html").read_text()


def test_files_without_records_are_refused(haloscope, tmp_path):
    (tmp_path / "r.jsonl").write_text("")
    result = haloscope("report", str(tmp_path / "r.jsonl"))
    assert result.code == 2 and "no records in" in result.err


def test_a_file_of_another_program_is_not_replaced(haloscope, tmp_path):
    write(tmp_path / "r.jsonl", *of_choices({"ordered/p2p": 2.0}))
    (tmp_path / "page.html").write_text("mine")
    result = haloscope("report", str(tmp_path / "r.jsonl"), "-o", str(tmp_path / "page.html"))
    assert result.code == 2 and (tmp_path / "page.html").read_text() == "mine"


def test_a_file_of_another_program_is_refused_before_anything_is_measured(haloscope, tmp_path, monkeypatch):
    (tmp_path / "page.html").write_text("mine")
    monkeypatch.setattr(campaign.Campaign, "run", lambda self: pytest.fail("measured"))
    result = haloscope("run", "laplace2d", "--cells", "16", "--report", str(tmp_path / "page.html"))
    assert result.code == 2 and "was not written by haloscope" in result.err


def test_a_watched_page_is_written_again_when_its_records_grow(haloscope, tmp_path, monkeypatch):
    file = write(tmp_path / "r.jsonl", *of_choices({"ordered/p2p": 2.0}))
    page, found = tmp_path / "page.html", []

    def sleep(seconds):
        found.append(page.read_text())
        if len(found) == 3:
            raise KeyboardInterrupt
        if len(found) == 1:
            with file.open("a") as records:
                records.writelines(json.dumps(record) + "\n" for record in of_choices({"direct/shared": 1.0}))

    monkeypatch.setattr(report.time, "sleep", sleep)
    assert haloscope("report", str(file), "-o", str(page), "--watch").code == 1  # as after any Ctrl-C
    assert ["direct/shared" in text for text in found] == [False, True, True]
    assert all('http-equiv="refresh"' in text for text in found)


def test_a_comparison_counts_who_is_faster(haloscope, tmp_path):
    for name, seconds in (("a", 2.0), ("b", 1.0)):
        write(tmp_path / f"{name}.jsonl", *of_choices({"ordered/p2p": seconds}))
    files = [str(tmp_path / f"{name}.jsonl") for name in "ab"]
    result = haloscope("compare", *files, "--report", str(tmp_path / "page.html"))
    assert result.out.splitlines()[-1].startswith("page: ")
    assert "Of 1 configuration in both, 1 are faster in B, 0 in A; 0 cannot" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("words", "heading"),
    [
        (("advise", "laplace2d", "--cells", "64"), "Advice: laplace2d, 64x64 cells, 2 ranks"),
        (("map", "laplace2d", "--blocks", "16", "--latency", "1us", "-d", "1"), "Map of networks and block sizes"),
    ],
)
def test_a_page_of_predictions_is_marked_as_predicted(words, heading, haloscope, tmp_path):
    file = tmp_path / "page.html"
    result = haloscope(*words, "--profile", str(TOY), "--report", str(file))
    assert result.code == 0 and result.out.splitlines()[-1] == f"page: {file}"
    shown = text_of(file.read_text())
    assert f"<h1>{heading}</h1>" in shown and "redicted" in shown and "Measured:" not in shown


# ---- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    programs = shutil.which("chromium"), shutil.which("chromedriver")
    if not all(programs):
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(programs[1]))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    found = of_choices({"ordered/p2p": 2.0, "direct/shared": 1.0, HOSTILE: 3.0}, depth=1)
    found += of_choices({"ordered/p2p ": 1.5}, depth=4)
    for record in found:
        record["environment"]["cpu"] = HOSTILE
    path = tmp_path_factory.mktemp("page") / "page.html"
    content.write_about(path, found)
    return path


@pytest.fixture
def opened(browser, hostile_page):
    """The page at the size of a desk's screen, with every figure drawn."""
    resize(browser, 1440, 1000)
    emulate(browser, "light")
    browser.get(hostile_page.as_uri())
    browser.execute_script("for (const figure of figures) draw(figure);")
    return browser


def resize(browser, width: int, height: int) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def emulate(browser, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def test_every_figure_is_drawn_without_an_error_or_a_request(opened):
    drawn = opened.execute_script(
        "return figures.map((f) => f.querySelectorAll('.plot svg .trace, .plot svg .point').length)"
    )
    assert len(drawn) >= 3 and all(drawn)
    assert [e for e in opened.get_log("browser") if e["level"] == "SEVERE"] == []
    sent = [json.loads(e["message"])["message"] for e in opened.get_log("performance")]
    urls = {m["params"]["request"]["url"] for m in sent if m["method"] == "Network.requestWillBeSent"}
    assert {url.partition(":")[0] for url in urls} <= {"file", "data", "blob"}


def test_names_from_records_run_nothing(opened):
    assert opened.execute_script("return window.hostile === undefined")
    assert opened.execute_script("return document.querySelectorAll('img').length") == 0


def test_the_filter_keeps_points_and_lines_with_a_name(opened):
    from selenium.webdriver.common.by import By

    count = "return figures[0].querySelectorAll('.plot .bars .point').length"
    before = opened.execute_script(count)
    opened.find_element(By.ID, "filter").send_keys("shared")
    assert 0 < opened.execute_script(count) < before
    hidden = (
        "return [...document.querySelectorAll('tbody tr')].every((l) => l.hidden !== l.textContent.includes('shared'))"
    )
    assert opened.execute_script(hidden)


def test_the_keyboard_reaches_the_filter_and_opens_numbers(opened):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    opened.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert opened.switch_to.active_element.get_attribute("class") == "skip"
    summary = opened.find_element(By.TAG_NAME, "summary")
    summary.send_keys(Keys.ENTER)
    assert opened.execute_script("return document.querySelector('details').open")


def test_hovering_names_a_point(opened):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    bar = opened.find_element(By.CSS_SELECTOR, ".plot .bars .point path")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", bar)
    ActionChains(opened).move_to_element(bar).pause(0.5).perform()
    assert " s per step" in opened.execute_script("return document.querySelector('.hoverlayer').textContent")


def luminance(colour: str) -> float:
    """The relative luminance of a colour as the browser computes it (WCAG 2.2)."""
    parts = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_the_paper(opened, scheme):
    emulate(opened, scheme)
    colour = "return getComputedStyle(document.querySelector(arguments[0])).color"
    inks = [luminance(opened.execute_script(colour, part)) for part in ("body", "figcaption", "a", "footer")]
    paper = luminance(opened.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert (paper > 0.5) == (scheme == "light")
    assert all((max(paper, ink) + 0.05) / (min(paper, ink) + 0.05) >= 4.5 for ink in inks)
    opened.execute_script("again()")
    drawn = opened.execute_script(
        "return getComputedStyle(document.querySelector('.plot .xtitle, .plot .xtick text')).fill"
    )
    assert (luminance(drawn) < 0.5) == (scheme == "light")


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_is_wider_than_the_screen(opened, width):
    resize(opened, width, 900)
    opened.execute_script("for (const figure of figures) draw(figure);")
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
