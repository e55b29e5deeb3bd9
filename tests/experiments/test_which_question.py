"""Methods side by side: the scores are what they say, and the question that a method is for is the one it answers."""

from pathlib import Path

import numpy as np
import pytest

from experiments import which_question as study
from experiments._stages import experiment, figure_stage, read_results, run_stage


@pytest.fixture(scope="module")
def tables():
    """Cases whose mean is shifted in 20 features and which vary more in two others; patients shift two more."""
    rng = np.random.default_rng(0)
    patient = np.repeat(["a", "b", "c", "d"], 200)
    treated = np.tile([True, False], 400)
    X = rng.normal(size=(800, 40))
    X[treated, :20] += 0.5
    X[treated, 20:22] *= 3
    X[:, 22] += 6 * (patient == "a") - 6 * (patient == "b")
    X[:, 23] += 6 * (patient == "b") - 6 * (patient == "c")
    return X, treated, patient


@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_each_method_answers_its_own_question(tables):
    scores = {name: study.judge(fit, *tables, "d") for name, fit in study.CELLS.items()}
    assert scores["marker score"]["auc"] > 0.9  # Phi(.5 sqrt(20 / 2)) = .94
    assert scores["ContraPCA"]["auc"] < 0.7
    assert scores["ContraPCA"]["log_ratio"] > 0.9 > 0.4 > scores["PCA of all cells"]["log_ratio"]
    assert scores["PCA of all cells"]["patients"] > 0.35 > 0.1 > scores["ContraPCA"]["patients"]


@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_nothing_is_found_without_a_difference(tables):
    X, treated, patient = tables
    same = np.random.default_rng(1).permutation(treated)
    for fit in study.CELLS.values():
        found = study.judge(fit, X, same, patient, "d")
        assert abs(found["auc"] - 0.5) < 0.15
        assert abs(found["log_ratio"]) < 0.7


def test_whitened_controls_are_white():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(20_000, 6)) @ rng.normal(size=(6, 6)) + 5
    mean, W = study.whitening(Y)
    assert np.allclose(np.cov((Y - mean) @ W, rowvar=False), np.eye(6), atol=0.02)
    few_mean, few = study.whitening(Y[:5])  # fewer rows than features: shrunk, so finite
    assert np.isfinite((Y - few_mean) @ few).all()


def test_precision_against_a_loop():
    rng = np.random.default_rng(0)
    Z, compound, mechanism = rng.normal(size=(30, 4)), rng.integers(0, 8, 30), rng.integers(0, 3, 30)
    expected = []
    for i in range(30):
        order = sorted(
            (j for j in range(30) if compound[j] != compound[i]),
            key=lambda j: -Z[i] @ Z[j] / np.linalg.norm(Z[i]) / np.linalg.norm(Z[j]),
        )
        right = [mechanism[j] == mechanism[i] for j in order]
        expected.append(np.mean([sum(right[: k + 1]) / (k + 1) for k in range(len(right)) if right[k]]))
    assert np.allclose(study.precisions(Z, compound, mechanism, np.ones(30, bool)), expected)


def test_residuals_have_the_treatments_covariance():
    rng = np.random.default_rng(0)
    names = np.repeat([f"t{k}" for k in range(3000)], 2)
    X = rng.normal(size=(6000, 2)) * [1, 3] + np.repeat(rng.normal(size=(3000, 2)) * 9, 2, axis=0)
    assert np.allclose(study.residuals(X, names).var(axis=0), [1, 9], rtol=0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_quick_run_and_figure(tmp_path, need):
    need("matplotlib")
    run_stage("which_question", tmp_path, quick=True, tick=lambda text: None)
    found = read_results(tmp_path)
    assert figure_stage("which_question", tmp_path).stat().st_size > 10_000
    assert len(experiment("which_question").rows(found)) == len(study.CELLS) + len(study.WELLS)
    assert all(0 < np.mean(values) < 1 for values in found["wells"].values())


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
@pytest.mark.filterwarnings("ignore::contrapca.exceptions.ContrastWarning")
def test_the_page_shows_what_the_study_finds():
    found = study.run(study.config(quick=False), tick=lambda text: None)
    page = (Path(__file__).parents[2] / "docs" / "which_question.md").read_text(encoding="utf-8").replace("**", "")
    shown = [[cell.strip() for cell in line.split("|")[2:-1]] for line in page.splitlines() if line.startswith("| ")]
    numbers = [[float(cell) for cell in cells] for cells in shown if cells[0][:1] in (".", "1", "2") and cells[0] != ""]
    expected = [
        [np.mean(s["auc"]), np.exp(np.mean(s["log_ratio"])), np.mean(s["patients"])] for s in found["cells"].values()
    ] + [[np.mean(values)] for values in found["wells"].values()]
    assert len(numbers) == len(expected)
    for row in expected:
        assert any(len(other) == len(row) and np.allclose(other, row, atol=0.011) for other in numbers), row
