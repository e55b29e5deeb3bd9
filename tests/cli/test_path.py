"""`contrapca path` against the library called directly."""

import json

import numpy as np
import pytest

import contrapca
from csvfiles import columns_of


@pytest.mark.parametrize(("method", "gammas"), [("pcpca", None), ("cpca", 7)])
def test_path(folder, run, pair, method, gammas):
    arguments = ["path", "cases.csv", "--background", "controls.csv", "--method", method, "-o", "results"]
    arguments += [] if gammas is None else ["--gammas", str(gammas)]
    outcome = run(*arguments)
    assert outcome.code == 0
    expected = contrapca.contrast_path(
        {"pcpca": contrapca.PCPCA, "cpca": contrapca.CPCA}[method](2), pair[0], background=pair[1], gammas=gammas
    )
    assert len(expected) == (gammas or 40)
    found = contrapca.load(folder / "results" / "path.npz")
    assert found.feature_names == [f"gene{j}" for j in range(6)]
    np.testing.assert_allclose(found.gammas, expected.gammas)
    table = columns_of(folder / "results" / "path.csv", list(expected.table()))
    np.testing.assert_allclose(table[:, 0], expected.gammas)
    np.testing.assert_allclose(table[:, 2], expected.objective)
    chosen = expected.representatives()
    assert f"differ most: {contrapca.exceptions.format_gamma(chosen[0])}, " in outcome.out
    summary = json.loads(run("info", "results/path.npz", "--json").out)
    np.testing.assert_allclose(summary["representatives"], chosen)
    assert outcome.out.splitlines()[2] in run("info", "results/path.npz").out
    refused = run("sample", "results/path.npz", "-o", "new.csv")
    assert "holds a ContrastPath" in refused.err


def test_the_limit_with_missing_values_is_a_bound(folder, run):
    text = (folder / "controls.csv").read_text().splitlines()
    (folder / "holes.csv").write_text("\n".join([*text[:-1], "," + text[-1].partition(",")[2]]))
    shown = run("path", "cases.csv", "--background", "holes.csv", "--gammas", "3", "-o", "results").out
    limit = contrapca.exceptions.format_gamma(contrapca.load(folder / "results" / "path.npz").gamma_max)
    assert f"(upper bound {limit})" in shown


def test_a_number_of_gammas_for_the_library(pair):
    X, Y = pair
    for gammas in (2, np.int64(5)):
        assert len(contrapca.contrast_path(contrapca.PCPCA(2), X, background=Y, gammas=gammas)) == gammas
    holes = X.copy()
    holes[0, 0] = np.nan
    assert len(contrapca.contrast_path(contrapca.PCPCA(1), holes, background=Y, gammas=3)) == 3
    with pytest.raises(ValueError, match=r"gammas=1: an integer is the number of values, at least 2"):
        contrapca.contrast_path(contrapca.PCPCA(2), X, background=Y, gammas=1)
