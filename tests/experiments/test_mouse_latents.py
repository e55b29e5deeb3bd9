"""The genotypes separate as gamma grows, and permuted ones do not."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def results(quick, data_folder):
    return quick("mouse_latents")


def test_genotypes_separate(results):
    scores = results["silhouettes"]
    assert results["gammas"][0] == 0
    assert results["angle_to_ppca"] < 1e-3
    assert scores[0] < 0.1
    assert min(scores[1:]) > scores[0] + 0.3
    assert scores[-1] == pytest.approx(0.445, abs=0.003)


def test_the_background_lies_between_the_genotypes(results):
    assert results["between"][-1] > results["between"][0] + 0.3


def test_permuted_genotypes_do_not_separate(results):
    from experiments._common import permuted, silhouette

    Z = np.array(results["foreground"][-1])
    assert silhouette(Z, results["labels"]) > 0.4
    assert abs(silhouette(Z, permuted(results["labels"]))) < 0.05
