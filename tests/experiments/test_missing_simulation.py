"""With holes PCPCA beats PPCA of the pooled rows, unless both groups come from one model."""

import numpy as np
import pytest

from contrapca import CPCA, PCPCA

pytestmark = pytest.mark.slow  # an experiment in quick mode

BOTH, ALONE = "PPCA, both groups", "PPCA, foreground"


@pytest.fixture(scope="module")
def results(quick):
    return quick("missing_simulation")


def mean(table):
    return np.mean(table, axis=1)


def test_pooled_rows_predict_worse(results):
    gain = mean(results["likelihood"]["PCPCA"]) - mean(results["likelihood"][BOTH])
    assert gain[:2].min() > 0.5
    assert gain.min() > 0.1


def test_pooled_rows_impute_worse_and_column_means_worst(results):
    ours, pooled, means = (mean(results["error"][name]) for name in ("PCPCA", BOTH, "column means"))
    assert np.all(ours < 0.92 * pooled)
    assert np.all(ours < 0.85 * means)


def test_the_foreground_alone_is_no_worse(results):
    """What the paper does not show: nothing is gained over a model of the foreground alone."""
    assert np.all(mean(results["likelihood"][ALONE]) > mean(results["likelihood"]["PCPCA"]))


def test_few_holes_cost_little(results):
    first, second, third = mean(results["likelihood"]["PCPCA"])
    assert first - second < 0.4
    assert third < second


def test_cpca_has_no_likelihood(results):
    """As the paper says; the control is PCPCA, which has."""
    assert not hasattr(CPCA(1), "score_samples")
    assert hasattr(PCPCA(1), "score_samples")
    assert "CPCA" not in results["likelihood"]


def test_there_is_nothing_to_gain_where_the_groups_are_alike():
    """Control: with one model for both groups the claim about pooled rows must fail."""
    from experiments import missing_simulation as experiment

    settings = experiment.config(quick=True)
    gains = []
    for seed in range(settings["data_sets"]):
        rows = experiment.draw(settings, seed, same_model=True)
        scores, _ = experiment.compare(*rows, 0.3, seed, settings)
        gains.append(scores["PCPCA"] - scores[BOTH])
    assert np.mean(gains) < 0
