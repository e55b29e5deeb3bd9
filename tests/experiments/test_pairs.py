"""The study of pairs and covariates, in quick mode: what is known of rows helps, and within pairs a response shows."""

import pytest

pytestmark = pytest.mark.slow  # an experiment in quick mode


@pytest.fixture(scope="module")
def results(tmp_path_factory, need):
    need("matplotlib")
    from experiments._stages import experiment, figure_stage, read_results, run_stage

    folder = tmp_path_factory.mktemp("pairs")
    run_stage("pairs", folder, quick=True, tick=lambda text: None)
    found = read_results(folder)
    assert figure_stage("pairs", folder).stat().st_size > 10_000
    assert all(row.ours for row in experiment("pairs").rows(found))
    return found


def test_what_is_known_of_rows_helps(results):
    known, ignored = results["pairs"]["100 pairs, response 9"]
    assert known > ignored
    known, ignored = results["covariates"]["40 + 40, 5 covariates, planted 6"]
    assert known > ignored


def test_within_pairs_shows_a_response_among_the_levels(results):
    found = results["responses"]["among the levels, 5 controls"]
    assert max(found, key=found.get) == "within pairs"
    beside = results["responses"]["beside the levels, 2 controls"]
    assert max(beside, key=beside.get) == "as they are"
