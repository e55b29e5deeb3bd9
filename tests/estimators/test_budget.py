"""CPCA(gamma="budget"): one strength for each background, and what the components then vary in each."""

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import make_groups
from contrapca import CPCA, PCPCA, Moments, contrast_path, held_out_contrast, load
from contrapca.datasets import make_hidden_clusters
from contrapca.fitting import budgeted
from contrapca.solvers import noise_rank


def noise_variance(Y):
    """Of the dimensions that do not stand out, written out."""
    values = np.linalg.eigvalsh(np.cov(Y.T, ddof=0))[::-1]
    q = min(noise_rank(values * len(Y), len(Y), len(values)), 3 * len(values) // 4)
    return values[q:].mean()


def test_the_background_varies_as_much_as_its_noise(groups):
    X, Y = groups
    model = CPCA(1, gamma="budget").fit(X, background=Y)
    assert model.gamma_ > 0
    assert model.background_variance_[0] == pytest.approx(noise_variance(Y), rel=1e-6)
    # Any smaller gamma leaves more of the background, any larger one less of the foreground.
    weaker, stronger = (CPCA(1, gamma=factor * model.gamma_).fit(X, background=Y) for factor in (0.9, 1.1))
    assert weaker.background_variance_[0] > model.background_variance_[0] > stronger.background_variance_[0]
    assert stronger.explained_variance_[0] < model.explained_variance_[0]


def test_the_subspace_form(groups):
    """Of two components, the mean variance is in the budget."""
    X, Y = groups
    model = CPCA(2, gamma="budget").fit(X, background=Y)
    assert model.background_variance_.mean() == pytest.approx(noise_variance(Y), rel=1e-5)


def test_it_finds_the_hidden_plane():
    data = make_hidden_clusters(random_state=0)
    model = CPCA(2, gamma="budget").fit(data.foreground, background=data.background)
    assert np.sum((model.components_ @ data.plane) ** 2) / 2 > 0.8
    pca = CPCA(2, gamma=0).fit(data.foreground, background=data.background)
    assert np.sum((pca.components_ @ data.plane) ** 2) / 2 < 0.1


def test_units_do_not_matter(groups):
    """The published rule has a budget of 1, which depends on them."""
    X, Y = groups
    gammas = [CPCA(1, gamma="budget").fit(c * X, background=c * Y).gamma_ for c in (1.0, 1e-6, 1e6)]
    np.testing.assert_allclose(gammas, gammas[0], rtol=1e-6)


def test_every_storage(groups):
    X, Y = groups
    expected = CPCA(2, gamma="budget").fit(X, background=Y)
    for model in (
        CPCA(2, gamma="budget", solver="dual").fit(X, background=Y),
        CPCA(2, gamma="budget", solver="lanczos").fit(sp.csr_array(X), background=sp.csr_array(Y)),
        CPCA(2, gamma="budget").fit(Moments.from_rows(X), background=Moments.from_rows(Y)),
    ):
        assert model.gamma_ == pytest.approx(expected.gamma_, rel=1e-4)
        np.testing.assert_allclose(np.abs(model.components_), np.abs(expected.components_), atol=1e-3)


def several():
    """Two backgrounds, each with a nuisance direction of its own; the foreground has both."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((15, 3)))[0]

    def table(n, *lengths):
        return rng.standard_normal((n, 15)) + (rng.standard_normal((n, 3)) * lengths) @ Q.T

    return table(300, 6, 5, 3), {"one": table(200, 6, 0, 0), "other": table(150, 0, 5, 0)}, Q[:, 2]


def test_several_backgrounds_have_a_strength_each(tmp_path):
    X, backgrounds, planted = several()
    model = CPCA(1, gamma="budget").fit(X, background=backgrounds)
    assert set(model.gammas_) == {"one", "other"}
    assert min(model.gammas_.values()) > 0
    assert sum(model.gammas_.values()) == pytest.approx(model.gamma_)
    assert abs(model.components_[0] @ planted) > 0.9
    for name, Y in backgrounds.items():
        assert model.background_variance_[name][0] == pytest.approx(noise_variance(Y), rel=1e-5)
    # The same numbers, given: the same model; and it can be saved, resampled and judged.
    again = CPCA(1, gamma=model.gammas_).fit(X, background=backgrounds)
    np.testing.assert_allclose(again.components_, model.components_, atol=1e-12)
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").gammas_ == model.gammas_
    draws = model.bootstrap(X, background=backgrounds, n_resamples=20, random_state=0, progress=False)
    assert np.degrees(np.median(draws.angles())) < 30
    found = held_out_contrast(CPCA(1, gamma="budget"), X, background=backgrounds)
    assert found.gamma == pytest.approx(model.gamma_)
    assert found.mean > 1


def test_a_background_without_variance_is_ignored(groups):
    X, Y = groups
    model = CPCA(1, gamma="budget").fit(X, background={"real": Y, "constant": np.ones((5, X.shape[1]))})
    assert model.gammas_["constant"] == 0
    assert model.gammas_["real"] > 0
    assert CPCA(1, gamma="budget").fit(X, background=np.ones((5, X.shape[1]))).gamma_ == 0


def test_it_stays_below_the_limit():
    """With more components than the contrast has positive eigenvalues, gamma gives way."""
    X, Y = make_groups(40, 200, 10, signal=2.0)
    model = CPCA(6, gamma="budget").fit(0.3 * X, background=Y)
    assert (model.eigenvalues_ > 0).all()


def test_other_methods_have_no_budget(groups):
    X, Y = groups
    with pytest.raises(TypeError, match=r"gamma='budget' must be 'auto', a number.*a dict.*CPCA and SparseCPCA take"):
        PCPCA(gamma="budget").fit(X, background=Y)
    with pytest.raises(TypeError, match="gamma='Budget'"):
        CPCA(gamma="Budget").fit(X, background=Y)
    with pytest.raises(TypeError, match=r"gamma='large' must be a number, 0 or more\.$"):  # where no other is taken
        contrast_path(CPCA(2), X, background=Y, gammas=[0.0, 0.5]).model("large")
    assert callable(budgeted)
