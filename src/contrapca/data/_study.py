"""`Study`: the groups of samples, with names, weights, blocks, covariates and labels of each sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows
from .._util.tables import shown_as_html
from .._util.text import is_missing, joined, listed, plural
from ..exceptions import GroupError
from ._arguments import (
    check_column,
    check_known,
    checked_features,
    matrix_of,
    n_rows_of,
    name_of,
    names_in,
    read_known,
    select,
    take,
)
from ._blocks import Indices, check_labels, checked_blocks, table_units
from ._covariates import Design, checked_covariates, design_of, without_covariates
from ._groups import Groups, Tables
from ._labels import check_total, check_weights, checked_labels, group_rows, named_backgrounds
from ._tables import (
    check_same_columns,
    checked_tables,
    column_names,
    index_names,
    refuse_missing,
    stacked_tables,
)

ARGUMENTS = ("blocks", "covariates", "weights", "labels", "names")


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
    features : tuple of str, or None
    sample_names : Groups of list of str, or of None
    blocks, covariates : Groups, or None
    weights, labels : Groups of ndarray, or of None
    label_name : str, or None
        The column or Series that the labels are from.
    paired : bool

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
    tables: Tables  # checked
    blocks: Groups[npt.NDArray[Any]] | None
    covariates: Groups[dict[str, npt.NDArray[Any]]] | None
    weights: Groups[Array | None]
    labels: Groups[npt.NDArray[Any] | None]
    label_name: str | None
    paired: bool

    def __init__(
        self,
        X: Any,
        *,
        background: Any = None,
        blocks: Any = None,
        covariates: Any = None,
        weights: Any = None,
        labels: Any = None,
        paired: bool = False,
        names: Any = None,
        features: Sequence[str] | None = None,
        label_name: str | None = None,
    ) -> None:
        others = named_backgrounds(background)
        given = {"blocks": blocks, "covariates": covariates, "weights": weights, "labels": labels, "names": names}
        rows = Groups.from_items([X, *others.values()], ("foreground", *others))
        name = label_name or name_of(labels)
        self._fill(*read_known(rows, given), paired=paired, label_name=name, features=features)

    @classmethod
    def of(
        cls,
        X: Any,
        background: Any,
        name: str,
        *,
        y: Any = None,
        background_label: Any = None,
        sample_weight: Any = None,
        needs_background: bool = True,
    ) -> Study:
        """The study itself, or that of tables as `fit` takes them: the only way in for tables.

        Parameters
        ----------
        X, background, y, sample_weight
            As for `fit`.
        name : str
            What needs the study, for messages.
        background_label : label or list of labels, optional
            The rows of `X` with this label in `y` are background. Without it `y` is ignored, as scikit-learn's
            transformers do.
        needs_background : bool
        """
        given = {"y": y, "background=": background, "sample_weight=": sample_weight}
        if isinstance(X, Study):
            if own := [argument for argument, value in given.items() if value is not None]:
                raise GroupError(
                    f"{name} was given a Study, which has its own groups and weights: leave {joined(own)} out."
                )
            study = X
        else:
            study = cls.__new__(cls)
            study._fill_plain(X, y, background, background_label, sample_weight, name)
        if needs_background and len(study.rows) == 1:
            raise GroupError(
                f"{name} contrasts two groups but was given one: pass the background as background=, or a Study that "
                "has one; in stacked rows, background_label= and y tell the groups apart. For a single group, use PPCA."
            )
        return study

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        group: str,
        background: Any,
        foreground: Any = None,
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
        group : str
            The column that tells the groups apart.
        background : value of that column, or list of them
            A list gives several backgrounds.
        foreground : value, or list of them, optional
            By default all other values. Samples of other values are left out.
        blocks, weights, labels : str, optional
            Columns.
        covariates : str or list of str, optional
            Columns.
        paired : bool, default False
        """
        check_column(frame, group, "group", "the frame")
        named = {"blocks": blocks, "covariates": covariates, "weights": weights, "labels": labels}
        for argument, own in named.items():
            if group in names_in(own, argument):
                raise GroupError(f"The column {group!r} is used twice, as group= and {argument}=: use it once.")
        rows = group_rows(np.asarray(frame[group]), background, foreground, f"column {group!r}")
        table = select(frame, [name for name in column_names(frame) or [] if name != group])
        tables = rows.map(lambda own: take(table, own))
        others = dict(zip(tables.names[1:], tables.backgrounds, strict=True))
        return cls(tables.foreground, background=others, **named, paired=paired)

    @classmethod
    def from_anndata(
        cls,
        adata: Any,
        *,
        groupby: str,
        background: Any,
        foreground: Any = None,
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
        groupby, background, foreground, blocks, covariates, weights, labels, paired
            As for `from_frame`: columns of `adata.obs`.
        layer, obsm : str, optional
            A layer instead of X, or an array of `obsm` in place of genes.
        mask_var : str, array of bool or None, default "auto"
            Which genes: a column of `adata.var`; "auto" means "highly_variable" if that is there.
        """
        obs = adata.obs
        check_column(obs, groupby, "groupby", "adata.obs")
        cells = group_rows(np.asarray(obs[groupby]), background, foreground, f"adata.obs[{groupby!r}]")
        matrix, mask, features = matrix_of(adata, layer, obsm, mask_var)
        rows = cells.map(lambda own: _columns_of(matrix[own], mask))
        given: dict[str, Any] = {}
        known = {"blocks": blocks, "covariates": covariates, "weights": weights, "labels": labels}
        for argument, names in known.items():
            for name in names_in(names, argument):
                check_column(obs, name, argument, "adata.obs")
            if names is not None:
                known_of = obs[names_in(names, argument) if argument == "covariates" else names]
                given[argument] = tuple(known_of.iloc[own] for own in cells)
        study = cls.__new__(cls)
        study._fill(*read_known(rows, given), paired=paired, label_name=labels, features=features)
        obs_names = np.asarray(obs.index, dtype=object)
        names_of = cells.map(lambda own: list(map(str, obs_names[own])))
        return study._with(sample_names=names_of)

    # ------------------------------------------------------------------ made and checked

    def _fill_plain(
        self, X: Any, y: Any, background: Any, background_label: Any, sample_weight: Any, name: str
    ) -> None:
        """Set groups without blocks, covariates or labels."""
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
        others = named_backgrounds(background)
        rows = Groups.from_items([X, *others.values()], ("foreground", *others))
        weights = rows.like([sample_weight, *[None] * len(others)])
        if any(hasattr(table, "scatter") for table in rows):
            self._fill_moments(rows, {"sample_weight": weights})
            return
        if background is None and background_label is not None:
            tables = stacked_tables(X, y, background_label, sample_weight, name=name)
            rows, weights = tables.rows, tables.weights
        else:
            tables = checked_tables(rows, weights, name=name)
        nothing = rows.like([None] * len(rows))
        self.__dict__.update(rows=rows, tables=tables, weights=weights, labels=nothing)
        self.__dict__.update(blocks=None, covariates=None, label_name=None, paired=False)

    def _fill(
        self,
        rows: Groups[Any],
        known: dict[str, Groups[Any]],
        *,
        paired: bool = False,
        label_name: str | None = None,
        features: Sequence[str] | None = None,
    ) -> None:
        """Check everything, and set it."""
        nothing = rows.like([None] * len(rows))
        given = {argument: known.get(argument, nothing) for argument in ARGUMENTS}
        if any(hasattr(table, "scatter") for table in rows):
            if features is not None:
                raise GroupError("Moments have the names of their features: leave features= out.")
            self._fill_moments(rows, given)
            return
        counts = rows.map(n_rows_of)
        weights = given["weights"].map_named(
            lambda group, own: check_weights(own, counts[group], f"weights of the {group}")
        )
        covariates = checked_covariates(given["covariates"], rows)
        found = {
            "blocks": checked_blocks(given["blocks"], counts, paired=paired),
            "labels": given["labels"].map_named(lambda group, own: checked_labels(own, counts[group], group)),
        }
        names = rows.map(index_names)
        for k, (group, own) in enumerate(zip(rows.names, given["names"], strict=True)):
            if own is not None:
                texts = [*map(str, check_labels(own, counts[group], f"names of the {group}"))]
                names = names.like([*list(names)[:k], texts, *list(names)[k + 1 :]])
        counted = weights.map(lambda own: None if own is None or np.all(own > 0) else np.flatnonzero(own > 0))
        if any(own is not None for own in counted):
            every = counts.map(np.arange)
            kept = counted.map(lambda own, all_: all_ if own is None else own, every)
            rows, names, weights = (_some(one, kept) for one in (rows, names, weights))
            covariates = None if covariates is None else _some(covariates, kept)
            found = {key: None if own is None else _some(own, kept) for key, own in found.items()}
        own_names = None if features is None else checked_features(features, rows.foreground)
        tables = checked_tables(rows, weights, name="Study", features=own_names)
        self.__dict__.update(rows=rows, tables=tables, sample_names=names, weights=weights, covariates=covariates)
        self.__dict__.update(found, label_name=label_name, paired=paired)
        self.design()  # which raises now, not in the function that needs it

    def _fill_moments(self, rows: Groups[Any], given: dict[str, Groups[Any]]) -> None:
        if not all(hasattr(table, "scatter") for table in rows):
            raise GroupError(
                "One group is given as Moments and the other as rows: use Moments.from_rows for both groups."
            )
        for argument, groups in given.items():
            if any(own is not None for own in groups):
                raise GroupError(
                    f"Moments have no rows, so nothing can be known of each: leave {argument}= out, or pass tables. "
                    "Moments.from_rows takes weights."
                )
        first = rows.foreground
        for group, own in zip(rows.names[1:], rows.backgrounds, strict=True):
            names = [list(one.names) if one.names else None for one in (first, own)]
            check_same_columns(first.mean.size, own.mean.size, names[0], names[1], group)
        for group, own in zip(rows.names, rows, strict=True):
            check_total(own.weight, f"The weight of the moments of the {group}")
        nothing = rows.like([None] * len(rows))
        self.__dict__.update(rows=rows, tables=Tables.of_moments(rows, first.names, True), sample_names=nothing)
        self.__dict__.update(weights=nothing, covariates=None, blocks=None, labels=nothing)
        self.__dict__.update(label_name=None, paired=False)

    def _with(self, **changed: Any) -> Study:
        """The same with some fields changed, which are checked already."""
        study = Study.__new__(Study)
        beside = ("sample_names", "blocks", "covariates", "weights", "labels", "label_name", "paired")
        fields = ("rows", "tables", *beside)
        study.__dict__.update({field: getattr(self, field) for field in fields} | changed)
        return study

    # ------------------------------------------------------------------ what it holds

    @property
    def features(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self.tables.names

    @cached_property
    def sample_names(self) -> Groups[list[str] | None]:
        """Names of the samples, by default the index of a pandas frame; None where there are none."""
        return self.rows.map(index_names)

    @property
    def counts(self) -> Groups[int]:
        """Samples of each group."""
        return self.rows.map(n_rows_of)

    @property
    def has_moments(self) -> bool:
        """Whether the groups are moments, which have no rows."""
        return hasattr(self.rows.foreground, "scatter")

    def __len__(self) -> int:
        return sum(self.counts)

    def __repr__(self) -> str:
        return f"Study of {', '.join(self._parts())}"

    def _repr_html_(self) -> str:
        return shown_as_html(repr(self))

    def _parts(self) -> list[str]:
        n_features = plural(self.tables.n_features, "feature")
        if self.has_moments:
            sizes = " + ".join(f"{group} {own.weight:g}" for group, own in zip(self.rows.names, self.rows, strict=True))
            return [f"moments ({sizes}) of {n_features}"]
        sizes = " + ".join(f"{count} {group}" for group, count in zip(self.rows.names, self.counts, strict=True))
        found = [f"{sizes} samples x {n_features}"]
        if self.tables.incomplete:
            found.append("values missing")
        if self.blocks is not None:
            numbers = [len(set(own)) for own in self.blocks]
            found.append(f"{numbers[0]} pairs" if self.paired else f"{' + '.join(map(str, numbers))} blocks")
        if self.covariates is not None:
            found.append(f"covariates {listed(list(self.covariates.foreground))}")
        if any(own is not None for own in self.weights):
            found.append("weights")
        if self.labels.foreground is not None:
            classes = {label for label in self.labels.foreground.tolist() if not is_missing(label)}
            found.append(f"labels ({len(classes)} different)")
        return found

    # ------------------------------------------------------------------ parts of it

    def __getitem__(self, which: Any) -> Study:
        """Some samples: a mask, indices or a slice over all samples, those of the foreground first."""
        self.refuse_moments("A subset")
        counts = list(self.counts)
        found = np.arange(len(self))[which] if isinstance(which, slice) else np.asarray(which)
        if found.ndim != 1 or found.dtype.kind not in "biu":
            raise TypeError("A Study is subset by a mask, by indices or by a slice over all samples, foreground first.")
        if found.dtype.kind == "b":
            if found.size != len(self):
                raise GroupError(f"The mask has {found.size} values for {len(self)} samples: pass one for each.")
            found = np.flatnonzero(found)
        if found.size and (found.min() < 0 or found.max() >= len(self)):
            raise GroupError(f"Samples are numbered from 0 to {len(self) - 1}; got {found.min()} to {found.max()}.")
        edges = np.cumsum([0, *counts])
        chosen = self.rows.like(found[(found >= a) & (found < b)] - a for a, b in pairwise(edges))
        for group, own in zip(chosen.names, chosen, strict=True):
            if own.size < 2:
                raise GroupError(f"{plural(own.size, 'sample')} of the {group} would be left: each group needs 2.")
        return self.with_rows(_some(self.rows, chosen), chosen)

    def with_rows(self, rows: Groups[Any], chosen: Groups[Indices] | None = None) -> Study:
        """Other rows for these samples, or for some of them."""
        beside = ("sample_names", "blocks", "covariates", "weights", "labels")
        own = {key: getattr(self, key) for key in beside}
        if chosen is not None:
            own = {key: None if values is None else _some(values, chosen) for key, values in own.items()}
        tables = checked_tables(rows, own["weights"], name="Study")
        found = self._with(
            **own, rows=rows, tables=replace(tables, names=self.tables.names, text_names=self.tables.text_names)
        )
        if self.paired:
            assert found.blocks is not None
            checked_blocks(found.blocks, found.counts, paired=True)
        found.design()
        return found

    def without(
        self,
        *,
        samples: Sequence[Any] = (),
        blocks: Sequence[Any] = (),
        labels: Sequence[Any] = (),
        covariates: Any = (),
    ) -> Study:
        """The study without some samples, by their names, blocks or labels; or without some covariates.

        Parameters
        ----------
        samples, blocks, labels : sequence
            Names of samples, blocks and labels to leave out.
        covariates : str or sequence of str
            Covariates that no longer count.
        """
        study = self
        if dropped := [covariates] if isinstance(covariates, str) else list(covariates):
            known = list(self.covariates.foreground) if self.covariates is not None else []
            check_known(dropped, known, "covariates")
            left = [name for name in known if name not in dropped]
            own = None
            if left and self.covariates is not None:
                own = self.covariates.map(lambda columns: {name: columns[name] for name in left})
            study = study._with(covariates=own)
        out = np.zeros(len(self), dtype=bool)
        for what, values, groups in (
            ("samples", samples, self.sample_names),
            ("blocks", blocks, self.blocks),
            ("labels", labels, self.labels),
        ):
            if not len(wanted := list(values)):
                continue
            parts = [] if groups is None else zip(groups, self.counts, strict=True)
            every = [value for own, count in parts for value in ([None] * count if own is None else list(own))]
            check_known(wanted, [value for value in every if not is_missing(value)], what)
            out |= np.array([value in wanted for value in every])
        return study[~out] if out.any() else study

    def of_foreground(self) -> Study:
        """The foreground as the only group."""
        if len(self.rows) == 1:
            return self
        fields = ("rows", "sample_names", "covariates", "weights", "labels", "blocks")
        alone = {key: None if (own := getattr(self, key)) is None else Groups.of(own.foreground) for key in fields}
        return self._with(**alone, tables=self.tables.foreground_alone(), paired=False)

    # ------------------------------------------------------------------ for functions that take a study

    def units(self, tables: Tables | None = None, *, least: int, what: str) -> Groups[Indices]:
        """The independent unit of each row: its block, or the row itself."""
        self.refuse_moments(what[:1].upper() + what[1:])
        return table_units(
            self.tables if tables is None else tables, self.blocks, paired=self.paired, least=least, what=what
        )

    @cached_property
    def _design(self) -> Design | None:
        return None if self.covariates is None else design_of(self.tables, self.covariates)

    def design(self, tables: Tables | None = None) -> Design | None:
        """Covariates as numbers, of the rows of these tables; None if there are none."""
        if tables is None or self.covariates is None or all(kept is None for kept in tables.kept):
            return self._design
        return design_of(tables, self.covariates)

    @cached_property
    def adjusted(self) -> Tables:
        """The tables without the effect of the covariates."""
        return self.tables if self._design is None else without_covariates(self.tables, self._design)[0]

    def refuse(self, name: str, *, weights: str = "", covariates: str = "", missing: bool = False) -> None:
        """Raise if the study holds what a function cannot use: the texts say what to do instead."""
        if weights and any(own is not None for own in self.weights):
            raise GroupError(f"{name} takes no weights, but the study has some: {weights}.")
        if covariates and self.covariates is not None:
            raise GroupError(f"{name} takes no covariates, but the study has some: {covariates}.")
        if missing and self.tables.incomplete:
            raise GroupError(f"{name} needs complete rows, but values are missing: drop rows or features.")

    def for_fit(self, *, allow_missing: bool) -> Tables:
        """The tables of a fit."""
        if not allow_missing:
            refuse_missing(self.tables)
        return self.tables

    def refuse_moments(self, what: str) -> None:
        if self.has_moments:
            raise TypeError(f"{what} needs rows, but this study was made of Moments: pass the tables.")


def _some(values: Groups[Any], rows: Groups[Indices]) -> Groups[Any]:
    return values.map(take, rows)


def _columns_of(rows: Rows, mask: npt.NDArray[np.bool_] | None) -> Rows:
    return rows if mask is None else rows[:, np.flatnonzero(mask)]
