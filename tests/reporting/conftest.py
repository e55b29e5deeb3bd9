"""Browsers, and a page whose every text is hostile.

Needs Chromium (Debian's package, or the program that CONTRAPCA_CHROMIUM names), Firefox for the slow tests
(CONTRAPCA_FIREFOX) and playwright.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from browsing import FLAGS, NASTY, Page, program
from contrapca import PCPCA, Study, bootstrap
from contrapca.datasets import make_hidden_clusters
from contrapca.reporting._report import summarize
from contrapca.reporting._subject import examine
from contrapca.reporting._summary import Origin


@pytest.fixture(scope="module")
def driver(need):
    need("jinja2")
    with need("playwright.sync_api").sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="module")
def chromium(driver):
    browser = driver.chromium.launch(executable_path=program("chromium"), args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def start_firefox(driver):
    """Start Firefox as Debian builds it, driven by its own protocol; one for each set of preferences."""
    started = {}

    def starter(**preferences):
        key = tuple(preferences.items())
        if key not in started:
            started[key] = driver.firefox.launch(
                executable_path=program("firefox"), channel="moz-firefox", firefox_user_prefs=preferences
            )
        return started[key]

    yield starter
    for browser in started.values():
        browser.close()


@pytest.fixture(scope="module")
def firefox(start_firefox):
    return start_firefox()


@pytest.fixture(scope="module", params=["chromium", pytest.param("firefox", marks=pytest.mark.slow)])
def browser(request):
    """Each browser in turn."""
    return request.getfixturevalue(request.param)


class Case(NamedTuple):
    """A page, and what it was made of."""

    file: Path
    subject: object
    X: object
    labels: np.ndarray


@pytest.fixture(scope="module")
def case(tmp_path_factory, need):
    """A report about tables whose every text is hostile, with uncertainty."""
    need("jinja2")
    pandas = need("pandas")
    data = make_hidden_clusters(300, 200, 10, random_state=0)
    columns = [f"{NASTY} {j}" for j in range(10)]
    X = pandas.DataFrame(data.foreground, columns=columns, index=[f"{NASTY} row {i}" for i in range(300)])
    Y = pandas.DataFrame(data.background, columns=columns)
    labels = np.where(data.labels % 2 == 0, "even", NASTY)
    model = PCPCA(3, gamma=0.5).fit(X, background=Y)
    refits = bootstrap(model, X, background=Y, n_resamples=20, random_state=0)
    file = tmp_path_factory.mktemp("report") / 'a "report" & <b>.html'
    hostile = {"title": NASTY, "origin": Origin(NASTY, sources=[NASTY])}
    study = Study(X, background=Y, labels=labels)
    summarize(study, model, uncertainty=refits, **hostile).write(file)
    return Case(file, examine(study, model, progress=False), X, labels)


@pytest.fixture
def pages():
    """Pages that are closed after the test."""
    pages = []
    yield pages
    for page in pages:
        page.page.close()


@pytest.fixture
def open_page(browser, pages):
    """Open a file."""

    def opener(file, **options):
        pages.append(Page(browser, file, **options))
        return pages[-1]

    return opener


@pytest.fixture
def opened(open_page, case):
    """Open the hostile page."""
    return lambda **options: open_page(case.file, **options)


# Firefox's protocol does not emulate a reader's settings: they are those of the browser.
SETTINGS = {"color_scheme": {"layout.css.prefers-color-scheme.content-override": 0}}  # dark
SETTINGS |= {"reduced_motion": {"ui.prefersReducedMotion": 1}}


@pytest.fixture
def emulated(browser, request, pages, case):
    """Open the hostile page for readers who prefer dark pages (color_scheme="dark") or reduced motion."""

    def opener(**options):
        reader = browser
        if browser.browser_type.name == "firefox":
            found = {name: SETTINGS[name] for name in list(options) if name in SETTINGS and options.pop(name)}
            preferences = {key: value for own in found.values() for key, value in own.items()}
            reader = request.getfixturevalue("start_firefox")(**preferences)
        pages.append(Page(reader, case.file, **options))
        return pages[-1]

    return opener
