"""Mouse proteins with holes: the genotypes still separate at p = 0.6; permuted labels do not."""

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # an experiment in quick mode


@pytest.fixture(scope="module")
def results(quick, data_folder):
    return quick("mouse_missing")


def seen(results, kind):
    return {found["share"]: float(np.mean(found[kind])) for found in results["latents"]}


def test_genotypes_separate_in_spite_of_holes(results):
    scores, ppca = seen(results, "silhouette"), seen(results, "ppca")
    for share in (0.0, 0.2, 0.4, 0.5, 0.6):
        assert scores[share] > 0.25
        assert scores[share] > ppca[share] + 0.1
        assert share == 0.6 or abs(scores[share] - scores[0.0]) < 0.1, "steady for p < 0.6"


def test_nine_tenths_missing_are_too_many(results):
    assert seen(results, "silhouette")[0.9] < seen(results, "silhouette")[0.6] - 0.1


def test_permuted_labels_do_not_separate(results):
    """Control: the claim must fail on labels in random order."""
    assert max(seen(results, "permuted").values()) < 0.05


def test_models_impute_better_than_column_means(results):
    ours, means = (np.mean(results["error"][name], axis=1) for name in ("PCPCA", "column means"))
    assert np.all(ours < 0.7 * means)


def test_the_contrast_does_not_help_imputation(results):
    """What differs from the paper: PPCA of both groups is no worse."""
    ours, pooled = (np.mean(results["error"][name], axis=1) for name in ("PCPCA", "PPCA, both groups"))
    assert np.all(ours > pooled - 0.01)


def test_the_settings_of_the_code_have_no_maximum(results):
    assert not results["code"]["bounded"]
    assert results["code"]["raw_limit"] < 0.5 < results["code"]["raw_gamma"]
