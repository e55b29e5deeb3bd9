"""Contrastive PCA in the feature space of a kernel."""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._checks import SCALES, check_count, check_gamma, check_n_components, check_option, check_positive
from .._util.archive import write_archive
from .._util.arrays import Array
from .._util.devices import on_device
from .._util.display import Display
from .._util.suggest import suggesting
from .._util.text import format_gamma, plural
from ..exceptions import NonFiniteError
from ..fitting import KernelFit, KernelSettings, fit_kernel, kernel_values, map_of
from ..groups import Groups, Tables, canonical, column_means, distinct, refuse_moments, split_groups, without_mask
from ..moments import KERNELS, Indices
from ..rows import Blocked, opened
from ..saving import REGISTRY, kernel_fit_from_saved, saved_kernel_fit, saved_model
from ._base import of_backgrounds
from ._display import component_table, html_inner, mimebundle

MANY = 2**31  # more components than any table has


@suggesting
class KernelCPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Contrastive PCA of nonlinear features: functions of a row that vary in the foreground, not in the background.

    A kernel k(x, z) is the inner product of x and z in a space of features, for example of all products of features
    ("poly") or of smooth bumps around every row ("rbf"). Maximises the variance of the foreground minus gamma times
    that of the background there, each group about its own mean, as `CPCA` does in the space of the table. With
    kernel="linear" it is CPCA. It finds structure of the cases that no direction of the table shows, such as rings or
    a variance that depends on another feature; but its components have no loadings, so that nothing says which features
    they are made of.

    The model keeps rows of the fit (the landmarks), and so do its files: they hold data of single samples.

    Parameters
    ----------
    n_components : int, default 2
        Number of components d.
    kernel : {"rbf", "poly", "linear", "precomputed"}, default "rbf"
        `exp(-|x - z|^2 / (2 bandwidth^2))`, `(x'z / bandwidth^2 + coef0)^degree`, `x'z`, or values in place of rows.
        Of "poly", rows are measured from the mean of the groups' means.
    gamma : float, dict or "auto", default "auto"
        Strength of the contrast, as for `CPCA`: 0 is kernel PCA of the foreground; "auto" is 1.5, or half the limit if
        that is not below it.
        In scikit-learn's kernels `gamma` is 1 / (2 bandwidth^2) ("rbf") or 1 / bandwidth^2 ("poly"); here it is the
        contrast in every estimator, and kernels have a bandwidth, which has the units of the features.
    bandwidth : float or "auto", default "auto"
        "auto" is the median distance of two rows of the same group, divided by the root of 2. Not used by "linear" and
        "precomputed".
    degree : int, default 2
        Of "poly".
    coef0 : float, default 1.0
        Of "poly", 0 or more. The larger it is, the less products of features count.
    n_landmarks : int, "auto" or None, default "auto"
        How many rows span the space in which components are searched (the Nystroem method). They are chosen at random,
        equally many of each group if possible; all rows if there are fewer. None is all rows, which is exact, with the
        memory and time of matrices of order n + m. "auto" is 1000.
    background_label : optional
        Rows with `y == background_label` are the background: for stacked tables, as in pipelines and grid searches.
    scale : {None, "group", "pooled"}, default None
        As for `CPCA`. A kernel compares all features at once: use "pooled" unless they have common units.
    random_state : None, int, Generator or RandomState, default 0
        Which rows are landmarks.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (d,)
        Largest eigenvalues of the contrast: `explained_variance_ - gamma_ * background_variance_`.
    explained_variance_, background_variance_ : ndarray of shape (d,)
        Variance (ddof 0) of each group along each component. With several backgrounds the latter is a dict, by name.
    explained_variance_ratio_, background_variance_ratio_ : ndarray of shape (d,)
        The same as fractions of each group's total variance in the landmarks' span.
    gamma_ : float
        The gamma that was used, of all backgrounds together.
    bandwidth_ : float
    n_landmarks_ : int
        Rows that span the space, r: without those that are combinations of others.
    dual_coef_ : ndarray of shape (r, d)
        The latents of a row are `k(row, landmarks) @ dual_coef_`, minus those of the mean.

    Notes
    -----
    With kernel="precomputed", K is the square matrix of kernel values of all cases, then all controls (backgrounds in
    their order), with each other. Pass `fit(K[:n], background=K[n:])`, or, with `background_label`, the whole of K in
    any order of the rows, and `y`. `transform` takes values of new rows with all rows of the fit, shape (rows, n + m),
    columns in the order of the fit.

    Examples
    --------
    Cases lie near the centre or on a ring around it; controls are between them, with the same covariance.

    >>> import numpy as np
    >>> from contrapca import KernelCPCA
    >>> rng = np.random.default_rng(0)
    >>> angle, ring = rng.uniform(0, 2 * np.pi, 300), rng.random(300) < 0.3
    >>> radius = np.where(ring, 3.0, 0.5)[:, None]
    >>> cases = radius * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.2 * rng.normal(size=(300, 2))
    >>> controls = cases.std() * rng.normal(size=(300, 2))
    >>> model = KernelCPCA(n_components=1).fit(cases, background=controls)
    >>> latents = model.transform(cases)[:, 0]
    >>> bool(abs(np.corrcoef(latents, ring)[0, 1]) > 0.9)
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str = "rbf",
        gamma: float | str | dict[str, float] = "auto",
        bandwidth: float | str = "auto",
        degree: int = 2,
        coef0: float = 1.0,
        n_landmarks: int | str | None = "auto",
        background_label: Any = None,
        scale: str | None = None,
        random_state: Any = 0,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.bandwidth = bandwidth
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.background_label = background_label
        self.scale = scale
        self.random_state = random_state

    _repr_html_inner, _repr_mimebundle_ = html_inner, mimebundle

    def fit(
        self, X: Any, y: Any = None, *, background: Any = None, sample_weight: Any = None, background_weight: Any = None
    ) -> Self:
        """Fit to a foreground and a background.

        Parameters
        ----------
        X, y, background, sample_weight, background_weight
            As for `CPCA`: tables in memory without missing values, dense or sparse. For kernel="precomputed" see Notes.

        Returns
        -------
        self
        """
        gamma, settings = check_gamma(self.gamma), self._settings()
        d = check_n_components(self.n_components, MANY)
        tables, columns = self._tables(X, y, background, sample_weight, background_weight, needed=gamma != 0)
        fit = fit_kernel(tables, columns, settings, d, gamma)
        validate_data(self, opened(X), skip_check_array=True)
        return self._with_fit(fit)

    def _settings(self) -> KernelSettings:
        """The checked parameters of the kernel."""
        check_option(self.kernel, "kernel", KERNELS)
        check_option(self.scale, "scale", SCALES)
        check_count(self.degree, "degree")
        automatic = isinstance(self.bandwidth, str) and self.bandwidth == "auto"
        if not automatic:
            check_positive(self.bandwidth, "bandwidth")
        if not isinstance(self.coef0, numbers.Real) or not 0 <= float(self.coef0) < np.inf:
            raise ValueError(f"coef0={self.coef0!r} must be a finite number, 0 or more: others are no kernel.")
        if isinstance(self.n_landmarks, str):
            check_option(self.n_landmarks, "n_landmarks", ("auto",))
        elif self.n_landmarks is not None:
            check_count(self.n_landmarks, "n_landmarks", least=2)
        if self.kernel == "precomputed" and self.scale is not None:
            raise ValueError(f"scale={self.scale!r} needs features, and a precomputed kernel has none: use scale=None.")
        return KernelSettings(
            kernel=self.kernel,
            bandwidth=None if automatic else float(self.bandwidth),
            degree=int(self.degree),
            coef0=float(self.coef0),
            n_landmarks=self.n_landmarks,
            scale=self.scale,
            random_state=self.random_state,
        )

    def _tables(
        self, X: Any, y: Any, background: Any, sample_weight: Any, background_weight: Any, *, needed: bool
    ) -> tuple[Tables, Groups[Indices] | None]:
        """The checked tables, and the columns that their rows are if they are kernel values."""
        name, given = type(self).__name__, self.kernel == "precomputed"
        try:
            tables = split_groups(
                X,
                y,
                background,
                self.background_label,
                name=name,
                needs_background=needed,
                sample_weight=sample_weight,
                background_weight=background_weight,
                gamma=self.gamma,
            )
        except NonFiniteError as error:
            raise _in_kernel(error) if given else error from None
        for rows in tables.rows:
            check_in_memory(rows, name)
        return kernel_values(tables, y, self.background_label) if given else (tables, None)

    def _coordinates(self, X: Any, background: Any) -> tuple[Array, dict[str, Array]]:
        """Rows in coordinates of the feature space, those of the foreground and of each background."""
        tables, columns = self._tables(X, None, background, None, None, needed=True)
        mapped = map_of(tables, columns, self._settings())
        found = tables.rows.map(mapped.coordinates, mapped.units)
        return found.foreground, dict(zip(found.names[1:], found.backgrounds, strict=True))

    def _with_fit(self, fit: KernelFit) -> Self:
        """Set the attributes of a fit, with arrays in the float type of the foreground."""
        dtype = fit.units.foreground.dtype
        self._state, self._parameters = fit, self.get_params(deep=False)
        self.gamma_, self.bandwidth_, self.n_landmarks_ = fit.gamma, fit.kernel.bandwidth, fit.coefficients.shape[0]
        self.eigenvalues_ = fit.eigenvalues.astype(dtype, copy=False)
        self.explained_variance_ = fit.variances.foreground.astype(dtype, copy=False)
        self.explained_variance_ratio_ = fit.shares.foreground.astype(dtype, copy=False)
        self.background_variance_ = of_backgrounds(fit.variances, dtype)
        self.background_variance_ratio_ = of_backgrounds(fit.shares, dtype)
        self.dual_coef_ = fit.coefficients.astype(dtype, copy=False)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self._state.coefficients.shape[1])

    @property
    def gammas_(self) -> dict[str, float]:
        """The gamma of each background by name; they add up to `gamma_`."""
        check_is_fitted(self)
        return self._state.gammas

    def transform(self, X: Any, *, center: str = "foreground") -> Array:
        """Latent coordinates of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
            For kernel="precomputed", kernel values of new rows (n, rows of the fit).
        center : {"foreground", "background"} or the name of one of several backgrounds
            The group whose mean (and scale) counts: "foreground" for foreground and new rows.

        Returns
        -------
        Z : ndarray of shape (n, d), in the float type of `X`
        """
        check_is_fitted(self)
        check_in_memory(X, type(self).__name__)
        refuse_moments(X, type(self).__name__, "X")
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
        rows = canonical(validate_data(self, without_mask(distinct(X)), reset=False, **checks))
        column_means(rows)  # raises where values are not finite
        return self._state.latents(rows, center).astype(rows.dtype, copy=False)

    def summary(self) -> Display:
        """What the fit found: settings, and variances along the components.

        Returns
        -------
        Display
            Printed as text, shown as HTML in a notebook.
        """
        check_is_fitted(self)
        kernel, (r, d) = self._state.kernel, self._state.coefficients.shape
        width = f" of bandwidth {kernel.bandwidth:.4g}" if kernel.name in ("rbf", "poly") else ""
        return Display(
            f"{type(self).__name__} with {plural(d, 'component')}, kernel {kernel.name!r}{width}, "
            f"{plural(r, 'landmark')}, gamma = {format_gamma(self.gamma_)}",
            component_table(self),
        )

    # ------------------------------------------------------------------ saving

    _saved_fit = staticmethod(saved_kernel_fit)

    def save(self, path: Any) -> None:
        """Write the fitted model, its landmark rows included, to a file that `contrapca.load` reads.

        Parameters
        ----------
        path : str or path-like
            Written atomically; an existing file is overwritten.
        """
        check_is_fitted(self)
        write_archive(path, **saved_model(self))

    @classmethod
    def from_saved(cls, facts: dict[str, Any], arrays: dict[str, Any], names: tuple[str, ...] | None) -> Self:
        """A fitted model from the checked contents of a saved file."""
        model, fit = cls(**facts["parameters"]), kernel_fit_from_saved(facts, arrays, names)
        model.n_features_in_ = fit.origin.size
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        return model._with_fit(fit)


REGISTRY["KernelCPCA"] = KernelCPCA


def check_in_memory(X: Any, name: str) -> None:
    """Raise for rows that are in a file, on a cluster or on a device."""
    if isinstance(opened(X), Blocked) or on_device(X):
        raise TypeError(
            f"{name} needs rows in memory, as NumPy arrays: for example X[:] for a file, X.compute() for "
            "dask, X.cpu().numpy() for torch."
        )


def _in_kernel(error: NonFiniteError) -> ValueError:
    return ValueError(
        f"The precomputed kernel has a value that is not finite in column {error.feature}, counting from 0: compute it "
        "from complete rows, or drop this row and column."
    )
