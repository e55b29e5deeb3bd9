"""Both methods separate the genotypes; the paper's numbers come back under the paper's choices."""

import pytest


@pytest.fixture(scope="module")
def results(quick, data_folder):
    return quick("mouse_silhouette")


def test_the_papers_numbers(results):
    found = results["paper_choices"]["without three rows"]
    assert found["n"] == 267
    assert found["cpca"]["best"] == pytest.approx(0.425, abs=1e-3)
    assert found["pcpca"]["best"] == pytest.approx(0.404, abs=1e-3)


def test_both_methods_beat_plain_pca(results):
    for curve in results["curves"].values():
        assert curve["best"] > curve["silhouettes"][0] + 0.3


def test_where_the_methods_end(results):
    cpca, pcpca = results["curves"]["cpca"], results["curves"]["pcpca"]
    assert cpca["limit"] == pytest.approx(371.95, abs=0.01)
    assert pcpca["limit"] == pytest.approx(0.6291, abs=1e-4)
    assert pcpca["best_gamma"] > 0.8 * pcpca["limit"], "the best is near the end"
    assert cpca["best_gamma"] < 0.1 * cpca["limit"], "the best is near the beginning"
    assert cpca["last_spread"] < 0.1 < pcpca["last_spread"], "CPCA's background shrinks to a point"


def test_clvm_needs_no_gamma(results):
    assert results["clvm"]["2"] > 0.4


def test_permuted_genotypes_do_not_separate(results):
    for curve in results["curves"].values():
        assert max(map(abs, curve["permuted"])) < 0.05
