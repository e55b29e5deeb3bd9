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


def test_the_background_separates_from_each_genotype_and_permuted_rows_do_not(results):
    from experiments.mouse_latents import from_background

    first, *_, last = results["from_background"]
    assert max(first.values()) < 0.05
    assert min(last.values()) > 0.2
    cases, controls = (np.array(results[group][-1]) for group in ("foreground", "background"))
    mixed = np.random.default_rng(0).permutation(np.vstack([cases, controls]))  # control: who is background is chance
    found = from_background(mixed[: len(cases)], np.array(results["labels"]), mixed[len(cases) :])
    assert max(map(abs, found.values())) < 0.05


def test_permuted_genotypes_do_not_separate(results):
    from experiments._common import permuted, silhouette

    Z = np.array(results["foreground"][-1])
    assert silhouette(Z, results["labels"]) > 0.4
    assert abs(silhouette(Z, permuted(results["labels"]))) < 0.05
