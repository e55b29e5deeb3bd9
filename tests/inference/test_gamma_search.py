"""Choosing gamma: the criteria, and what the search returns."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import silhouette_score

from contrapca import CPCA, PCPCA, PPCA, ContraPCA, GammaSearch, RatioPCA, Study, contrast_path, gamma_limits
from contrapca.contrast._subspaces import affinity
from contrapca.data._groups import Groups
from contrapca.datasets import make_hidden_clusters
from contrapca.exceptions import ContrastWarning, GroupError
from contrapca.moments._subsets import assign_folds

DATA = make_hidden_clusters(200, 200, 15, random_state=0)
X, Y, LABELS = DATA.foreground, DATA.background, DATA.labels


@pytest.mark.parametrize("estimator", [PCPCA(2), ContraPCA(2), CPCA(2)])
@pytest.mark.parametrize("criterion", ["contrast", "silhouette", "likelihood"])
def test_criteria(criterion, estimator):
    if isinstance(estimator, CPCA) and criterion == "likelihood":
        with pytest.raises(ValueError, match="likelihood"):
            GammaSearch(estimator, criterion=criterion).fit(X, background=Y)
        return
    search = GammaSearch(estimator, criterion=criterion, n_folds=3).fit(Study(X, background=Y, labels=LABELS))
    assert search.scores_.shape == search.score_errors_.shape == search.path_.gammas.shape
    chosen = search.path_.gammas == search.best_gamma_
    assert search.best_score_ == search.scores_[chosen][0]
    if criterion == "contrast":  # the smallest within one standard error of the best
        best = np.argmax(search.scores_)
        near = search.scores_ >= search.scores_[best] - search.score_errors_[best]
        assert np.argmax(chosen) == np.argmax(near)
    else:
        assert search.best_score_ == search.scores_.max()
        assert np.isnan(search.score_errors_).all()
    assert search.best_estimator_.gamma_ == search.best_gamma_
    np.testing.assert_array_equal(search.transform(X), search.best_estimator_.transform(X))
    assert search.table().n_rows == search.scores_.size
    again = GammaSearch(estimator, criterion=criterion, n_folds=3).fit(Study(X, background=Y, labels=LABELS))
    np.testing.assert_array_equal(again.scores_, search.scores_)
    clone(search)


def test_silhouette_is_the_best_on_the_grid():
    search = GammaSearch(PCPCA(2), criterion="silhouette").fit(Study(X, background=Y, labels=LABELS))

    def score(gamma):
        Z = PCPCA(2, gamma=gamma).fit(X, background=Y).transform(X)
        return silhouette_score(Z / Z.std(axis=0), LABELS)

    assert search.best_score_ == pytest.approx(score(search.best_gamma_), abs=1e-6)
    grid = np.linspace(0, 0.999 * search.path_.gamma_max, 60)
    assert search.best_score_ > max(map(score, grid)) - 0.02


def slow(estimator, X, Y, folds):
    """F17 word by word: refit without each fold, then sums of squares of its rows about what they add to the others."""
    sums = []
    for k in range(folds.foreground.max() + 1):
        left, held = (
            [rows[(own != k) if keep else (own == k)] for rows, own in zip((X, Y), folds, strict=True)]
            for keep in (True, False)
        )
        model = estimator.fit(left[0]) if isinstance(estimator, PPCA) else estimator.fit(left[0], background=left[1])
        scaling = model.fit_.scaling
        scales = [scaling.foreground.scale, (scaling.background or scaling.foreground).scale]
        axes = [model.components_.T / scale[:, None] for scale in scales]
        unit = sum(np.var(rows @ V, axis=0) for rows, V in zip(left, axes, strict=True))
        both = [np.vstack(pair) for pair in zip(left, held, strict=True)]
        added = [
            len(all_) * np.var(all_ @ V, axis=0) - len(some) * np.var(some @ V, axis=0)
            for all_, some, V in zip(both, left, axes, strict=True)
        ]
        sums.append(np.array(added) / unit)
    sums = np.array(sums)
    rows = np.array([[np.sum(own == k) for own in folds] for k in range(len(sums))])

    def log_ratio(kept):
        variances = sums[kept].sum(axis=0) / rows[kept].sum(axis=0)[:, None]
        return np.log(variances[0] / variances[1])

    K = len(sums)
    every = log_ratio(np.arange(K))
    left_out = np.array([log_ratio(np.delete(np.arange(K), k)) for k in range(K)])
    spread = ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
    return every, np.sqrt((K - 1) * (1 / K + 1 / (K - 1)) * spread)


def test_contrast_is_the_held_out_contrast_of_each_gamma():
    """The slow way: an estimator with that gamma, refitted to the rows that each fold leaves."""
    gammas = [0.0, 0.2, 0.4]
    blocks = np.arange(200) // 4, 50 + np.arange(200) // 4
    folds = assign_folds(Groups.of(*blocks), 5, np.random.default_rng(0))
    for kind in (PCPCA, ContraPCA, CPCA):
        given = {"n_latent": 4} if kind is ContraPCA else {}
        search = GammaSearch(kind(2, scale="pooled", **given), gammas=gammas)
        search.fit(Study(X, background=Y, blocks=(blocks[0], blocks[1])))
        units = search.path_.scaling.foreground.scale  # of all rows
        for gamma, score, error in zip(gammas, search.scores_, search.score_errors_, strict=True):
            unshortened = {"shorten": False} if kind is ContraPCA else {}
            model = kind(2, gamma=gamma, scale=None, **given, **unshortened)
            means, _ = slow(model, X / units, Y / units, folds)
            assert score == pytest.approx(means.mean(), abs=1e-3)  # the path's axes are only compared, so coarse
            assert error > 0


@pytest.mark.parametrize("estimator", [PCPCA(2), CPCA(2)])
def test_contrast_chooses_little_where_there_is_nothing_and_enough_where_there_is(estimator):
    noise = np.random.default_rng(1).standard_normal((2, 120, 20))
    nothing = GammaSearch(estimator).fit(noise[0], background=noise[1])
    assert abs(nothing.best_score_) < 3 * nothing.score_errors_.max()
    assert nothing.best_gamma_ < 2
    search = GammaSearch(estimator).fit(X, background=Y)
    assert search.best_score_ > 1.0
    assert np.sum((search.best_estimator_.components_ @ DATA.plane) ** 2) / 2 > 0.8


def test_heldout_prefers_a_weak_contrast():
    heldout = GammaSearch(PCPCA(2), criterion="likelihood").fit(X, background=Y)
    assert heldout.best_gamma_ < 0.5 * heldout.path_.gamma_max
    few = GammaSearch(PCPCA(2), criterion="likelihood", n_folds=2).fit(X[:40], background=Y[:40])
    assert few.scores_[-1] == -np.inf  # an infeasible fold
    assert np.isfinite(few.best_score_)


def test_blocks_are_held_out_together():
    """Replicates: folds of rows see the same animals again, and find a contrast in noise."""
    rng = np.random.default_rng(2)
    animals = np.arange(400) // 20
    X, Y = (rng.standard_normal((20, 12))[animals] * 2 + rng.standard_normal((400, 12)) for _ in range(2))
    rows = GammaSearch(CPCA(2)).fit(X, background=Y)
    blocks = GammaSearch(CPCA(2)).fit(Study(X, background=Y, blocks=(animals, animals + 20)))
    assert rows.best_score_ > 1.0
    assert blocks.best_score_ < 0.5
    with pytest.warns(ContrastWarning, match="3 folds"):
        GammaSearch(CPCA(2)).fit(Study(X[:60], background=Y, blocks=(animals[:60], animals + 20)))


def test_a_gradient_solver_is_not_needed_for_held_out_contrast():
    """Rows are complete: it would find the same. It ended in a bare AssertionError."""
    found, wanted = (
        GammaSearch(PCPCA(2, solver=solver), criterion="contrast", random_state=0).fit(X, background=Y)
        for solver in ("lbfgs", "auto")
    )
    np.testing.assert_array_equal(found.scores_, wanted.scores_)


def test_stacked_rows():
    rows, group = np.vstack([X, Y]), np.repeat(["case", "control"], 200)
    stacked = GammaSearch(PCPCA(2, background_label="control")).fit(rows, group)
    plain = GammaSearch(PCPCA(2)).fit(X, background=Y)
    assert stacked.best_gamma_ == plain.best_gamma_


def test_search_with_missing_values():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    search = GammaSearch(PCPCA(2), criterion="silhouette").fit(Study(holes, background=Y, labels=LABELS))
    assert search.best_score_ > 0.3
    for estimator in (PCPCA(2), ContraPCA(2), CPCA(2), RatioPCA(2)):
        search, complete = (GammaSearch(estimator).fit(rows, background=Y) for rows in (holes, X))
        assert affinity(search.best_estimator_.components_.T, complete.best_estimator_.components_.T) > 0.95
        assert 0.5 * complete.best_score_ < search.best_score_ < complete.best_score_ + 0.2  # understated
    with pytest.raises(ValueError, match="'likelihood' needs complete rows"):
        GammaSearch(PCPCA(2), criterion="likelihood").fit(holes, background=Y)


def test_search_refuses():
    for other in ("silhouette", PPCA(2)):
        with pytest.raises(TypeError, match="GammaSearch takes ContraPCA"):
            GammaSearch(other).fit(X, background=Y)
    with pytest.raises(ValueError, match="criterion='best'"):
        GammaSearch(PCPCA(2), criterion="best").fit(X, background=Y)
    with pytest.raises(ValueError, match="needs a likelihood"):
        GammaSearch(CPCA(2), criterion="likelihood").fit(X, background=Y)
    with pytest.raises(GroupError, match=r"shape \(5,\) for 200 rows"):
        GammaSearch(PCPCA(2), criterion="silhouette").fit(Study(X, background=Y, labels=LABELS[:5]))
    with pytest.raises(GroupError, match="two classes"):
        GammaSearch(PCPCA(2), criterion="silhouette").fit(Study(X, background=Y, labels=np.zeros(200)))
    with pytest.raises(GroupError, match="background"):
        GammaSearch(PCPCA(2)).fit(X)
    limit = gamma_limits(X, background=Y).pcpca
    with pytest.raises(ValueError, match="every split is infeasible"):
        GammaSearch(PCPCA(2), criterion="likelihood", gammas=[0.9999 * limit]).fit(X, background=Y)
    with pytest.raises(ValueError, match="too few for 150 folds"):
        GammaSearch(PCPCA(2), criterion="likelihood", n_folds=150).fit(X, background=Y)
    with pytest.raises(ValueError, match="needs a Study with labels="):
        GammaSearch(PCPCA(2), criterion="silhouette").fit(X, background=Y)
    with pytest.raises(GroupError, match="fewer classes than rows"):
        GammaSearch(PCPCA(2), criterion="silhouette").fit(Study(X, background=Y, labels=np.arange(200)))


def test_mouse_silhouette(mouse):
    """Within 0.02 of the best on a 200-point grid."""
    left, right, genotype, _ = mouse
    search = GammaSearch(PCPCA(2), criterion="silhouette").fit(Study(left, background=right, labels=genotype))
    path = contrast_path(PCPCA(2), left, background=right, gammas=np.linspace(0, 0.9999 * search.path_.gamma_max, 200))
    latents = path.latents(left)
    best = max(silhouette_score(Z / Z.std(axis=0), genotype) for Z in latents)
    assert search.best_score_ > best - 0.02


def test_search_in_a_pipeline(need):
    pd = need("pandas")
    names = [f"g{j}" for j in range(15)]
    rows, group = pd.DataFrame(np.vstack([X, Y]), columns=names), np.repeat(["case", "control"], 200)
    search = GammaSearch(PCPCA(2, background_label="control")).fit(rows, group)
    assert list(search.feature_names_in_) == names
    assert list(search.best_estimator_.feature_names_in_) == names
    assert list(search.get_feature_names_out()) == ["pcpca0", "pcpca1"]
    assert search.set_output(transform="pandas").transform(rows).shape == (400, 2)
    strings = GammaSearch(PCPCA(2), criterion="silhouette").fit(
        Study(X, background=Y, labels=pd.Series(LABELS.astype(str)))
    )
    assert (
        strings.best_score_
        == GammaSearch(PCPCA(2), criterion="silhouette").fit(Study(X, background=Y, labels=LABELS)).best_score_
    )


def test_parameters_set_after_the_fit_change_nothing_fitted():
    search = GammaSearch(PCPCA(2), n_folds=3).fit(X, background=Y)
    before = search.transform(X), str(search.table()), search.best_gamma_
    search.set_params(criterion="likelihood", estimator__n_components=5, gammas=[0.1], n_folds=9)
    search.set_params(estimator=CPCA(1))
    np.testing.assert_array_equal(search.transform(X), before[0])
    assert (str(search.table()), search.best_gamma_) == before[1:]


@pytest.mark.parametrize("criterion", ["contrast", "silhouette", "likelihood"])
def test_sparse_rows(criterion):
    left, right = sp.csr_array(np.maximum(X, 0)), sp.csr_array(np.maximum(Y, 0))
    sparse = GammaSearch(PCPCA(2), criterion=criterion, n_folds=3).fit(Study(left, background=right, labels=LABELS))
    dense = GammaSearch(PCPCA(2), criterion=criterion, n_folds=3).fit(
        Study(left.toarray(), background=right.toarray(), labels=LABELS)
    )
    assert sparse.best_gamma_ == pytest.approx(dense.best_gamma_, rel=1e-8)
    np.testing.assert_allclose(sparse.transform(left), dense.transform(left.toarray()), atol=1e-6)
