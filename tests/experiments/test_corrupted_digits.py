"""On grass PCPCA sees the digits and PPCA does not."""

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # an experiment in quick mode


@pytest.fixture(scope="module")
def results(quick, data_folder):
    return quick("corrupted_digits")


def mean(results, key):
    return np.mean([draw[key] for draw in results["draws"]], axis=0)


def test_silhouettes(results):
    ppca = np.array(results["ppca"])
    standard_error = ppca.std(ddof=1) / np.sqrt(len(ppca))
    assert abs(ppca.mean() - 0.03) < 0.02 - 2 * standard_error
    for draw in results["draws"]:
        assert draw["silhouette"][1] > 0.30
        assert draw["silhouette"][1] > draw["silhouette"][0] + 0.2


def test_the_sample_of_rows_stands_for_all(results):
    for draw, sampled in zip(results["draws"], results["ppca"], strict=False):
        assert abs(draw["silhouette"][0] - sampled) < 0.01


def test_permuted_labels_do_not_separate(results):
    """Control: the claim must fail on labels in random order."""
    for draw in results["draws"]:
        assert not draw["permuted"][1] > draw["permuted"][0] + 0.2
        assert abs(draw["permuted"][1]) < 0.02


def test_generated_images_show_digits(results):
    ppca, pcpca = mean(results, "shows")
    assert pcpca > 0.9
    assert ppca < 0.5


def test_three_hundred_images_of_each_model(results):
    assert np.shape(results["drawn"]) == (2, 300, 2)
    assert np.shape(results["directions"]) == (2, 2, 784)


def test_the_photograph_serves_as_well(data_folder, need):
    """Where the 700 photographs are not at hand, the CC0 one takes their place; PPCA sees more of the digits on it."""
    need("PIL")
    from contrapca import PCPCA, contrast_path
    from experiments._common import permuted, silhouette
    from experiments._data import load_corrupted_mnist

    data = load_corrupted_mnist(n=1500, grass="photograph")
    path = contrast_path(PCPCA(2, scale="group"), data.foreground, background=data.background, gammas=[0.0, 0.8])
    ppca, pcpca = path.latents(data.foreground)
    assert silhouette(pcpca, data.labels) > silhouette(ppca, data.labels) + 0.05
    assert abs(silhouette(pcpca, permuted(data.labels))) < 0.02
