"""Posterior draws close in on the axis between the subgroups, and on no axis where there are no subgroups."""

import numpy as np
import pytest


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


def test_without_subgroups_draws_point_anywhere(results):
    """Control: with rows like the background's as foreground the claim about n = 300 must fail."""
    from contrapca.datasets import make_toy
    from experiments import posterior

    settings = posterior.config(quick=True) | {"gamma": 0.5}
    pairs = [make_toy(300, 300, kind="posterior", random_state=seed) for seed in (0, 1)]
    draws = posterior.sample(pairs[0].background, pairs[1].background, settings, seed=0)
    assert np.quantile(posterior.angles_to(pairs[0].plane[:, 0], draws), 0.9) > 40
