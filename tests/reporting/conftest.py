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
from contrapca import PCPCA, report
from contrapca.datasets import make_hidden_clusters
from contrapca.reporting._subject import examine


@pytest.fixture(scope="module", params=["chromium", pytest.param("firefox", marks=pytest.mark.slow)])
def browser(request, need):
    """Each browser in turn; Firefox is driven by its own protocol, as Debian builds it."""
    need("jinja2")
    playwright = need("playwright.sync_api")
    path = program(request.param)
    with playwright.sync_playwright() as driver:
        if request.param == "chromium":
            started = driver.chromium.launch(executable_path=path, args=FLAGS)
        else:
            started = driver.firefox.launch(executable_path=path, channel="moz-firefox")
        yield started
        started.close()


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
    refits = model.bootstrap(X, background=Y, n_resamples=20, random_state=0)
    file = tmp_path_factory.mktemp("report") / 'a "report" & <b>.html'
    hostile = {"title": NASTY, "sources": [NASTY], "code": NASTY}
    report(model, X, background=Y, labels=labels, output=file, uncertainty=refits, **hostile)
    return Case(file, examine(model, X, Y, labels, None, None, None, None, None, False), X, labels)


@pytest.fixture
def open_page(browser):
    """Open a file in the browser; pages are closed after the test."""
    pages = []

    def opener(file, **options):
        pages.append(Page(browser, file, **options))
        return pages[-1]

    yield opener
    for page in pages:
        page.page.close()


@pytest.fixture
def opened(open_page, case):
    """Open the hostile page."""
    return lambda **options: open_page(case.file, **options)
