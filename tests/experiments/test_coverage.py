"""The study of the bootstrap's intervals, in quick mode: they cover where quantiles of the refits do not."""

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # an experiment in quick mode


@pytest.fixture(scope="module")
def results(tmp_path_factory, need):
    need("matplotlib")
    from experiments._stages import experiment, figure_stage, read_results, run_stage

    folder = tmp_path_factory.mktemp("coverage")
    run_stage("coverage", folder, quick=True, tick=lambda text: None)
    found = read_results(folder)
    assert figure_stage("coverage", folder).stat().st_size > 10_000
    assert all(row.ours for row in experiment("coverage").rows(found))
    return found


def shares(results, method, name):
    return [own[method][name] for own in results["covered"].values()]


@pytest.mark.parametrize("method", ["PCPCA", "ContraPCA", "CPCA"])
def test_loadings_are_covered(results, method):
    """Loadings of a data set hang together, so that few data sets tell little: the range is wide."""
    assert 0.8 < np.mean(shares(results, method, "loadings")) < 0.97
    assert np.mean(shares(results, method, "large")) > 0.75


def test_the_noise_variance_is_covered_where_an_interval_is_given(results):
    """16 data sets: fewer than 11 covered have a probability of .003 at .9."""
    assert np.mean(shares(results, "PCPCA", "noise")) >= 11 / 16
    assert shares(results, "ContraPCA", "noise") == [None, None]


def test_quantiles_miss(results):
    """The control: of the refits' own quantiles the bias of the noise variance is not taken off."""
    assert np.mean(shares(results, "ContraPCA", "noise, quantiles")) < 0.3
