"""The study of calibration, in quick mode: ranks are uniform at the right power, and intervals cover."""

import pytest

pytestmark = [
    pytest.mark.slow,  # an experiment in quick mode
    pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning"),  # so few draws
]


@pytest.fixture(scope="module")
def results(tmp_path_factory, need):
    need("matplotlib")
    need("nutpie")
    from experiments._stages import experiment, figure_stage, read_results, run_stage

    folder = tmp_path_factory.mktemp("calibration")
    run_stage("calibration", folder, quick=True, tick=lambda text: None)
    found = read_results(folder)
    assert figure_stage("calibration", folder).stat().st_size > 10_000
    assert all(row.ours for row in experiment("calibration").rows(found))
    return found


@pytest.mark.parametrize("name", ["CPCA, 1 direction", "CPCA, 2 directions", "PPCA"])
def test_ranks_are_uniform(results, name):
    """Ten statistics in all: one p-value below 1e-4 has a probability of .001."""
    from experiments.calibration import p_value

    p_values = {statistic: p_value(ranks) for statistic, ranks in results["ranks"][name]["1"].items()}
    assert min(p_values.values()) > 1e-4, p_values


@pytest.mark.parametrize("name", ["CPCA, 1 direction", "PPCA"])
def test_the_wrong_power_shows(results, name):
    """The control: posteriors that are too narrow have the truth at their ends."""
    from experiments.calibration import p_value

    assert min(p_value(ranks) for ranks in results["ranks"][name]["2"].values()) < 1e-3


def test_intervals_cover(results):
    """10 data sets: six standard errors of a share of as many, and what intervals given a fit lack."""
    from experiments.calibration import nominal

    for name, own in results["covered"].items():
        for level, (share, _) in own.items():
            promised = nominal(level)
            assert abs(share - promised) < 0.05 + 4 * (promised * (1 - promised) / 10) ** 0.5, (name, level)
