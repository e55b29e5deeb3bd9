"""Contrastive PCA in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils.validation import validate_data

from .._checks import check_gamma, check_n_components
from .._util.arrays import Array
from ..fitting import (
    KernelFit,
    KernelSettings,
    fit_kernel,
    kernel_tables,
    map_of,
    refuse_covariates,
)
from ..groups import Groups, Tables
from ..moments import Indices
from ..rows import as_rows
from ..saving import kernel_fit_from_saved, saved_kernel_fit
from ._base import Decomposition
from ._cpca import CPCA, Contrastive

MANY = 2**31  # more components than any table has


class KernelCPCA(Decomposition):
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
    background_label, scale
        As for `PCPCA`. A kernel compares all features at once: use "pooled" unless they have common units.
    random_state : None, int, Generator or RandomState, default 0
        Which rows are landmarks.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (d,)
        Largest eigenvalues of the contrast: `explained_variance_ - gamma_ * background_variance_`.
    explained_variance_, background_variance_, explained_variance_ratio_, background_variance_ratio_, gamma_, gammas_
        As for `CPCA`; ratios are fractions of each group's total variance in the landmarks' span.
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
        self._keep(locals())

    scale: str | None
    gammas_ = Contrastive.gammas_
    _linear = _takes_missing = _takes_devices = _resampled = False
    _saved_fit, _restored_fit = staticmethod(saved_kernel_fit), staticmethod(kernel_fit_from_saved)

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, *, background: Any = None, sample_weight: Any = None, background_weight: Any = None
    ) -> Self:
        """Fit to a foreground and a background.

        Parameters
        ----------
        X, y, background, sample_weight, background_weight
            As for `CPCA`: tables in memory without missing values, dense or sparse. For kernel="precomputed" see Notes.
        """
        gamma, settings = check_gamma(self.gamma), self._kernel_settings()
        d = check_n_components(self.n_components, MANY)
        weights = {"sample_weight": sample_weight, "background_weight": background_weight}
        tables, columns = self._tables(settings, X, y, background, needs_background=gamma != 0, **weights)
        fit = fit_kernel(tables, columns, settings, d, gamma)
        validate_data(self, as_rows(X), skip_check_array=True)
        return self._with_fit(fit)

    def _kernel_settings(self) -> KernelSettings:
        kernel = (self.kernel, self.bandwidth, self.degree, self.coef0)
        return KernelSettings(*kernel, self.n_landmarks, self.scale, self.random_state)

    def _tables(self, *given: Any, **asked: Any) -> tuple[Tables, Groups[Indices] | None]:
        asked |= {"background_label": self.background_label, "name": type(self).__name__, "gamma": self.gamma}
        return kernel_tables(*given, **asked)

    def _to_hold_out(
        self, X: Any, background: Any, covariates: Sequence[Any], **weights: Any
    ) -> tuple[CPCA, Array, dict[str, Array]]:
        """CPCA in coordinates of the feature space, which need no rows to be held out."""
        refuse_covariates(*covariates)
        gamma = clone(self).fit(X, background=background, **weights)._state.strength
        settings = self._kernel_settings()
        tables, columns = self._tables(settings, X, None, background, needs_background=True)
        mapped = map_of(tables, columns, settings)
        found = tables.rows.map(mapped.coordinates, mapped.units)
        backgrounds = dict(zip(found.names[1:], found.backgrounds, strict=True))
        return CPCA(self.n_components, gamma=gamma), found.foreground, backgrounds

    def _attributes(self, fit: KernelFit) -> dict[str, Any]:
        found: dict[str, Any] = {"gamma_": fit.gamma, "bandwidth_": fit.kernel.bandwidth}
        found |= {"dual_coef_": fit.coefficients, "n_landmarks_": fit.coefficients.shape[0]}
        return found | super()._attributes(fit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
