"""Text for a paper: a paragraph for its methods section, and citations."""

from __future__ import annotations

from typing import Any

from .._util.text import format_gamma, joined, plural
from ..estimators import Likelihood

SOURCES = {
    "Li 2020": {
        "text": "Li, D., Jones, A. and Engelhardt, B. E. (2020). Probabilistic contrastive principal component "
        "analysis. arXiv:2012.07977.",
        "doi": "10.48550/arXiv.2012.07977",
        "bibtex": "@article{li2020pcpca,\n"
        "  author = {Li, Didong and Jones, Andrew and Engelhardt, Barbara E.},\n"
        "  title = {Probabilistic Contrastive Principal Component Analysis},\n"
        "  journal = {arXiv preprint arXiv:2012.07977},\n"
        "  year = {2020},\n"
        "  doi = {10.48550/arXiv.2012.07977}\n}",
    },
    "Abid 2018": {
        "text": "Abid, A., Zhang, M. J., Bagaria, V. K. and Zou, J. (2018). Exploring patterns enriched in a dataset "
        "with contrastive principal component analysis. Nature Communications 9, 2134.",
        "doi": "10.1038/s41467-018-04608-8",
        "bibtex": "@article{abid2018cpca,\n"
        "  author = {Abid, Abubakar and Zhang, Martin J. and Bagaria, Vivek K. and Zou, James},\n"
        "  title = {Exploring patterns enriched in a dataset with contrastive principal component analysis},\n"
        "  journal = {Nature Communications},\n  volume = {9},\n  pages = {2134},\n"
        "  year = {2018},\n"
        "  doi = {10.1038/s41467-018-04608-8}\n}",
    },
    "Tipping 1999": {
        "text": "Tipping, M. E. and Bishop, C. M. (1999). Probabilistic principal component analysis. Journal of the "
        "Royal Statistical Society, Series B 61, 611-622.",
        "doi": "10.1111/1467-9868.00196",
        "bibtex": "@article{tipping1999ppca,\n"
        "  author = {Tipping, Michael E. and Bishop, Christopher M.},\n"
        "  title = {Probabilistic Principal Component Analysis},\n"
        "  journal = {Journal of the Royal Statistical Society, Series B},\n  volume = {61},\n  pages = {611--622},\n"
        "  year = {1999},\n"
        "  doi = {10.1111/1467-9868.00196}\n}",
    },
    "Salloum 2022": {
        "text": "Salloum, R. and Kuo, C.-C. J. (2022). cPCA++: An efficient method for contrastive feature learning. "
        "Pattern Recognition 124, 108378.",
        "doi": "10.1016/j.patcog.2021.108378",
        "bibtex": "@article{salloum2022cpca,\n"
        "  author = {Salloum, Ronald and Kuo, C.-C. Jay},\n"
        "  title = {{cPCA++}: An efficient method for contrastive feature learning},\n"
        "  journal = {Pattern Recognition},\n  volume = {124},\n  pages = {108378},\n"
        "  year = {2022},\n"
        "  doi = {10.1016/j.patcog.2021.108378}\n}",
    },
}

WHO = {
    "Li 2020": "Li et al., 2020",
    "Abid 2018": "Abid et al., 2018",
    "Tipping 1999": "Tipping and Bishop, 1999",
    "Salloum 2022": "Salloum and Kuo, 2022",
}

SCALING = {
    "group": " and divided by its own standard deviations",
    "pooled": " and divided by the standard deviations within groups",
}


def methods_paragraph(summary: dict[str, Any], kind: Any) -> str:
    """What was done, with all numbers, in sentences to paste into a paper."""
    data, test, uncertainty, versions = (summary[name] for name in ("data", "test", "uncertainty", "versions"))
    words = summary["words"]
    sentences = [_model(summary, kind)]
    n, m = data["foreground"]["missing_values"], data["background"]["missing_values"]
    if n + m:
        how = "expected under one factor model of both groups"
        if issubclass(kind, Likelihood):
            how = "left out of the likelihood"
        sentences.append(f"Missing values ({n:,} of the cases, {m:,} of the controls) were {how}.")
    if test is not None:
        sentences.append(
            f"{words['tested']} tested by repeated splits of the data ({test['units']}) at the level "
            f"{test['level']:g}. {summary['verdict']}"
        )
    known = [
        (entry["held_out_ratio"], *entry["held_out_interval"])
        for entry in summary["components"]
        if entry["held_out_ratio"] is not None and None not in entry["held_out_interval"]
    ]
    if len(known) == len(summary["components"]):
        times = joined(f"{ratio:.2f} ({low:.2f} to {high:.2f})" for ratio, low, high in known)
        names = joined(range(1, len(known) + 1))
        where = "component 1" if len(known) == 1 else f"components {names}, respectively"
        sentences.append(
            "On halves of the rows that the fit had not seen, "
            f"{words['held_out'].replace('TIMES', times)} along {where} (95% intervals)."
        )
    if uncertainty is not None:
        how = "bootstrap resamples" if uncertainty["kind"] == "bootstrap" else "Gibbs posterior draws"
        share, draws = uncertainty["probability"], uncertainty["draws"]
        sentences.append(f"Intervals of the loadings ({share:.0%}) are from {draws:,} {how}.")
    sentences.append(
        f"Analysed on {summary['date']} with contrapca {versions['contrapca']}, numpy {versions['numpy']} and scipy "
        f"{versions['scipy']} on Python {versions['Python']}."
    )
    return " ".join(sentences)


def _model(summary: dict[str, Any], kind: Any) -> str:
    data, model, name, cited = summary["data"], summary["model"], kind._known_as or kind.__name__, ""
    if kind._source is not None:
        cited = f" ({WHO[kind._source]}; https://doi.org/{SOURCES[kind._source]['doi']})"
    n, m = data["foreground"]["rows"], data["background"]["rows"]
    setting = f"with {plural(model['n_components'], 'component')}"
    if model["n_latent"] > model["n_components"]:
        setting += f", {model['n_latent']} latent dimensions"
    bound = "at most " if model["limit_is_bound"] else ""
    limit = "" if model["limit"] is None else f" (its limit for these data is {bound}{format_gamma(model['limit'])})"
    setting += kind._strength_in_words(model["gamma"], limit)
    compared = f"We compared {n:,} cases with {m:,} controls"
    if (design := summary["design"]) is not None:
        compared = f"We analysed {design['text']}"
    return (
        f"{compared}, measured on {data['features']:,} features, by {name}{cited} {setting}. "
        f"{summary['words']['centred']}{SCALING.get(model['scale'], '')}."
    )
