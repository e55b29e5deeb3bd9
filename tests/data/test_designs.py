"""Designs: several conditions, two factors and doses as weighted groups, against slow formulas, and what is refused."""

import numpy as np
import pytest

import oracle_designs as oracle
from contrapca import (
    CLVM,
    CPCA,
    PCPCA,
    PPCA,
    ContraPCA,
    GammaSearch,
    Moments,
    RatioPCA,
    SparseCPCA,
    Study,
    bootstrap,
    check_background,
    compare,
    contrast_path,
    gamma_limits,
    load,
    match_depth,
    posterior,
    regress_out,
)
from contrapca.data import Encoded, adjusted_tables, regression
from contrapca.exceptions import GroupError

anndata = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

pytestmark = pytest.mark.filterwarnings("ignore:PCPCA still shows")

rng = np.random.default_rng(5)
NAMES = [f"f{j}" for j in range(6)]
X = rng.normal(size=(120, 6)) * [3, 2, 1, 1, 1, 1] + rng.normal(size=(4, 6))[np.repeat(np.arange(4), [15, 20, 25, 60])]
DRUG = np.repeat(["A", "B", "C", "DMSO"], [15, 20, 25, 60])
GENOTYPE, TREATMENT = np.tile(["mut", "wt", "wt"], 40), np.repeat(["drug", "none"], [50, 70])
DOSE = np.repeat([0.0, 1.0, 3.0, 10.0], [40, 30, 30, 20])
ORDER = rng.permutation(120)
FRAME = pd.DataFrame(X, columns=NAMES).assign(drug=DRUG, genotype=GENOTYPE, treatment=TREATMENT, dose=DOSE)


def only(frame, *columns):
    return frame[[*NAMES, *columns]]


def by_drug(frame=FRAME, **given):
    return Study.from_frame(only(frame, "drug"), groupby="drug", background="DMSO", conditions=True, **given)


def two_by_two(frame=FRAME, **given):
    asked = {"interaction": ("genotype", "treatment"), "case": ("mut", "drug")}
    return Study.from_frame(only(frame, "genotype", "treatment"), **asked, **given)


def by_dose(frame=FRAME, **given):
    return Study.from_frame(only(frame, "dose"), dose="dose", **given)


def moments_of(study):
    """A, n_A, B, n_B that fits are given."""
    tables = adjusted_tables(study)
    found = []
    for rows, weights in zip(tables.rows, tables.weights, strict=True):
        own = Moments.from_rows(rows, weights)
        found += [own.scatter.dense() / own.weight, own.weight]
    return found


def slow_moments(weights, cells, rows=X):
    return oracle.signed_moments(oracle.about_cell_means(rows, cells), weights)


# ---------------------------------------------------------------------- weights and means


CASES = {
    "conditions": (by_drug, oracle.several_weights(DRUG.tolist(), "DMSO"), DRUG),
    "interaction": (
        two_by_two,
        oracle.interaction_weights(GENOTYPE, TREATMENT, ("mut", "drug")),
        np.char.add(GENOTYPE, TREATMENT),
    ),
    "dose": (by_dose, oracle.dose_weights(DOSE.tolist()), DOSE),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_design_is_two_weighted_moments_about_means_of_cells(kind):
    study, weights, cells = CASES[kind]
    A, n_A, B, n_B = slow_moments(weights, cells.tolist())
    found = moments_of(study())
    for own, wanted in zip(found, (A, n_A, B, n_B), strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-10, atol=1e-12)
    # Weights of rows alone, without the means of cells, would be another A: the check can fail.
    plain = oracle.signed_moments(X - X.mean(axis=0), weights)[0]
    assert np.abs(plain - A).max() > 0.1


@pytest.mark.parametrize("kind", CASES)
def test_the_order_of_rows_does_not_matter(kind):
    study = CASES[kind][0]
    for own, other in zip(moments_of(study()), moments_of(study(FRAME.iloc[ORDER])), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("model", [PCPCA(1), CPCA(1, gamma=1.0), RatioPCA(1, ridge=0.1)])
def test_fits_are_those_of_the_two_moments(kind, model):
    study = CASES[kind][0]()
    A, n_A, B, n_B = slow_moments(CASES[kind][1], CASES[kind][2].tolist())
    means = [own.mean for own in model.fit(study).fit_.scaling]
    given = [_moments(n, mean, S) for n, mean, S in zip((n_A, n_B), means, (A, B), strict=True)]
    alike = model.fit(given[0], background=given[1]).components_.copy()
    np.testing.assert_allclose(model.fit(study).components_, alike, atol=1e-6)


def _moments(n, mean, S):
    """Moments of weighted rows that have this mean and covariance."""
    root = np.linalg.cholesky(S)
    rows = np.vstack([root.T, -root.T]) * np.sqrt(len(S)) + mean
    return Moments.from_rows(rows, np.full(len(rows), n / len(rows)))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, np.asarray])
def test_tables_of_conditions_are_a_column_of_conditions(make):
    tables = {name: make(FRAME.loc[DRUG == name, NAMES]) for name in ("A", "B", "C", "DMSO")}
    background = tables.pop("DMSO")
    study = Study(groups=tables, background=background)
    assert repr(study) == "Study of 3 conditions (A 15, B 20, C 25) + 60 background samples x 6 features"
    assert study.labels.foreground.tolist() == DRUG[DRUG != "DMSO"].tolist()
    for own, other in zip(moments_of(study), moments_of(by_drug()), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-14)


def test_an_anndata_is_its_frame():
    obs = FRAME[["drug", "genotype", "treatment", "dose"]].astype({"drug": "category"})
    adata = anndata.AnnData(X, obs=obs.set_index(obs.index.astype(str)), var=pd.DataFrame(index=NAMES))
    pairs = (
        (Study.from_anndata(adata, groupby="drug", background="DMSO", conditions=True), by_drug()),
        (Study.from_anndata(adata, interaction=("genotype", "treatment"), case=("mut", "drug")), two_by_two()),
        (Study.from_anndata(adata, dose="dose"), by_dose()),
    )
    for one, other in pairs:
        assert repr(one) == repr(other)
        for a, b in zip(moments_of(one), moments_of(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_conditions_are_named_and_may_have_several_values():
    study = Study.from_frame(
        only(FRAME, "drug"), groupby="drug", background="DMSO", foreground={"ab": ["A", "B"], "c": "C"}
    )
    assert study.design.cells == ("ab", "c", "background")
    assert study.design.counts == [35, 25, 60]
    plain = Study.from_frame(only(FRAME, "drug"), groupby="drug", background="DMSO")
    assert plain.design is None  # several values without conditions are one group, as ever


# ---------------------------------------------------------------------- special cases


@pytest.mark.parametrize("model", [ContraPCA(2), PCPCA(2), CPCA(1), RatioPCA(1), SparseCPCA(1, sparsity=4), CLVM(1)])
def test_two_doses_and_one_condition_are_the_contrast_of_two_groups(model):
    high, low = X[:50], X[50:]
    plain = model.fit(high, background=low).components_.copy()
    dose = Study.from_frame(pd.DataFrame(X, columns=NAMES).assign(z=np.repeat([2.0, 0.5], [50, 70])), dose="z")
    for study in (dose, Study(groups={"one": high}, background=low)):
        np.testing.assert_allclose(model.fit(study).components_, plain, atol=1e-12)
        assert gamma_limits(study).pcpca == pytest.approx(gamma_limits(high, background=low).pcpca, rel=1e-12)


def test_rows_at_the_mean_rank_are_in_neither_group():
    study = Study.from_frame(
        only(FRAME, "dose")[DOSE < 10].assign(dose=np.repeat([0, 1, 2], [30, 40, 30])), dose="dose"
    )
    assert list(study.counts) == [30, 30]


def test_doses_are_compared_within_strata():
    strata = np.tile(["a", "b", "c"], 40)
    study = Study.from_frame(only(FRAME.assign(compound=strata), "dose", "compound"), dose="dose", strata="compound")
    wanted = np.array(oracle.dose_weights(DOSE.tolist(), strata.tolist()))
    np.testing.assert_allclose(np.sort(np.concatenate(list(study.design.scores))), np.sort(wanted[wanted != 0]))
    assert "within 3 strata" in repr(study)
    assert study.features == tuple(NAMES)


def test_doses_of_few_rows_are_about_a_curve():
    z = np.linspace(0, 1, 120)
    bent = X * 0.1 + np.outer(3 * z - 5 * z**2, np.ones(6))
    study = Study.from_frame(pd.DataFrame(bent, columns=NAMES).assign(z=z), dose="z")
    left = np.vstack(list(adjusted_tables(study).rows.map(lambda own: own - own.mean(axis=0))))
    slow = oracle.about_quadratic(X * 0.1, z)  # what is added is a quadratic: nothing of it is left
    assert np.linalg.norm(left) <= np.linalg.norm(slow) < 0.5 * np.linalg.norm(bent - bent.mean(axis=0))


def test_covariates_and_designs_are_regressed_out_together():
    age = rng.uniform(20, 80, 120)
    frame = FRAME.assign(age=age)
    frame[NAMES] += 0.2 * age[:, None]
    study = Study.from_frame(
        only(frame, "drug", "age"), groupby="drug", background="DMSO", conditions=True, covariates="age"
    )
    model = PCPCA(1).fit(study)
    assert model.covariate_names_.tolist() == ["age"]
    assert model.covariate_coefficients_.shape == (1, 6)
    np.testing.assert_allclose(model.covariate_coefficients_, 0.2, atol=0.05)
    assert model.transform(frame[NAMES], covariates=age).shape == (120, 1)
    assert regress_out(study).covariates is None


def test_a_column_that_is_rounding_in_a_half_has_no_effect():
    """A half may have no row of a stratum: its column is then constant, and what centring leaves of it is rounding."""
    tables = Study(X[:60], background=X[60:]).tables
    constants = np.linspace(0.1, 0.9, 40)
    numbers = tables.rows.map(lambda rows: np.where(np.arange(60)[:, None] < 41, constants, 1.0))
    chosen = tables.rows.map(lambda rows: np.arange(60) < 41)
    assert any(np.any(own[:41] != own[:41].mean(axis=0)) for own in numbers)  # there is rounding
    assert np.abs(regression(tables, Encoded((), numbers), chosen).coefficients).max() < 1e-6


# ---------------------------------------------------------------------- parts of a study


def test_parts_are_designs_of_their_own():
    study = by_drug()
    assert study.without(labels="B").design.cells == ("A", "C", "background")
    again = Study.from_frame(only(FRAME[DRUG != "B"], "drug"), groupby="drug", background="DMSO", conditions=True)
    for own, other in zip(moments_of(study.without(labels="B")), moments_of(again), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)
    with pytest.raises(GroupError, match="at least 3 rows, but 'A' has 2"):
        study[np.r_[0:2, 15:120]]


def test_rows_change_groups_when_doses_are_left_out():
    study = by_dose()
    values = np.concatenate(list(study.design.values))
    part = study[values >= 3]
    frame = only(FRAME, "dose")
    again = Study.from_frame(frame[frame["dose"] >= 3], dose="dose")
    assert study.design.values["background"].max() < 3  # all that is left was foreground
    assert list(part.counts) == list(again.counts) == [20, 30]
    for own, other in zip(moments_of(part), moments_of(again), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-14)
    within = Study.from_frame(only(FRAME.assign(s=GENOTYPE), "dose", "s"), dose="dose", strata="s")
    assert within[np.arange(10, len(within))].design.cells[0].startswith("mut, ")


# ---------------------------------------------------------------------- bad input


def changed(**columns):
    return FRAME.assign(**columns)


SMALL = np.where(np.arange(120) < 2, "tiny", DRUG)
HOLES = np.where(np.arange(120) % 50 == 7, np.nan, DOSE)
REFUSED = [
    (lambda: by_drug(changed(drug=SMALL)), "'tiny' has 2"),
    (lambda: Study(groups={"A": X[:20], "B": X[60:]}, background=X[60:]), "is a table of another group, too"),
    (
        lambda: Study(groups={"A": X[:20], "background": X[20:60]}, background=X[60:]),
        "cannot be the name of a condition",
    ),
    (lambda: Study(groups={"A": X[:20], "": X[20:60]}, background=X[60:]), "cannot be the name of a condition"),
    (lambda: Study(groups={"A": X[:20]}), "share one background: pass one table"),
    (lambda: Study(X, groups={"A": X[:20]}, background=X[60:]), "not both"),
    (lambda: Study(groups=[X[:20]], background=X[60:]), "is a dict of the tables"),
    (lambda: Study(groups={"A": X[:20], "B": X[20:60, :5]}, background=X[60:]), "5: both need the same columns"),
    (
        lambda: Study(groups={"A": X[:20], "B": X[20:60]}, background=X[60:], blocks=([1] * 20, None, [2] * 60)),
        "not for 'B'",
    ),
    (lambda: by_dose(changed(dose=1.0)), "All rows have the same dose in 'dose'"),
    (lambda: by_dose(changed(dose=HOLES)), r"'dose' is missing in 3 rows \(the first is row 7"),
    (lambda: by_dose(changed(dose=TREATMENT)), "doses are numbers"),
    (lambda: by_dose(changed(dose=np.where(DOSE > 3, np.inf, DOSE))), "infinite in row 100"),
    (lambda: two_by_two(changed(genotype=np.tile(["mut", "wt", "het"], 40))), "has 3 levels .'het', 'mut', 'wt'.*isin"),
    (lambda: two_by_two(changed(treatment="drug")), "has 1 level"),
    (lambda: two_by_two(changed(treatment=np.where(GENOTYPE == "mut", "drug", "none"))), "'mut, none' has none"),
    (
        lambda: two_by_two(changed(genotype=np.where(np.arange(120) == 4, None, GENOTYPE))),
        "'genotype' is missing in 1 row",
    ),
    (
        lambda: Study.from_frame(FRAME, interaction=("genotype", "treatment"), case=("mutant", "drug")),
        "does not occur in",
    ),
    (lambda: Study.from_frame(FRAME, interaction=("genotype", "treatment")), "must name a level of each"),
    (lambda: Study.from_frame(FRAME, interaction="genotype", case=("mut", "drug")), "two different columns"),
    (lambda: Study.from_frame(FRAME, groupby="drug", background="DMSO", dose="dose"), "Pass one of groupby="),
    (lambda: Study.from_frame(FRAME, background="DMSO"), "none of them"),
    (lambda: Study.from_frame(FRAME, dose="dose", background="DMSO"), "background= goes with groupby="),
    (lambda: Study.from_frame(FRAME, dose="dosis"), "dose='dosis' is not a column of the frame.*Did you mean 'dose'"),
    (lambda: by_drug(changed(w=1.0)[[*NAMES, "drug", "w"]], weights="w"), "is not a column"),
    (
        lambda: Study.from_frame(
            changed(w=2.0)[[*NAMES, "drug", "w"]], groupby="drug", background="DMSO", conditions=True, weights="w"
        ),
        "leave weights= out",
    ),
    (
        lambda: Study.from_frame(
            changed(b="x")[[*NAMES, "drug", "b"]],
            groupby="drug",
            background="DMSO",
            conditions=True,
            blocks="b",
            paired=True,
        ),
        "leave paired=True out",
    ),
    (
        lambda: Study.from_frame(
            only(FRAME, "drug"), groupby="drug", background={"x": "A", "y": "DMSO"}, conditions=True
        ),
        "share one background, but there are several",
    ),
    (
        lambda: Study.from_frame(changed(plate=DOSE)[[*NAMES, "dose", "plate"]], dose="dose", blocks="plate"),
        "Each block has one dose of 'dose', and each dose one block",
    ),
    (lambda: by_drug(changed(f0=np.where(np.arange(120) == 3, np.nan, X[:, 0]))), "designs need complete rows"),
]


@pytest.mark.parametrize(("make", "sentence"), REFUSED)
def test_bad_designs_are_refused(make, sentence):
    with pytest.raises(GroupError, match=sentence):
        make()


@pytest.mark.parametrize("kind", CASES)
def test_what_needs_populations_is_refused(kind, tmp_path):
    study = CASES[kind][0]()
    model = PCPCA(1).fit(study)
    model.save(tmp_path / "model")
    for own in (model, load(tmp_path / "model")):
        for ask in (
            own.sample,
            lambda own=own: own.impute(X),
            lambda own=own: own.score(X),
            lambda own=own: own.contrast_score(X),
            lambda own=own: posterior(own, study),
            lambda own=own: bootstrap(own, study),
        ):
            with pytest.raises(
                GroupError, match=r"needs a population, but this model was fitted to (several|an inter|a dose)"
            ):
                ask()
        assert own.transform(X).shape == (120, 1)
    for name, ask in {
        "PPCA": PPCA(1).fit,
        "compare": compare,
        "check_background": check_background,
        "contrast_path": lambda study: contrast_path(CPCA(1), study),
        "GammaSearch": GammaSearch(CPCA(1)).fit,
        "match_depth": match_depth,
    }.items():
        with pytest.raises(GroupError, match=f"{name} compares two populations, but this is a study of"):
            ask(study)


def test_doses_that_are_nearly_the_same_have_names_of_their_own():
    study = by_dose(changed(dose=1e6 + DOSE))
    assert len(set(study.design.cells)) == len(study.design.cells) == 4


def test_row_numbers_of_several_tables_are_no_names():
    frames = [pd.DataFrame(X[rows], columns=NAMES) for rows in (slice(0, 40), slice(40, 80), slice(80, 120))]
    study = Study(groups={"A": frames[0], "B": frames[1]}, background=frames[2])
    assert study.sample_names.foreground is None
    named = [own.rename(index="s{}".format) for own in frames]
    study = Study(groups={"A": named[0], "B": named[1]}, background=named[2])
    assert study.sample_names.foreground == [f"s{k}" for k in range(40)] * 2


def test_strata_may_have_commas_in_their_names():
    strata = np.tile(["a, 1", "a, 2", "b"], 40)
    study = Study.from_frame(only(FRAME.assign(compound=strata), "dose", "compound"), dose="dose", strata="compound")
    assert study.design.stratum_names == ("a, 1", "a, 2", "b")
    some = study.without(samples=study.sample_names.foreground[::3])
    assert set(some.design.stratum_names) <= set(study.design.stratum_names)
    names = {name for own in some.design.strata for name in np.array(some.design.stratum_names)[own]}
    assert names == {cell.rpartition(", ")[0] for cell in some.design.cells}
