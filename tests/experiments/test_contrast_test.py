"""The study of the test of a contrast, in quick mode: its level holds, and it finds what is planted."""

import numpy as np
import pytest
import scipy.stats

pytestmark = pytest.mark.slow  # an experiment in quick mode


@pytest.fixture(scope="module")
def results(tmp_path_factory, need):
    need("matplotlib")
    from experiments._stages import experiment, figure_stage, read_results, run_stage

    folder = tmp_path_factory.mktemp("contrast_test")
    run_stage("contrast_test", folder, quick=True, tick=lambda text: None)
    found = read_results(folder)
    assert figure_stage("contrast_test", folder).stat().st_size > 10_000
    assert all(row.ours for row in experiment("contrast_test").rows(found))
    return found


def test_the_level_holds(results):
    """Of all settings together; the tolerance is a binomial's."""
    count = results["datasets"]["size"]
    found = round(sum(results["size"].values()) * count)
    assert found <= scipy.stats.binom.isf(1e-4, count * len(results["size"]), 0.05)


def test_what_is_planted_is_found(results):
    assert np.mean([split for split, _ in results["power"].values()]) > 0.7
    assert np.mean([right for right, _ in results["number"].values()]) > 0.7


def test_blocks_matter(results):
    """By rows, donors without any contrast always look like one: the control."""
    count = results["datasets"]["blocks"] * len(results["blocks"])
    by_block = round(sum(blocks for blocks, _ in results["blocks"].values()) * results["datasets"]["blocks"])
    assert by_block <= scipy.stats.binom.isf(1e-4, count, 0.05)
    assert min(rows for _, rows in results["blocks"].values()) > 0.9


def test_few_units(results):
    """Of all settings and levels together; the tolerance is a binomial's. The first, 4 + 4 rows, is refused."""
    count, shares = results["datasets"]["size"], [own for own in results["few"].values() if own is not None]
    assert results["few"]["gauss 4+4x5"] is None
    for level, found in zip((0.05, 0.01, 0.001), np.sum(shares, axis=0), strict=True):
        assert round(found * count) <= scipy.stats.binom.isf(1e-4, count * len(shares), level)


def test_the_seed_hardly_matters(results):
    assert all(mean < 0.3 for mean, _, _ in results["seeds"].values())
