"""Posteriors contract at the rate n^(-1/2), and not to the minimiser of another risk."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def results(quick, need):
    need("nutpie")
    return quick("contraction")


def spread(values):
    return max(values) - min(values)


def test_the_rate_is_that_of_the_theorem(results):
    from experiments.contraction import SERIES, slope

    for name in SERIES[:2]:
        assert -0.7 < slope(results["series"][name]) < -0.3


def test_the_share_above_a_fixed_multiple_does_not_fall_to_zero(results):
    """The account that differs from the paper's figure."""
    for sizes in results["series"].values():
        assert np.mean(sizes[-1]["above"]["2"]) > 0.1


def test_the_share_above_a_growing_multiple_falls(results):
    from experiments.contraction import SERIES

    first, *_, last = results["series"][SERIES[0]]
    assert np.mean(last["above"]["log(n) / 2"]) < np.mean(first["above"]["log(n) / 2"]) - 0.03


def test_one_pool_hides_the_spread_between_data_sets(results):
    from experiments.contraction import SERIES

    new, pooled = (results["series"][name][-1]["above"]["2"] for name in SERIES[1:])
    assert spread(pooled) < 0.2
    assert spread(new) > 0.3


def test_there_is_no_contraction_to_a_wrong_minimiser(need):
    """Control: about the risk minimiser of other covariances sqrt(n) d grows with n, so that the rate is not seen."""
    need("nutpie")
    from experiments import contraction

    settings = contraction.config(quick=True)
    sizes = []
    for n in settings["sizes"]:
        data = contraction.draw(contraction.SERIES[1], n, 0, settings)
        data.foreground_covariance, data.background_covariance = contraction.AUTHORS[::-1]
        sizes.append({"n": n, "medians": [np.median(contraction.scaled_divergences(data, 0.1, 0, settings))]})
    assert contraction.slope(sizes) > -0.2
