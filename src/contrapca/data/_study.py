"""`Study`: the groups of samples, and what is known of each sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util.arrays import Array, Rows
from .._util.devices import host, on_device, put
from .._util.display import shown_as_html
from .._util.text import did_you_mean, is_missing, listed, plural, spelling
from ..exceptions import GroupError, TableWarning, warn
from ._blocks import Indices, check_labels, checked_blocks, table_units
from ._covariates import Design, checked_covariates, design_of, without_covariates
from ._groups import Groups, Tables
from ._names import check_total, check_weights, named_backgrounds
from ._tables import aligned, check_same_columns, checked_tables, column_names, distinct, index_names, refuse_missing

ARGUMENTS = ("blocks", "covariates", "weights", "labels", "names")


MAX_LISTED = 10


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Study:
    """Cases and controls, and what is known of each sample: what all functions take in place of tables.

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
    sample_names: Groups[list[str] | None]
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
        name = label_name or _name_of(labels)
        self._fill(*_read(rows, given), paired=paired, label_name=name, features=features)

    @classmethod
    def of(cls, X: Any, background: Any, name: str, *, needs_background: bool = True) -> Study:
        """The study itself, or that of two tables; `name` is what needs it, for messages."""
        if isinstance(X, Study):
            if background is not None:
                raise GroupError(f"{name} was given a Study, which has its own background: leave background= out.")
            study = X
        else:
            others = named_backgrounds(background)
            study = cls.__new__(cls)
            rows = Groups.from_items([X, *others.values()], ("foreground", *others))
            study._fill(*_read(rows, {}), name=name)
        if needs_background and len(study.rows) == 1:
            raise GroupError(
                f"{name} contrasts two groups but was given one: pass the background table as background=, or a Study "
                "that has one."
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
        _check_column(frame, group, "group", "the frame")
        named = {"blocks": blocks, "covariates": covariates, "weights": weights, "labels": labels}
        for argument, own in named.items():
            if group in _names_in(own, argument):
                raise GroupError(f"The column {group!r} is used twice, as group= and {argument}=: use it once.")
        rows = group_rows(np.asarray(frame[group]), background, foreground, f"column {group!r}")
        table = _select(frame, [name for name in column_names(frame) or [] if name != group])
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
        """From an AnnData, whose `obs` has the groups and what is known of each cell.

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
        _check_column(obs, groupby, "groupby", "adata.obs")
        cells = group_rows(np.asarray(obs[groupby]), background, foreground, f"adata.obs[{groupby!r}]")
        matrix, mask, features = matrix_of(adata, layer, obsm, mask_var)
        rows = cells.map(lambda own: _columns_of(matrix[own], mask))
        given: dict[str, Any] = {}
        known = {"blocks": blocks, "covariates": covariates, "weights": weights, "labels": labels}
        for argument, names in known.items():
            for name in _names_in(names, argument):
                _check_column(obs, name, argument, "adata.obs")
            if names is not None:
                known_of = obs[_names_in(names, argument) if argument == "covariates" else names]
                given[argument] = tuple(known_of.iloc[own] for own in cells)
        study = cls.__new__(cls)
        study._fill(*_read(rows, given), paired=paired, label_name=labels, features=features)
        obs_names = np.asarray(obs.index, dtype=object)
        names_of = cells.map(lambda own: list(map(str, obs_names[own])))
        return study._with(sample_names=names_of)

    # ------------------------------------------------------------------ made and checked

    def _fill(
        self,
        rows: Groups[Any],
        known: dict[str, Groups[Any]],
        *,
        paired: bool = False,
        label_name: str | None = None,
        features: Sequence[str] | None = None,
        name: str = "Study",
    ) -> None:
        """Check everything, and set it."""
        nothing = rows.like([None] * len(rows))
        given = {argument: known.get(argument, nothing) for argument in ARGUMENTS}
        if any(hasattr(table, "scatter") for table in rows):
            if features is not None:
                raise GroupError("Moments have the names of their features: leave features= out.")
            self._fill_moments(rows, given)
            return
        counts = rows.map(_n_rows)
        weights = given["weights"].map_named(
            lambda group, own: check_weights(own, counts[group], f"weights of the {group}")
        )
        covariates = checked_covariates(given["covariates"], rows)
        found = {
            "blocks": checked_blocks(given["blocks"], counts, paired=paired),
            "labels": given["labels"].map_named(lambda group, own: _checked_labels(own, counts[group], group)),
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
        own_names = None if features is None else _checked_features(features, rows.foreground)
        tables = checked_tables(rows, weights, name=name, allow_missing=True, features=own_names)
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
                    f"Moments have no rows, so nothing can be known of each: leave {argument}= out, or pass tables."
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

    @property
    def counts(self) -> Groups[int]:
        """Samples of each group."""
        return self.rows.map(_n_rows)

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
        tables = checked_tables(rows, own["weights"], name="Study", allow_missing=True)
        tables = replace(tables, names=self.tables.names, text_names=self.tables.text_names)
        found = self._with(**own, rows=rows, tables=tables)
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
            _check_known(dropped, known, "covariates")
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
            _check_known(wanted, [value for value in every if not is_missing(value)], what)
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

    def for_fit(self, name: str, *, needs_background: bool, allow_missing: bool) -> Tables:
        """The tables of a fit."""
        if needs_background and len(self.rows) == 1:
            raise GroupError(f"{name} contrasts two groups, but the study has one: make it with background=.")
        if not allow_missing:
            for mean in self.tables.means:
                refuse_missing(mean)
        return self.tables

    def refuse_moments(self, what: str) -> None:
        if self.has_moments:
            raise TypeError(f"{what} needs rows, but this study was made of Moments: pass the tables.")


# ---------------------------------------------------------------------- reading what users pass


def _read(rows: Groups[Any], given: Mapping[str, Any]) -> tuple[Groups[Any], dict[str, Groups[Any]]]:
    """The tables without the columns that arguments name, and what was given for the samples of each group."""
    known = {key: list(_by_group(own, rows.names, key)) for key, own in given.items() if own is not None}
    tables = []
    for k, (group, table) in enumerate(zip(rows.names, rows, strict=True)):
        used: dict[str, str] = {}
        for argument, own in known.items():
            names, columns = _names_in(own[k], argument), column_names(table) or []
            if isinstance(own[k], list) and len(names) == _n_rows(table) and not set(names) & set(columns):
                names = []  # text, one for each sample
            for name in names:
                _check_column(table, name, argument, f"the {group}")
                if name in used:
                    raise GroupError(
                        f"The column {name!r} is used twice, as {used[name]}= and {argument}=: use it once."
                    )
                used[name] = argument
            if names:
                own[k] = _select(distinct(table, f"the {group}"), names) if argument == "covariates" else table[own[k]]
            elif own[k] is not None:
                own[k] = aligned(own[k], table, f"{argument} of the {group}")
        tables.append(table if not used else _select(table, [name for name in columns if name not in used]))
    return rows.like(tables), {argument: rows.like(own) for argument, own in known.items()}


def _names_in(given: Any, argument: str) -> list[str]:
    """The columns that an argument names; only covariates may be several."""
    if isinstance(given, str):
        return [given]
    several = argument == "covariates" and isinstance(given, list) and len(given) > 0
    return given if several and all(isinstance(name, str) for name in given) else []


def _name_of(labels: Any) -> str | None:
    """The name of a column, or of a Series."""
    first = labels[0] if isinstance(labels, tuple) and labels else labels
    name = first if isinstance(first, str) else getattr(first, "name", None)
    return name if isinstance(name, str) else None


def _by_group(given: Any, groups: Sequence[str], argument: str) -> list[Any]:
    """What was given for each group: a tuple, a dict, column names for all of them, or something for the only one."""
    if _names_in(given, argument):
        return [given] * len(groups)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping):
        given = {"foreground": given[0]} | {str(name): own for name, own in given[1].items()}
    if isinstance(given, Mapping):
        own = {str(name): values for name, values in given.items()}
        _check_known(list(own), list(groups), argument, "the study has no group")
        return [own.get(name) for name in groups]
    if isinstance(given, tuple) and len(given) == len(groups):
        return list(given)
    if not isinstance(given, tuple) and len(groups) == 1:
        return [given]
    if argument == "labels" and not isinstance(given, tuple):
        return [given, *[None] * (len(groups) - 1)]
    what = f"a tuple of {len(given)}" if isinstance(given, tuple) else f"a {type(given).__name__}"
    raise GroupError(
        f"{argument} is {what}, but there are {plural(len(groups), 'group')} ({listed(groups)}): pass a tuple with one "
        "entry for each, in this order, or the name of a column if the tables are frames."
    )


def _check_column(table: Any, name: str, argument: str, where: str) -> None:
    columns = column_names(table)
    if columns is None:
        raise GroupError(
            f"{argument}={name!r} names a column, but {where} is a {type(table).__name__} without column names: pass "
            "a value for each sample, or data frames."
        )
    if name not in columns:
        raise GroupError(
            f"{argument}={name!r} is not a column of {where}, which has {listed(columns, MAX_LISTED)}."
            f"{did_you_mean(name, columns)}"
        )


def _check_known(wanted: Sequence[Any], known: Sequence[Any], what: str, why: str = "the study has no") -> None:
    """Raise for values that do not occur, with a near one."""
    for value in wanted:
        if value not in known:
            texts = list(dict.fromkeys(map(str, known)))
            raise GroupError(
                f"{what}: {why} {value!r}, it has {listed(texts, MAX_LISTED) or 'none'}."
                f"{did_you_mean(str(value), texts)}"
            )


def _n_rows(table: Any) -> int:
    """Rows of a table; only `len` counts those of a dask frame."""
    count = table.shape[0] if hasattr(table, "shape") else None
    return int(count) if isinstance(count, int | np.integer) else len(table)


def _select(table: Any, names: list[Any]) -> Any:
    """Some columns of a frame."""
    return table.select(names) if hasattr(table, "column_names") else table[names]


def take(values: Any, rows: Indices) -> Any:
    """Some rows of a table, or of what stands beside one: a list, array, Series, dict of arrays, or None."""
    if values is None:
        return None
    if isinstance(values, dict):
        return {name: own[rows] for name, own in values.items()}
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "column_names"):  # pyarrow
        return values.take(rows)
    if isinstance(values, list):
        return [values[k] for k in rows.tolist()]
    if hasattr(values, "format") and hasattr(values, "tocsr"):  # other sparse formats have no rows
        values = values.tocsr()
    return values[put(rows, values, "int64") if on_device(values) else rows]


def _some(values: Groups[Any], rows: Groups[Indices]) -> Groups[Any]:
    return values.map(take, rows)


def _checked_features(features: Sequence[str], table: Any) -> list[str]:
    """The names of the columns of a table that has none."""
    names, n_features = list(map(str, features)), table.shape[1]
    if column_names(table) not in (None, names):
        raise GroupError("features= is for arrays, but these tables have column names: leave it out.")
    if len(names) != n_features:
        raise GroupError(f"features has {plural(len(names), 'name')} for {plural(n_features, 'feature')}.")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise GroupError(
            f"Names of features occur more than once ({listed(twice, MAX_LISTED)}), so they cannot be told apart: name "
            "each feature once (of an AnnData, call adata.var_names_make_unique() first)."
        )
    return names


def _checked_labels(labels: Any, n_rows: int, group: str) -> npt.NDArray[Any] | None:
    if labels is None:
        return None
    found = np.asarray(host(labels))
    if found.shape != (n_rows,):
        raise GroupError(
            f"labels of the {group} has shape {found.shape} for {plural(n_rows, 'row')}: pass one label per row."
        )
    return found


def group_rows(values: npt.NDArray[Any], background: Any, foreground: Any, where: str) -> Groups[Indices]:
    """The rows of each group, from a column that tells them apart.

    Parameters
    ----------
    values : ndarray of shape (N,)
    background : value, list of values (several backgrounds), or a dict of values or lists by name
    foreground : value, list of values, or None for all others
    where : str
        What the column is called, for messages.
    """
    own = values.tolist()
    missing = np.array([is_missing(value) for value in own], dtype=bool)
    levels = list(dict.fromkeys(value for value, gone in zip(own, missing, strict=True) if not gone))
    if isinstance(background, Mapping):
        named = {str(name): _as_list(labels) for name, labels in background.items()}
    elif isinstance(background, list | tuple | np.ndarray) and len(background) > 1:
        named = {str(label): [label] for label in background}
    else:
        named = {"background": _as_list(background)}
    controls = [label for labels in named.values() for label in labels]
    cases = _as_list(foreground) if foreground is not None else [level for level in levels if level not in controls]
    if not controls:
        raise GroupError(f"background= names no value of {where}: name the one that marks the background.")
    for argument, wanted in (("background", controls), ("foreground", cases)):
        for label in wanted:
            if label not in levels:
                have = listed(levels, MAX_LISTED) or "no values"
                raise GroupError(
                    f"{argument}={label!r} does not occur in {where}, which has {have}."
                    f"{did_you_mean(str(label), map(str, levels))}"
                )
    if twice := [label for label in dict.fromkeys(controls) if controls.count(label) > 1]:
        raise GroupError(f"background: {listed(twice)} is in several backgrounds: name each value once.")
    if both := [label for label in cases if label in controls]:
        raise GroupError(f"background and foreground both have {listed(both)}: a sample is in one group only.")
    if not cases:
        raise GroupError(f"All values of {where} are background, so no foreground is left: name fewer of them.")
    if foreground is None and missing.any():
        raise GroupError(
            f"{missing.sum()} of {plural(missing.size, 'sample')} have no value in {where}: fill it in, drop them, or "
            "name the values of the foreground with foreground=, so that they belong to no group."
        )
    if foreground is None and (alike := _spelt_alike(cases, controls)):
        warn(
            f"Samples with {listed(alike)} in {where} count as foreground: the value differs from the background's "
            "only in case or blanks. If they are background too, spell the values alike.",
            TableWarning,
        )
    labels_of = [cases, *named.values()]
    return Groups.from_items(
        (np.flatnonzero([value in labels for value in own]) for labels in labels_of), ("foreground", *named)
    )


def _as_list(labels: Any) -> list[Any]:
    return list(labels) if isinstance(labels, list | tuple | np.ndarray) else [labels]


def _spelt_alike(cases: list[Any], controls: list[Any]) -> list[Any]:
    known = {spelling(label) for label in controls if isinstance(label, str)}
    return [label for label in cases if isinstance(label, str) and spelling(label) in known]


def matrix_of(
    adata: Any, layer: str | None, obsm: str | None, mask_var: Any
) -> tuple[Any, npt.NDArray[np.bool_] | None, list[str]]:
    """The matrix of an AnnData, which of its columns are used, and their names."""
    by_default = isinstance(mask_var, str) and mask_var == "auto"
    if obsm is not None and (layer is not None or not (mask_var is None or by_default)):
        raise GroupError("obsm= takes the place of genes: leave layer= and mask_var= out.")
    for name, place, argument in ((layer, "layers", "layer"), (obsm, "obsm", "obsm")):
        if name is not None and name not in (known := list(getattr(adata, place).keys())):
            raise GroupError(
                f"{argument}={name!r} is not in adata.{place}, which has {listed(known, MAX_LISTED) or 'nothing'}."
                f"{did_you_mean(name, known)}"
            )
    if obsm is not None:
        matrix = adata.obsm[obsm]
        columns = column_names(matrix)
        names = [f"{obsm}_{j}" for j in range(matrix.shape[1])] if columns is None else list(map(str, columns))
        return np.asarray(matrix) if columns is not None else matrix, None, names
    matrix = adata.X if layer is None else adata.layers[layer]
    if matrix is None:
        raise GroupError("adata has no X: name a layer with layer=, or an array of obsm with obsm=.")
    names = list(map(str, adata.var_names))
    if by_default:
        mask_var = "highly_variable" if "highly_variable" in adata.var.columns else None
    if mask_var is None:
        return matrix, None, names
    what = f"adata.var[{mask_var!r}]" if isinstance(mask_var, str) else "mask_var"
    if isinstance(mask_var, str):
        if mask_var not in (known := list(adata.var.columns)):
            raise GroupError(
                f"mask_var={mask_var!r} is not a column of adata.var, which has "
                f"{listed(known, MAX_LISTED) or 'none'}.{did_you_mean(mask_var, known)}"
            )
        mask_var = adata.var[mask_var]
    mask = np.asarray(aligned(mask_var, adata.var, "mask_var"))  # a Series by the names of the genes
    if mask.shape != (len(names),) or not all(isinstance(own, bool) for own in mask.tolist()):
        raise GroupError(
            f"{what} has type {mask.dtype} and shape {mask.shape}: a mask is True or False for each of the "
            f"{len(names)} genes."
        )
    if not mask.any():
        raise GroupError(f"{what} is False for all {mask.size} genes: nothing is left to analyse.")
    mask = mask.astype(bool)
    return matrix, mask, [name for name, used in zip(names, mask, strict=True) if used]


def _columns_of(rows: Rows, mask: npt.NDArray[np.bool_] | None) -> Rows:
    return rows if mask is None else rows[:, np.flatnonzero(mask)]
