"""Reports about an AnnData: from Python, from stored results, and from the command line."""

import pytest

from contrapca import cli, reporting, tl
from contrapca.exceptions import ContrastWarning
from single_cell.conftest import CHOICE

pytestmark = pytest.mark.filterwarnings("ignore:The cases are all cells with")  # in "arm"


@pytest.fixture
def folder(tmp_path, monkeypatch, need):
    need("jinja2")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same_page(left, right):
    """Summaries that differ only in the command, the files, and the words of the advice that follows a caution."""
    for name in left.keys() | right.keys():
        if name not in ("code", "sources", "data", "reproduce", "cautions"):
            assert left[name] == right[name], name
    cautions = [[text.partition(". ")[0] for text in summary["cautions"]] for summary in (left, right)]
    assert cautions[0] == cautions[1]
    assert {k: v for k, v in left["data"].items() if k != "sources"} == {
        k: v for k, v in right["data"].items() if k != "sources"
    }


def test_the_same_page_from_python_and_the_command_line(adata, folder, capsys):
    adata.write_h5ad(folder / "cells.h5ad")
    options = {"layer": "counts", "mask_var": "few", "gammas": 4}
    found = tl.report(adata, **CHOICE, **options, labels="cell_type", output="python.html")
    seen = {}
    summarize = reporting.summarize
    arguments = "report cells.h5ad --group condition --background ctrl --layer counts --mask few --blocks donor"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contrapca.cli._report.summarize", lambda *a, **k: seen.setdefault("it", summarize(*a, **k)))
        assert cli.main([*arguments.split(), "--labels", "cell_type", "--gammas", "4", "-o", "shell.html"]) == 0
    said = capsys.readouterr().out
    assert f"features are the {adata.var['few'].sum()} of 40 genes of the mask 'few'" in said
    same_page(found, seen["it"])
    assert (folder / "python.html").stat().st_size > 5e4


@pytest.mark.slow
def test_report_on_stored_results(adata, folder):
    tl.contrapca(adata, **CHOICE, n_comps=2, mask_var="highly", key_added="mine")
    stored = tl.report(adata, key="mine", output="stored.html")
    new = tl.report(adata, **CHOICE, mask_var="highly", output="new.html")
    same_page(stored, new)
    assert "blocks" in stored["test"]["units"]


def test_a_page_in_place_of_a_key_is_noticed(adata, folder):
    with pytest.raises(ValueError, match=r"Did you mean output='page\.html'"):
        tl.report(adata, "page.html")


def test_report_of_another_method(unnamed, folder):
    tl.pcpca(unnamed, groupby="arm", background="ctrl", foreground="case", n_comps=2, gamma=0.2)
    summary = tl.report(unnamed, key="pcpca", output="page.html", test=False)
    arm = unnamed.obs["arm"]
    assert summary["data"]["foreground"]["rows"] == (arm == "case").sum()
    assert summary["data"]["background"]["rows"] == (arm == "ctrl").sum()


def test_report_warns_of_donors(adata, folder):
    with pytest.warns(ContrastWarning, match="blocks='donor'"):
        tl.report(adata, groupby="condition", background="ctrl", output="page.html", test=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"no such results in adata\.uns\['contrapca'\], run contrapca\.tl\.contrapca first"),
        ({"groupby": "condition", "background": "none"}, "background='none' does not occur"),
        ({"groupby": "condition", "background": "ctrl", "key": "mine"}, "Both groupby='condition' and key='mine'"),
        (
            {"groupby": "condition", "background": "ctrl", "labels": "kind"},
            r"labels='kind' is not a column of adata\.obs",
        ),
    ],
)
def test_refused(unnamed, folder, arguments, message):
    with pytest.raises(ValueError, match=message):
        tl.report(unnamed, **arguments)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--layer count", "--layer: 'count' is not a layer of 'cells.h5ad', only 'counts'."),
        ("--mask high", "--mask: 'high' is not a column of var of 'cells.h5ad', only "),
        ("--mask nothing", "--mask: 'nothing' of 'cells.h5ad' is False for all genes"),
        ("--mask words", "--mask: 'words' of 'cells.h5ad' has other values than True and False"),
    ],
)
def test_refused_by_the_command_line(unnamed, folder, options, message, capsys):
    unnamed.var["nothing"], unnamed.var["words"] = False, "yes"
    unnamed.write_h5ad("cells.h5ad")
    arguments = f"report cells.h5ad --group condition --background ctrl {options} -o page.html"
    assert cli.main(arguments.split()) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "page.html").exists()


def test_layers_are_of_anndata_files_only(folder, capsys):
    (folder / "cases.csv").write_text("a,b\n1,2\n3,4\n")
    assert cli.main(["test", "cases.csv", "--background", "cases.csv", "--layer", "counts"]) == 2
    assert "--layer: 'cases.csv' has neither layers nor masks" in capsys.readouterr().err


@pytest.mark.parametrize(("mask", "n_genes"), [([], 26), (["--mask", "none"], 40), (["--mask", "few"], 7)])
def test_highly_variable_genes_are_the_default(unnamed, folder, mask, n_genes, capsys):
    unnamed.var["highly_variable"] = unnamed.var["highly"]
    unnamed.write_h5ad("cells.h5ad")
    options = ["fit", "cells.h5ad", "--group", "condition", "--background", "ctrl", "--no-test", *mask, "-o", "out"]
    assert cli.main(options) == 0
    assert f"{n_genes} features" in capsys.readouterr().out
    # A model finds its genes by name, whatever the file marks.
    assert cli.main(["transform", "out/model.npz", "cells.h5ad", "-o", "new.csv"]) == 0
    assert len((folder / "new.csv").read_text().splitlines()) == 121
