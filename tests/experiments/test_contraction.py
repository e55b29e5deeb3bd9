"""Posteriors contract at the rate n^(-1/2), and not to the minimiser of another risk."""

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # an experiment in quick mode


@pytest.fixture(scope="module")
def results(quick, need):
    need("nutpie")
    return quick("contraction")


def error(values):
    """Standard error of the mean over data sets."""
    return np.std(values, ddof=1) / np.sqrt(len(values))


def test_the_rate_is_that_of_the_theorem(results):
    from experiments.contraction import slope

    for sizes in results["series"].values():
        assert -0.7 < slope(sizes) < -0.3


def test_the_share_above_a_fixed_multiple_does_not_fall_to_zero(results):
    """The account that differs from the paper's figure."""
    for sizes in results["series"].values():
        last = sizes[-1]["above"]["2"]
        assert np.mean(last) - 2 * error(last) > 0.05


def test_the_share_above_a_growing_multiple_falls(results):
    """By more than twice the standard error; above the fixed multiple, the control, it does not."""
    from experiments.contraction import TOY

    first, *_, last = (size["above"] for size in results["series"][TOY])

    def falls(level):
        tolerance = 2 * np.hypot(error(first[level]), error(last[level]))
        return np.mean(first[level]) - np.mean(last[level]) > tolerance

    assert falls("log(n) / 2")
    assert not falls("2")


def test_one_pool_of_rows_makes_the_end_a_lottery(results):
    """A pool is one data set at the largest n: its share is chance, and on average that of new rows."""
    from experiments.contraction import OTHERS, both_ends, config, draw_from_pool

    settings = config(quick=True)
    first, second = (draw_from_pool(500, 0, repeat, settings).foreground for repeat in (0, 1))
    np.testing.assert_array_equal(np.sort(first, axis=0), np.sort(second, axis=0))
    ends, new = both_ends(results)[:, 1], results["series"][OTHERS][-1]["above"]["2"]
    assert np.ptp(ends) > 0.5
    assert abs(np.mean(ends) - np.mean(new)) < 3 * np.hypot(error(ends), error(new))


def test_there_is_no_contraction_to_a_wrong_minimiser(need):
    """Control: about the risk minimiser of other covariances sqrt(n) d grows with n, so that the rate is not seen."""
    need("nutpie")
    from experiments import contraction

    settings = contraction.config(quick=True)
    sizes = []
    for n in settings["sizes"]:
        data = contraction.draw(contraction.OTHERS, n, 0)
        data.foreground_covariance, data.background_covariance = contraction.AUTHORS[::-1]
        sizes.append({"n": n, "medians": [np.median(contraction.scaled_divergences(data, 0.1, 0, settings))]})
    assert contraction.slope(sizes) > -0.2
