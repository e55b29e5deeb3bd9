"""The defaults find what is planted; the paper's axes do not, which is the control."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def results(tmp_path_factory, need):
    need("matplotlib")
    from experiments._stages import experiment, figure_stage, read_results, run_stage

    folder = tmp_path_factory.mktemp("directions")
    run_stage("directions", folder, quick=True, tick=lambda text: None)
    found = read_results(folder)
    assert figure_stage("directions", folder).stat().st_size > 10_000
    assert all(row.ours for row in experiment("directions").rows(found))
    return found


def column(results, which, method):
    return np.array([row[results["methods"].index(method)] for row in results[which].values()], dtype=float)


def test_the_default_finds_most_of_what_is_planted(results):
    assert column(results, "standard", "ContraPCA").mean() > 0.95
    assert column(results, "standard", "ContraPCA").min() > 0.85


def test_the_papers_axes_miss_it(results):
    assert column(results, "standard", "PCPCA (the paper's axes)").mean() < 0.6


def test_a_gamma_chosen_by_the_truth_is_no_better(results):
    ours, best = (column(results, "standard", name) for name in ("ContraPCA", "CPCA, best gamma by the truth"))
    assert ours.mean() > best.mean() - 0.01
