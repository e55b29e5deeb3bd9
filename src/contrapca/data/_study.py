"""`Study`: the groups of samples, with names, weights, blocks, covariates and labels of each sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.tables import shown_as_html
from .._util.text import as_list, is_missing, joined, listed, plural
from ..exceptions import GroupError
from ._anndata import matrix_of
from ._covariates import Encoded, checked_covariates, encoded_covariates, without_covariates
from ._design import (
    Design,
    check_doses_in_blocks,
    conditions_of,
    groups_in,
    regrouped,
    some_of,
    stacked_conditions,
)
from ._groups import Groups, groups_of
from ._names import checked_features, column_names, index_names
from ._samples import (
    Indices,
    check_column,
    check_known,
    checked_blocks,
    checked_labels,
    n_rows_of,
    names_in,
    read_known,
    select,
    table_units,
    take,
)
from ._tables import Tables, checked_tables, is_moments, moments_tables, refuse_missing, stacked_tables


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Study:
    """Cases and controls with names, blocks, covariates, weights and labels of their samples; all functions take it.

    Everything is checked once, here. Samples of weight 0 are left out.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, D), or Moments
        The foreground (cases); rows are samples. Arrays of dask, torch and CuPy stay where they are.
    background : the same of shape (m, D), or a dict of them, optional
        The background (controls), or several by name.
    groups : dict of tables, optional
        In place of `X`: several conditions by name, {"A": XA, "B": XB}, that share one background. Each is about its
        own mean, and all count alike, whatever their number of rows; they are stacked, and labelled by their names.
        Tuples then have an entry for each condition and one for the background. `from_frame` makes the same from a
        column, and designs of two factors or a dose.
    blocks : tuple, or column name, optional
        The donor, animal or plate of each sample, (of the foreground, of the background): samples of a block are not
        independent. A label in both groups is one block with samples in both.
    covariates : tuple, or column names, optional
        What else may move features, such as age and sex: an array or frame for each group, numbers or text. Its linear
        effect, the same in all groups, is taken out.
    weights : tuple, or column name, optional
        How often each sample counts: 2 is the same as listing it twice.
    labels : array-like of shape (n,), tuple, or column name, optional
        Classes of the foreground, or of both groups, to judge and show results by; nothing is fitted to them.
    paired : bool, default False
        Whether every block has samples in the foreground and in the background, such as before and after treatment:
        checked, and samples are compared within blocks.
    names : tuple, or column name, optional
        Names of samples; by default the index of a pandas frame.
    features : sequence of str, optional
        Names of the features of tables that are not frames.
    label_name : str, optional
        What the labels mean, for figures and reports; by default the name of their column.

    Where the tables are frames, strings name their columns, which are then no features. With several backgrounds
    tuples have the order of the dict, or dicts have the same names, with "foreground".

    Attributes
    ----------
    rows : Groups of tables
        The features of each group, as given: `rows.foreground`, `rows["background"]`.
    tables : Tables
        The same checked, as arrays, with their means and weights: what functions read.
    features : tuple of str, or None
    counts : Groups of int
    sample_names : Groups of list of str, or of None
    blocks, covariates : Groups, or None
    weights, labels : Groups of ndarray, or of None
    label_name : str, or None
        The column or Series that the labels are from.
    paired : bool
    design : Design, or None
        How several conditions, two factors or a dose became two groups.

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import Study
    >>> rng = np.random.default_rng(0)
    >>> cases, controls = rng.normal(size=(60, 8)) * ([3] + [1] * 7), rng.normal(size=(50, 8))
    >>> study = Study(cases, background=controls, blocks=(np.arange(60) // 3, 100 + np.arange(50) // 2))
    >>> study
    Study of 60 foreground + 50 background samples x 8 features, 20 + 25 blocks
    >>> study[np.arange(20, 100)]
    Study of 40 foreground + 40 background samples x 8 features, 14 + 20 blocks
    >>> study.without(blocks=[0, 1]).rows.foreground.shape
    (54, 8)
    """

    rows: Groups[Any]
    tables: Tables
    blocks: Groups[list[Any]] | None
    covariates: Groups[dict[str, npt.NDArray[Any]]] | None
    labels: Groups[npt.NDArray[Any] | None]
    label_name: str | None
    paired: bool
    design: Design | None
    _names: Groups[list[str] | None]  # that were given; None where the table may have an index

    def __init__(
        self,
        X: Any = None,
        *,
        background: Any = None,
        groups: Any = None,
        blocks: Any = None,
        covariates: Any = None,
        weights: Any = None,
        labels: Any = None,
        paired: bool = False,
        names: Any = None,
        features: Sequence[str] | None = None,
        label_name: str | None = None,
    ) -> None:
        # The groups, and what is said of each; columns that are named here are no features.
        given = groups_of(X, background) if groups is None else conditions_of(X, groups, background)
        check_different(given, by_value=groups is not None)
        beside = {"blocks": blocks, "covariates": covariates, "weights": weights, "labels": labels, "names": names}
        rows, known = read_known(given, beside)
        design = None
        if groups is not None:
            rows, known, design = stacked_conditions(rows, known)
        if label_name is None:
            first = labels[0] if isinstance(labels, tuple) and labels else labels
            label_name = first if isinstance(first, str) else getattr(first, "name", None)
        self._check(rows, known, features, label_name if isinstance(label_name, str) else None, paired, design)

    def _check(
        self,
        rows: Groups[Any],
        known: dict[str, Groups[Any]],
        features: Sequence[str] | None,
        label_name: str | None,
        paired: bool,
        design: Design | None = None,
    ) -> Study:
        """Set all fields from tables and what was given for the samples of each group."""
        if any(is_moments(table) for table in rows):
            if features is not None:
                raise GroupError("Moments have the names of their features: leave features= out.")
            return self._set(rows, moments_tables(rows, known))
        own_features = None if features is None else checked_features(features, rows.foreground)
        if design is not None:
            if any(own is not None for own in known["weights"]) or paired:
                extra = "paired=True" if paired else "weights="
                raise GroupError(
                    f"A design says itself how often each row counts, and compares within blocks: leave {extra} out."
                )
            known["weights"] = design.weights
            if all(own is None for own in known["labels"]):
                known["labels"], label_name = design.cell_names, design.name
        tables = checked_tables(rows, known["weights"], name="Study", features=own_features, weights_are="weights")
        if design is not None and tables.incomplete:
            raise GroupError(
                "Values are missing, but designs need complete rows: drop the rows or the features that lack values. "
                "(A test takes values imputed by group for measured ones, and can reject noise.)"
            )
        # A value for each sample.
        counts = rows.map(n_rows_of)
        names = checked_labels(known["names"], counts, "names")
        beside: dict[str, Any] = {
            "blocks": checked_blocks(known["blocks"], counts, paired=paired),
            "covariates": checked_covariates(known["covariates"], rows),
            "labels": checked_labels(known["labels"], counts, "labels", allow_missing=True),
            "_names": names.map(lambda own: None if own is None else list(map(str, own))),
        }
        if design is not None:
            check_doses_in_blocks(design, beside["blocks"])
        # Samples of weight 0, which are no longer in `tables`, are left out of everything.
        if any(own is not None for own in tables.kept):
            chosen = tables.kept.map(lambda own, count: np.flatnonzero(np.ones(count) if own is None else own), counts)
            rows, tables = rows.map(take, chosen), replace(tables, kept=rows.map(lambda _: None))
            beside = {key: None if own is None else own.map(take, chosen) for key, own in beside.items()}
        return self._set(rows, tables, **beside, label_name=label_name, paired=paired, design=design)

    def _set(self, rows: Groups[Any], tables: Tables, **known: Any) -> Study:
        """Set all fields, which are checked already, but for what covariates say together."""
        nothing = rows.map(lambda _: None)
        default = dict.fromkeys(("blocks", "covariates", "label_name", "design"))
        default |= {"labels": nothing, "paired": False, "_names": nothing}
        for name, value in {"rows": rows, "tables": tables, **default, **known}.items():
            object.__setattr__(self, name, value)
        _ = self._encoded  # raises here, not in the function that needs it
        return self

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        groupby: str | None = None,
        background: Any = None,
        foreground: Any = None,
        conditions: bool = False,
        interaction: tuple[str, str] | None = None,
        case: tuple[Any, Any] | None = None,
        dose: str | None = None,
        strata: str | None = None,
        blocks: str | None = None,
        covariates: Any = None,
        weights: str | None = None,
        labels: str | None = None,
        paired: bool = False,
    ) -> Study:
        """From one frame (pandas or polars) of all samples; the columns that are not named here are features.

        Parameters
        ----------
        frame : data frame
        groupby : str
            The column that tells cases from controls.
        background : value of that column, list of values, or a dict of them
            The values of a list are one group with one mean; a dict has several backgrounds by name, {"old": "ctrl1",
            "new": ["ctrl2", "ctrl3"]}, each centred by its own mean.
        foreground : value, list of them, or a dict of either, optional
            By default all other values. Samples of other values are left out. A dict names several conditions,
            {"low": "1 nM", "high": ["10 nM", "100 nM"]}.
        conditions : bool, default False
            Whether every value of the foreground is a condition of its own, as if a dict named it: each is about its
            own mean, and all count alike.
        interaction : tuple of two str, optional
            In place of `groupby`: the columns of two factors, of two values each. The foreground is where both are at
            their case, or neither.
        case : tuple
            The value of each factor that is of interest: ("mut", "treated").
        dose : str, optional
            In place of `groupby`: a column of numbers. High values are the foreground, low ones the background, and
            rows count the more, the further their rank is from the mean.
        strata : str, optional
            With `dose`: the column within whose values doses are compared, such as the compound.
        blocks, weights, labels : str, optional
            Columns.
        covariates : str or list of str, optional
            Columns.
        paired : bool, default False
        """
        rows, design, used = groups_in(
            frame, groupby, background, foreground, conditions, interaction, case, dose, strata, where="the frame"
        )
        named = {"blocks": blocks, "covariates": covariates, "weights": weights, "labels": labels}
        shared = [column for argument, own in named.items() for column in names_in(own, argument)]
        if groupby is not None and groupby in shared:
            argument = next(argument for argument, own in named.items() if groupby in names_in(own, argument))
            raise GroupError(f"The column {groupby!r} is used twice, as groupby= and {argument}=: use it once.")
        left = [name for name in column_names(frame) or [] if name not in used or name in shared]
        table = select(frame, left)
        found, known = read_known(rows.map(lambda own: take(table, own)), named | {"names": None})
        return object.__new__(cls)._check(found, known, None, labels, paired, design)

    @classmethod
    def from_anndata(
        cls,
        adata: Any,
        *,
        groupby: str | None = None,
        background: Any = None,
        foreground: Any = None,
        conditions: bool = False,
        interaction: tuple[str, str] | None = None,
        case: tuple[Any, Any] | None = None,
        dose: str | None = None,
        strata: str | None = None,
        blocks: str | None = None,
        covariates: Any = None,
        weights: str | None = None,
        labels: str | None = None,
        layer: str | None = None,
        obsm: str | None = None,
        mask_var: Any = "auto",
        paired: bool = False,
    ) -> Study:
        """From an AnnData, whose `obs` has the groups, and columns that describe each cell.

        Parameters
        ----------
        adata : AnnData
        groupby, background, foreground, conditions, interaction, case, dose, strata, blocks, covariates, weights, \
        labels, paired
            As for `from_frame`: columns of `adata.obs`.
        layer, obsm : str, optional
            A layer instead of X, or an array of `obsm` in place of genes.
        mask_var : str, array of bool or None, default "auto"
            Which genes: a column of `adata.var`; "auto" means "highly_variable" if that is there.
        """
        obs = adata.obs
        cells, design, _ = groups_in(
            obs, groupby, background, foreground, conditions, interaction, case, dose, strata, where="adata.obs"
        )
        matrix, mask, features = matrix_of(adata, layer, obsm, mask_var)
        rows = cells.map(lambda own: matrix[own] if mask is None else matrix[own][:, np.flatnonzero(mask)])
        obs_names = np.asarray(obs.index, dtype=object)
        named = {"blocks": blocks, "covariates": covariates, "weights": weights, "labels": labels}
        given: dict[str, Any] = dict.fromkeys(named)
        given["names"] = tuple(list(map(str, obs_names[own])) for own in cells)
        for argument, columns in named.items():
            names = names_in(columns, argument)
            for name in names:
                check_column(obs, name, argument, "adata.obs")
            if columns is not None:
                values = obs[names if argument == "covariates" else columns]
                given[argument] = tuple(values.iloc[own] for own in cells)
        found, known = read_known(rows, given)
        return object.__new__(cls)._check(found, known, features, labels, paired, design)

    # ------------------------------------------------------------------ what it holds

    @property
    def features(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self.tables.names

    @property
    def weights(self) -> Groups[Any]:
        """How often each sample counts; None in a group where all count once."""
        return self.tables.weights

    @cached_property
    def sample_names(self) -> Groups[list[str] | None]:
        """Names of the samples, by default the index of a pandas frame; None where there are none."""
        return self._names.map(lambda own, table: index_names(table) if own is None else own, self.rows)

    @property
    def counts(self) -> Groups[int]:
        """Samples of each group."""
        refuse_moments(self, "Counting samples")
        return self.rows.map(n_rows_of)

    def __len__(self) -> int:
        return sum(self.counts)

    def __repr__(self) -> str:
        n_features = plural(self.tables.n_features, "feature")
        if self.tables.are_moments:
            sizes = " + ".join(self.rows.map_named(lambda group, own: f"{group} {own.weight:g}"))
            return f"Study of moments ({sizes}) of {n_features}"
        sizes = " + ".join(self.counts.map_named(lambda group, count: f"{count} {group}"))
        parts = [f"{sizes} samples x {n_features}" if self.design is None else f"{self.design} x {n_features}"]
        if self.tables.incomplete:
            parts.append("values missing")
        if self.blocks is not None:
            numbers = [len(set(own)) for own in self.blocks]
            parts.append(f"{numbers[0]} pairs" if self.paired else f"{' + '.join(map(str, numbers))} blocks")
        if self.covariates is not None:
            parts.append(f"covariates {listed(list(self.covariates.foreground))}")
        if self.design is not None:
            return f"Study of {', '.join(parts)}"
        if any(own is not None for own in self.weights):
            parts.append("weights")
        if self.labels.foreground is not None:
            classes = {label for label in self.labels.foreground.tolist() if not is_missing(label)}
            parts.append(f"labels ({len(classes)} different)")
        return f"Study of {', '.join(parts)}"

    def _repr_html_(self) -> str:
        return shown_as_html(repr(self))

    @cached_property
    def _encoded(self) -> Encoded | None:
        return _as_numbers(self, self.tables)

    @cached_property
    def _adjusted(self) -> Tables:
        return self.tables if self._encoded is None else without_covariates(self.tables, self._encoded)[0]

    # ------------------------------------------------------------------ parts of it

    def __getitem__(self, which: Any) -> Study:
        """Some samples: a mask, indices or a slice over all samples, those of the foreground first."""
        refuse_moments(self, "A subset")
        found = np.arange(len(self))[which] if isinstance(which, slice) else np.asarray(which)
        if found.ndim != 1 or found.dtype.kind not in "biu":
            raise TypeError("A Study is subset by a mask, by indices or by a slice over all samples, foreground first.")
        if found.dtype.kind == "b":
            if found.size != len(self):
                raise GroupError(f"The mask has {found.size} values for {len(self)} samples: pass one for each.")
            found = np.flatnonzero(found)
        if found.size and (found.min() < 0 or found.max() >= len(self)):
            raise GroupError(f"Samples are numbered from 0 to {len(self) - 1}; got {found.min()} to {found.max()}.")
        edges = np.cumsum([0, *self.counts])
        chosen = self.rows.like(found[(found >= a) & (found < b)] - a for a, b in pairwise(edges))
        for group, own in zip(chosen.names, chosen, strict=True):
            if own.size < 2 and self.design is None:  # the groups of a design are others among other rows
                raise GroupError(f"{plural(own.size, 'sample')} of the {group} would be left: each group needs 2.")
        return with_rows(self, self.rows.map(take, chosen), chosen)

    def without(
        self,
        *,
        samples: Any = (),
        blocks: Any = (),
        labels: Any = (),
        covariates: Any = (),
    ) -> Study:
        """The study without some samples, by their names, blocks or labels; or without some covariates.

        Parameters
        ----------
        samples, blocks, labels : one of them, or a sequence
            Names of samples, blocks and labels to leave out: `blocks="donor1"`, `labels=[1, 2]`.
        covariates : str or sequence of str
            Covariates that no longer count.
        """
        study = self
        if dropped := as_list(covariates):
            known = [] if self.covariates is None else list(self.covariates.foreground)
            check_known(dropped, known, "covariates")
            own = (
                None
                if self.covariates is None or len(dropped) == len(known)
                else self.covariates.map(
                    lambda columns: {name: values for name, values in columns.items() if name not in dropped}
                )
            )
            study = changed(self, covariates=own)
        out = np.zeros(len(self), dtype=bool)
        for what, given, groups in (
            ("samples", samples, self.sample_names),
            ("blocks", blocks, self.blocks),
            ("labels", labels, self.labels),
        ):
            if not (wanted := as_list(given)):
                continue
            parts = [] if groups is None else zip(groups, self.counts, strict=True)
            every = [value for own, count in parts for value in ([None] * count if own is None else list(own))]
            check_known(wanted, [value for value in every if not is_missing(value)], what)
            out |= np.array([value in wanted for value in every])
        return study[~out] if out.any() else study


# ---------------------------------------------------------------------- for functions that take a study or tables


def study_of(
    X: Any,
    background: Any,
    name: str,
    *,
    y: Any = None,
    background_label: Any = None,
    sample_weight: Any = None,
    needs_background: bool = True,
    designs: bool = False,
) -> Study:
    """The study itself, or that of tables as `fit` takes them: the only way in for tables.

    `name` is what needs the study, for messages. With `background_label`, a label or a list of them, the rows of `X`
    that have it in `y` are background; without it `y` is ignored, as scikit-learn's transformers do. With `designs`,
    groups may be weighted rows of several conditions, of two factors or of a dose.
    """
    if isinstance(X, Study):
        given = {"y": y, "background=": background, "sample_weight=": sample_weight}
        if own := [argument for argument, value in given.items() if value is not None]:
            raise GroupError(
                f"{name} was given a Study, which has its own groups and weights: leave {joined(own)} out."
            )
        study = X
        if not designs:
            refuse_designs(study, name)
    else:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
        if len(shape) > 1 and shape[1:] == (1,):
            raise GroupError(f"y has shape {shape}: pass the labels as one column, y['name'] or y.ravel().")
        if len(shape) > 1:
            raise GroupError(
                f"y has shape {shape}, but it must contain one group label per row. To pass the background table, "
                "write fit(X, background=Y)."
            )
        if background is not None and background_label is not None and y is not None:
            raise GroupError("Both background= and y with background_label= were given: use only one of them.")
        rows = groups_of(X, background)
        weights = rows.like([sample_weight, *[None] * len(rows.backgrounds)])
        if any(is_moments(table) for table in rows):
            tables = moments_tables(rows, {"sample_weight": weights})
        elif background is None and background_label is not None:
            tables = stacked_tables(X, y, background_label, sample_weight, name=name)
            rows = tables.rows
        else:
            tables = checked_tables(rows, weights, name=name)
        study = object.__new__(Study)._set(rows, tables)
    if needs_background and len(study.rows) == 1:
        raise GroupError(
            f"{name} contrasts two groups but was given one: pass the background as background=, or a Study that "
            "has one; in stacked rows, background_label= and y tell the groups apart. For a single group, use PPCA."
        )
    return study


def check_different(given: Groups[Any], *, by_value: bool) -> None:
    """Raise if two groups are one table, or, by value, equal arrays."""
    for k, (group, table) in enumerate(zip(given.names, given, strict=True)):
        for other in list(given)[:k]:
            arrays = by_value and isinstance(table, np.ndarray) and isinstance(other, np.ndarray)
            if table is other or (arrays and np.array_equal(table, other)):
                raise GroupError(f"The {group} is a table of another group, too: a sample is in one group only.")


def changed(study: Study, **fields_: Any) -> Study:
    """The study with other values of some fields, which are checked already."""
    values = {field.name: getattr(study, field.name) for field in fields(study)}
    return object.__new__(Study)._set(**values | fields_)


def with_rows(study: Study, rows: Groups[Any], chosen: Groups[Indices] | None = None) -> Study:
    """Other rows for the samples of a study, or for some of them."""
    beside: dict[str, Any] = {key: getattr(study, key) for key in ("blocks", "covariates", "labels", "_names")}
    weights: Groups[Any] = study.weights
    design = study.design
    if chosen is not None:
        beside = {key: None if own is None else own.map(take, chosen) for key, own in beside.items()}
        weights = weights.map(take, chosen)
    if chosen is not None and design is not None:  # among other rows each counts differently, or is in another group
        places, design = some_of(design, chosen)
        edge = chosen.foreground.size
        rows = regrouped(rows, places, edge)
        beside = {key: None if own is None else regrouped(own, places, edge) for key, own in beside.items()}
        weights = design.weights
    if study.paired:
        checked_blocks(beside["blocks"], rows.map(n_rows_of), paired=True)
    tables = checked_tables(rows, weights, name="Study", weights_are="weights")
    tables = replace(tables, names=study.tables.names, text_names=study.tables.text_names)
    return changed(study, rows=rows, tables=tables, design=design, **beside)


def foreground_of(study: Study) -> Study:
    """The foreground as the only group."""
    if len(study.rows) == 1:
        return study
    several = ("rows", "blocks", "covariates", "labels", "_names")
    alone = {key: None if (own := getattr(study, key)) is None else Groups.of(own.foreground) for key in several}
    return changed(study, **alone, tables=study.tables.foreground_alone(), paired=False, design=None)


def tables_of(study: Study, *, allow_missing: bool) -> Tables:
    """The checked rows; raise if values are missing and must not."""
    if not allow_missing:
        refuse_missing(study.tables)
    return study.tables


def adjusted_tables(study: Study) -> Tables:
    """The checked rows without the effect of the covariates."""
    return study._adjusted


def encoded_of(study: Study, tables: Tables | None = None) -> Encoded | None:
    """Covariates as numbers, of all rows or of those that are left in these tables; None if there are none."""
    if tables is None or study.covariates is None or all(kept is None for kept in tables.kept):
        return study._encoded
    return _as_numbers(study, tables)


def _as_numbers(study: Study, tables: Tables) -> Encoded | None:
    """Covariates beside the columns that a design regresses out: means of its cells."""
    encoded = None if study.covariates is None else encoded_covariates(tables, study.covariates)
    columns = None if study.design is None else study.design.columns
    if columns is None or columns.foreground.shape[1] == 0:
        return encoded
    if encoded is None:
        return Encoded((), columns)
    return Encoded(encoded.columns, encoded.numbers.map(lambda own, more: np.hstack([own, more]), columns))


def units_of(study: Study, tables: Tables | None = None, *, least: int, what: str) -> Groups[Indices]:
    """The independent unit of each row: its block, or the row itself. `what` needs at least `least` in each group."""
    refuse_moments(study, what[:1].upper() + what[1:])
    tables = study.tables if tables is None else tables
    return table_units(tables, study.blocks, paired=study.paired, least=least, what=what)


def refuse(study: Study, name: str, *, weights: str = "", covariates: str = "", missing: bool = False) -> None:
    """Raise if the study holds what a function cannot use: the texts say what to do instead."""
    if weights and study.design is None and any(own is not None for own in study.weights):
        raise GroupError(f"{name} takes no weights, but the study has some: {weights}.")
    if covariates and study.covariates is not None:
        raise GroupError(f"{name} takes no covariates, but the study has some: {covariates}.")
    if missing and study.tables.incomplete:
        raise GroupError(f"{name} needs complete rows, but values are missing: drop rows or features.")


def refuse_designs(study: Study, name: str) -> None:
    """Raise if the groups are weighted rows of several conditions, of two factors or of a dose."""
    if study.design is not None:
        raise GroupError(
            f"{name} compares two populations, but this is a study of {study.design.subject}: make a study of two "
            "groups for it, such as Study.from_frame(frame, groupby=..., background=...)."
        )


def refuse_moments(study: Study, what: str) -> None:
    """Raise if there are moments in place of rows."""
    if study.tables.are_moments:
        raise TypeError(f"{what} needs rows, but this study was made of Moments: pass the tables.")
