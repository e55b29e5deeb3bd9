"""Donors: a warning where they are not used, and why: tests by cells reject where nothing is."""

import warnings

import numpy as np
import pytest

import contrapca
from contrapca import tl
from contrapca.datasets import make_cells
from contrapca.exceptions import ContrastWarning
from single_cell.conftest import CHOICE, PLAIN

pytestmark = pytest.mark.filterwarnings("ignore:The cases are all cells with")  # in "arm"

GOOD = {"groupby": "condition", "background": "ctrl"}


@pytest.mark.parametrize(
    "column",
    [
        "donor",
        "Patient_ID",
        "subject.id",
        "batch",
        "sample",
        "orig.ident",
        "Mouse",
        "plates",
        "library id",
        "replicate",
        "ind",
        "biosample_id",
        "HTO",
        "pool",
        "run",
        "subject",
    ],
)
def test_columns_that_look_like_donors(unnamed, column):
    unnamed.obs = unnamed.obs.rename(columns={"whose": column})
    with pytest.warns(ContrastWarning, match=rf"obs\['{column}'\] .*\(6 \+ 6 in .*pass blocks='{column}'"):
        tl.contrapca(unnamed, **GOOD, n_comps=2)


@pytest.mark.parametrize("column", ["whose", "n_donors", "cell_type", "sampled", "phase"])
def test_columns_that_do_not(unnamed, column):
    unnamed.obs = unnamed.obs.rename(columns={"whose": column})
    tl.contrapca(unnamed, **GOOD, n_comps=2)


def test_columns_that_cannot_be_donors(unnamed):
    """One value for all cells, one for each, or the groups themselves."""
    unnamed.obs["batch"], unnamed.obs["sample"] = "only", unnamed.obs_names
    unnamed.obs["donor"] = unnamed.obs["condition"]
    tl.contrapca(unnamed, groupby="donor", background="ctrl", n_comps=2)


def test_people_come_before_batches(unnamed):
    unnamed.obs["batch"], unnamed.obs["patient"] = unnamed.obs["whose"], unnamed.obs["whose"]
    with pytest.warns(ContrastWarning, match="blocks='patient'"):
        tl.contrapca(unnamed, **GOOD, n_comps=2)


def test_a_single_donor_of_each_group(unnamed):
    unnamed.obs["donor"] = np.where(unnamed.obs["condition"] == "ctrl", "a", "b")
    with pytest.warns(ContrastWarning, match=r"with 1 \+ 1 of them, the results cannot be generalised to others"):
        tl.contrapca(unnamed, **GOOD, n_comps=2)


def test_no_warning_if_they_are_used(adata):
    tl.contrapca(adata, **CHOICE, n_comps=2)
    tl.test(adata, **CHOICE, mask_var="few")
    with pytest.warns(ContrastWarning, match="blocks='donor'"):
        tl.test(adata, **GOOD, mask_var="few")


@pytest.mark.slow
def test_tests_by_cells_find_what_is_not_there(need):
    """Without a difference between the groups: by cells nearly always significant, by donors hardly ever."""
    need("anndata")
    rejected = {"cells": 0, "donors": 0}
    for seed in range(12):
        adata = make_cells(16, 20, 40, effect=0.0, donor_effect=0.6, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ContrastWarning)
            tl.test(adata, **GOOD, max_comps=1)
        rejected["cells"] += adata.uns["contrapca_test"]["n_components"]
        tl.test(adata, **CHOICE, max_comps=1)
        rejected["donors"] += adata.uns["contrapca_test"]["n_components"]
    # Of 12 tests at level 0.05, 4 or more reject with probability 0.0022.
    assert rejected["donors"] <= 3
    assert rejected["cells"] >= 10


def test_the_programme_is_found_in_unseen_donors(need):
    need("anndata")
    adata = make_cells(random_state=0)
    tl.contrapca(adata, **CHOICE, n_comps=2)
    tl.test(adata, **CHOICE)
    assert adata.uns["contrapca_test"]["n_components"] == 1
    assert adata.uns["contrapca"]["held_out_interval"][0, 0] > 3
    cases = (adata.obs["condition"] == "case").to_numpy()
    Z, on = adata.obsm["X_contrapca"][cases, 0], adata.obs["programme"].to_numpy()[cases]
    assert abs(np.corrcoef(Z, on)[0, 1]) > 0.9
    genes = contrapca.get.loadings(adata, component=1, n_genes=8)["gene"]
    assert adata.var["programme"][genes].mean() > 0.7


def test_settings_are_not_changed_by_blocks(adata):
    tl.contrapca(adata, **CHOICE, n_comps=2)
    by_donor = adata.obsm["X_contrapca"]
    adata.obs = adata.obs.drop(columns="donor")
    tl.contrapca(adata, **GOOD, n_comps=2)
    assert np.array_equal(adata.obsm["X_contrapca"], by_donor)
    assert adata.uns["contrapca"]["held_out_ratio"].shape == (2,)  # by cells
    assert PLAIN["groupby"] in adata.obs


def test_many_genes_are_judged_in_their_strongest_directions(adata, monkeypatch):
    """About as in all genes, for a component that is there."""
    tl.contrapca(adata, **CHOICE, n_comps=1)
    whole = adata.uns["contrapca"]
    monkeypatch.setattr("contrapca.anndata._fit.FEW_GENES", 2)
    monkeypatch.setattr("contrapca.anndata._fit.DIRECTIONS", 10)
    tl.contrapca(adata, **CHOICE, n_comps=1)
    found = adata.uns["contrapca"]
    assert found["held_out_ratio"] != pytest.approx(whole["held_out_ratio"], rel=1e-6)  # others than all genes
    assert found["held_out_ratio"] == pytest.approx(whole["held_out_ratio"], rel=0.5)
    assert found["found_again"] == whole["found_again"]
    assert found["largest_share"] == pytest.approx(whole["largest_share"], rel=0.01)


@pytest.mark.filterwarnings("error:The cases are all cells with")
def test_case_groups_that_are_pooled(unnamed):
    """A warning, unless they are named."""
    with pytest.warns(ContrastWarning, match=r"all cells with 'treated', 'case' in adata\.obs\['arm'\].*foreground="):
        tl.contrapca(unnamed, **PLAIN)
    tl.contrapca(unnamed, **PLAIN, foreground=["case", "treated"])
    tl.contrapca(unnamed, **PLAIN, foreground="case")
