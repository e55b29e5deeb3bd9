"""The line turns to the axis between the subgroups."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def results(quick):
    return quick("toy")


def test_the_line_turns(results):
    assert results["angle_to_ppca_at_0"] < 1e-3
    assert results["angle_to_subgroups"][0] > 80
    assert results["angle_to_subgroups"][-1] < 15
    assert results["median_angles"][-1] > 60


def test_weak_contrasts_do_not_turn_it(results):
    assert results["median_angles"][1] < 10


def test_gamma_0_9_is_often_infeasible(results):
    """0.72 of data sets in a run of 200; three standard errors of 50 are 0.19."""
    assert results["feasible_shares"][:3] == [1.0, 1.0, 1.0]
    assert 0.5 < results["feasible_shares"][3] < 0.92


def separation(results, index, labels):
    """Distance of the subgroups' means along the estimated line, in standard deviations within them."""
    along = np.array(results["foreground"]) @ np.array(results["components"][index])
    first, second = along[labels == 0], along[labels == 1]
    return abs(first.mean() - second.mean()) / np.sqrt((first.var() + second.var()) / 2)


def test_the_line_separates_the_subgroups_and_not_permuted_labels(results):
    from experiments._common import permuted

    labels = np.array(results["labels"])
    assert separation(results, 0, labels) < 0.5
    assert separation(results, 3, labels) > 2
    assert separation(results, 3, permuted(labels)) < 0.5  # control; 0.1 is its standard deviation
