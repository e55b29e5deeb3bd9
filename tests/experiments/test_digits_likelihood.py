"""Clean digits are likelier under PCPCA of digits on grass than under PPCA; other images are not."""

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # an experiment in quick mode


@pytest.fixture(scope="module")
def results(quick, data_folder):
    return quick("digits_likelihood")


def test_clean_digits_gain_from_the_contrast(results):
    from experiments.digits_likelihood import UNITS, advantage

    gammas, gains = np.array(results["gammas"]), advantage(results, UNITS[0])
    strong = gammas >= 0.2
    assert strong.sum() == 6
    assert np.all(gains[0, strong] > 20)  # the data set as it is loaded by default
    assert np.all(np.median(gains, axis=0)[strong] > 10)
    assert np.all(gains[:, strong & (gammas <= 0.8)] > 10)  # and every draw that far from the limit


def test_in_the_units_of_the_foreground_a_mild_contrast_gains(results):
    from experiments.digits_likelihood import UNITS, advantage

    assert np.all(advantage(results, UNITS[1])[:, results["gammas"].index(0.2)] > 2)


def test_images_without_digits_gain_nothing(data_folder):
    """Control: with their pixels in another order, digits are not likelier under PCPCA."""
    from sklearn.preprocessing import StandardScaler

    from experiments._data import load_corrupted_mnist
    from experiments.digits_likelihood import score_along

    data = load_corrupted_mnist(n=2000)
    images = StandardScaler().fit_transform(data.test[:1000])
    shuffled = np.random.default_rng(0).permutation(images, axis=1)
    X, Y = (StandardScaler().fit_transform(table) for table in (data.foreground, data.background))
    _, (ppca, pcpca) = score_along(X, Y, images, [0.0, 0.6])
    assert pcpca > ppca + 10
    _, (ppca, pcpca) = score_along(X, Y, shuffled, [0.0, 0.6])
    assert pcpca < ppca
