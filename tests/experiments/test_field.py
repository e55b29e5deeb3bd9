"""The study of all methods: contrastive ones show the hidden clusters, PCA does not, which is the control."""

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory, need):
    need("matplotlib")
    from experiments._stages import experiment, figure_stage, read_results, run_stage

    folder = tmp_path_factory.mktemp("field")
    run_stage("field", folder, quick=True, tick=lambda text: None)
    found = read_results(folder)
    assert figure_stage("field", folder).stat().st_size > 10_000
    assert len(experiment("field").rows(found)) == len(found["methods"])
    return found["data"]["hidden clusters"]


def test_contrasts_show_what_pca_hides(results):
    for method in ("ContraPCA", "CPCA, gamma auto", "RatioPCA, ridge auto", "CLVM, 5 shared"):
        assert results[method]["silhouette"] > 0.4, method
        assert results[method]["ratio"] > 3, method
    assert results["PCA"]["silhouette"] < 0.1
    assert results["PCA"]["ratio"] < 1.5


def test_no_method_refuses_a_tall_table(results):
    assert not [method for method, numbers in results.items() if "failure" in numbers]
