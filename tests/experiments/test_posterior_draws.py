"""Posterior draws close in on the axis between the subgroups, and on the shared axis where there are none."""

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # an experiment in quick mode


@pytest.fixture(scope="module")
def results(quick, need):
    need("nutpie")
    return quick("posterior")


def test_draws_concentrate_with_the_rows(results):
    small, _, large = results["sizes"]
    assert small["median"] > 20
    assert large["median"] < 10
    assert large["within_90"] < 20


def test_every_data_set_is_accounted_for(results):
    for size in results["sizes"]:
        assert size["infeasible"] + size["improper"] + len(size["medians"]) == results["data_sets"]
        assert len(size["shown"]["directions"]) == 100
    assert sum(size["infeasible"] for size in results["sizes"]) > 0


def test_without_subgroups_draws_lie_along_the_shared_axis(results):
    """Control, at one gamma for both: rows like the background's have no axis between subgroups to be found."""
    from experiments import posterior
    from experiments._generators import make_toy

    settings = posterior.config(quick=True) | {"gamma": 0.5}
    data, other = (make_toy(300, 300, kind="posterior", random_state=seed) for seed in (0, 1))
    subgroups, none = (
        posterior.angles_to(data.plane[:, 0], posterior.sample(foreground, other.background, settings, seed=0))
        for foreground in (data.foreground, data.background)
    )
    assert np.quantile(subgroups, 0.9) < 30
    assert np.quantile(none, 0.1) > 60
