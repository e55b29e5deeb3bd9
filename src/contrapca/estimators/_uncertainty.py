"""What the estimators offer of uncertainty: posterior() and bootstrap()."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from .._array import Array, is_sparse
from .._progress import Progress
from .._validation import check_count, check_positive, check_rows, generator, split_groups
from ..exceptions import ContrastWarning, NonFiniteError, warn
from ..moments import has_holes
from ..posterior import (
    MIN_DRAWS,
    ContrastPosterior,
    GibbsTarget,
    align,
    bootstrap_observed,
    bootstrap_refits,
    sample_frames,
    sample_nuts,
    sample_vectors,
)
from ._base import ContrastEstimator

MIN_SUCCEEDED = 20  # refits, for quantiles to mean anything


class UncertainEstimator(ContrastEstimator):
    """Base of estimators with a Gibbs posterior; not public."""

    def _gamma(self) -> float:
        return float(getattr(self, "gamma_", 0.0))

    def _eigenbasis(self) -> tuple[float, Array, Array]:
        """(N, eigenvalues of C descending, eigenvectors) of the fitted contrast, in model units."""
        check_is_fitted(self)
        if self._source is None:
            raise ValueError(
                "This model was loaded or copied, without the moments of its data. Fit again to draw from the "
                "posterior, or use bootstrap()."
            )
        N, C = self._kept().feature_contrast(self._gamma())
        values, Q = np.linalg.eigh(C)
        return N, values[::-1].copy(), Q[:, ::-1]

    def _posterior(
        self, loadings: Array, sigma2: Array | None, kind: str, method: str, **facts: Any
    ) -> ContrastPosterior:
        """Draws (chains, draws, D, d) in model units, aligned to the estimate and checked."""
        estimate = self._decoder().astype(np.float64)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        result = ContrastPosterior(
            loadings=align(loadings, estimate),
            sigma2=sigma2,
            estimate=estimate,
            mean=self.mean_.astype(np.float64),
            scale=self.scale_.astype(np.float64),
            kind=kind,
            method=method,
            feature_names=[str(name) for name in names],
            **facts,
        )
        if kind == "gibbs":
            result.check()
        return result

    def _gibbs_pcpca(
        self,
        draws: int,
        tune: int,
        chains: int,
        learning_rate: float,
        sigma2_min: float,
        random_state: Any,
        progress: bool,
    ) -> ContrastPosterior:
        _check_sampling(draws, chains, learning_rate)
        if not 0 <= sigma2_min < np.inf:
            raise ValueError(f"sigma2_min={sigma2_min} must be 0 or more.")
        check_count(tune, "tune")
        N, values, Q = self._eigenbasis()
        target = GibbsTarget(N, values, self.components_.shape[0], learning_rate, sigma2_min)
        target.check()
        seed = int(generator(random_state).integers(2**31))
        found = sample_nuts(target, draws, tune, chains, seed, progress=progress)
        return self._posterior(
            Q @ found.V,
            found.sigma2,
            "gibbs",
            "pcpca",
            learning_rate=learning_rate,
            divergences=found.divergences,
        )

    def _gibbs_cpca(
        self, draws: int, tune: int, chains: int, learning_rate: float, random_state: Any, progress: bool
    ) -> ContrastPosterior:
        _check_sampling(draws, chains, learning_rate)
        check_count(tune, "tune")
        _, values, Q = self._eigenbasis()
        random, d = generator(random_state), self.components_.shape[0]
        if d == 1:
            V = sample_vectors(learning_rate * values, chains * draws, random).reshape(chains, draws, -1, 1)
        else:
            total = chains * (draws + tune)
            with Progress("sampling", total, progress) as bar:
                V = np.stack(
                    [
                        sample_frames(
                            learning_rate * values,
                            d,
                            draws,
                            tune,
                            chain,
                            lambda sweep, done=k * (draws + tune): bar.update(done + sweep, "sweeps"),  # type: ignore[misc]
                        )
                        for k, chain in enumerate(random.spawn(chains))
                    ]
                )
        return self._posterior(Q @ V, None, "gibbs", "cpca", learning_rate=learning_rate)

    def bootstrap(
        self,
        X: Any,
        y: Any = None,
        *,
        background: Any = None,
        n: int = 200,
        random_state: Any = None,
        progress: bool = True,
    ) -> ContrastPosterior:
        """Uncertainty from refits, at the same gamma, to rows drawn with replacement within each group.

        It needs no condition on N and no extra library, and takes missing values (PPCA, PCPCA). Scales stay those of
        the fit.

        Parameters
        ----------
        X, y, background
            The rows of the fit, as for `fit`.
        n : int, default 200
            Refits.
        random_state : None, int, Generator or RandomState
        progress : bool, default True
            Show a progress bar on standard error.

        Returns
        -------
        ContrastPosterior
            With one chain; `failures` counts the refits for which gamma was infeasible.

        Examples
        --------
        >>> import numpy as np
        >>> from contrapca import PCPCA
        >>> rng = np.random.default_rng(0)
        >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
        >>> model = PCPCA(1, gamma=0.5).fit(X, background=Y)
        >>> refits = model.bootstrap(X, background=Y, n=100, random_state=0, progress=False)
        >>> refits
        ContrastPosterior(bootstrap, pcpca: 1 x 100 draws, D = 5, d = 1)
        >>> refits.summary()["excludes_zero"].tolist()
        [True, False, False, False, False]
        """
        check_is_fitted(self)
        check_count(n, "n")
        if n < 2:
            raise ValueError(f"n={n} must be 2 or more.")
        validate_data(self, X, reset=False, skip_check_array=True)  # names and number of features
        contrastive = self.background_mean_ is not None
        if contrastive:
            groups = split_groups(
                X, y, background, self.background_label, name=type(self).__name__, needs_background=True
            )
            tables = groups.tables
        elif background is not None:
            raise ValueError("This model was fitted without a background: pass none to bootstrap.")
        else:
            tables = [check_rows(X, type(self).__name__)]
        scales = [self.scale_, self.background_scale_]
        rows = [
            (table.toarray() if is_sparse(table) else table).astype(np.float64) / scale
            for table, scale in zip(tables, scales, strict=False)
        ]
        random, d = generator(random_state), self.components_.shape[0]
        method = getattr(self, "_method", "pcpca")
        with Progress("bootstrap", n, progress) as bar:

            def report(done: int) -> None:
                bar.update(done, "refits")

            if sum(map(has_holes, rows)):  # every table is looked at: infinity is refused
                if method == "cpca":
                    raise NonFiniteError("CPCA takes no missing values. Use PCPCA, or fill them first.", 0, True)
                refits = bootstrap_observed(rows, self._gamma(), self.model_, n, random, report)  # type: ignore[attr-defined]
            else:
                refits = bootstrap_refits(rows, self._gamma(), d, method, n, random, report)
        succeeded = n - refits.failures
        if succeeded < min(MIN_SUCCEEDED, n):
            raise ValueError(
                f"Only {succeeded} of {n} refits were feasible: gamma={self._gamma():.4g} is too close to its limit, "
                "or there are too few rows, for the bootstrap. Use a smaller gamma or fewer components."
            )
        sigma2 = None if method == "cpca" else refits.sigma2[None]
        return self._posterior(refits.loadings[None], sigma2, "bootstrap", method, failures=refits.failures)


class LikelihoodPosterior(UncertainEstimator):
    """posterior() of PPCA and PCPCA; not public."""

    def posterior(
        self,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        learning_rate: float = 1.0,
        sigma2_min: float = 0.0,
        random_state: Any = None,
        progress: bool = True,
    ) -> ContrastPosterior:
        """Draws from the Gibbs posterior of (W, sigma2), by NUTS; complete data only.

        Its density is exp(learning_rate * objective) under a flat prior, a true posterior for gamma = 0. It depends on
        the rows through N and C alone, so that its cost does not grow with their number. It exists where learning_rate
        times N = n (1 - gamma) exceeds D + d - 1; other requests are refused, with the way out. Where N is not much
        larger than D, the flat prior draws W outwards: then trust directions (`angles`, `projector`) more than lengths.

        Parameters
        ----------
        draws, tune, chains : int
            Draws kept and discarded in each chain, and chains.
        learning_rate : float, default 1.0
            How much the data count: intervals shrink with its square root. With gamma > 0 there is no likelihood that
            would fix it; `contrapca.calibrate_learning_rate` finds the one at which intervals cover.
        sigma2_min : float, default 0.0
            Lower bound of the noise variance, in scaled units.
        random_state : None, int, Generator or RandomState
            The same draws for the same seed, on any number of cores.
        progress : bool, default True
            Show a progress bar on standard error.

        Returns
        -------
        ContrastPosterior
        """
        return self._gibbs_pcpca(draws, tune, chains, learning_rate, sigma2_min, random_state, progress)


class DirectionPosterior(UncertainEstimator):
    """posterior() of CPCA; not public."""

    def posterior(
        self,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        learning_rate: float = 1.0,
        random_state: Any = None,
        progress: bool = True,
    ) -> ContrastPosterior:
        """Draws from the Gibbs posterior of V, a matrix Bingham distribution; complete data only.

        Its density is exp(learning_rate tr V'C V) on orthonormal frames; it is always proper. Draws are exact and
        independent for one component (`tune` is not used then), by column-wise Gibbs sampling for more.

        Parameters
        ----------
        draws, tune, chains : int
            Draws kept and discarded in each chain, and chains.
        learning_rate : float, default 1.0
            How much the data count; it has the unit 1 / variance of the features, so nothing makes 1 a natural choice.
            `contrapca.calibrate_learning_rate` finds the one at which intervals cover.
        random_state : None, int, Generator or RandomState
        progress : bool, default True
            Show a progress bar on standard error.

        Returns
        -------
        ContrastPosterior

        Examples
        --------
        >>> import numpy as np
        >>> from contrapca import CPCA
        >>> rng = np.random.default_rng(0)
        >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
        >>> draws = CPCA(1, gamma=0.5).fit(X, background=Y).posterior(random_state=0)
        >>> draws
        ContrastPosterior(gibbs, cpca: 4 x 1000 draws, D = 5, d = 1)
        >>> draws.angles().shape
        (4, 1000, 1)
        """
        return self._gibbs_cpca(draws, tune, chains, learning_rate, random_state, progress)


def _check_sampling(draws: int, chains: int, learning_rate: float) -> None:
    check_count(draws, "draws")
    check_count(chains, "chains")
    if draws < MIN_DRAWS:
        raise ValueError(f"draws={draws} must be {MIN_DRAWS} or more, for chains to be compared.")
    check_positive(learning_rate, "learning_rate")


def calibrate_learning_rate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    background: Any = None,
    n: int = 200,
    draws: int = 500,
    rounds: int = 2,
    random_state: Any = None,
    progress: bool = True,
) -> float:
    """The learning rate at which the Gibbs posterior is as wide as the sampling distribution.

    Spread is measured by the mean squared sine of the principal angles between a subspace and the fitted one, which is
    proportional to 1 / learning_rate for concentrated posteriors: that of the draws is made equal to that of
    `model.bootstrap`, so that credible regions of the subspace cover as often as they should.

    Parameters
    ----------
    model : fitted PPCA, PCPCA or CPCA
    X, y, background
        The rows of the fit.
    n : int, default 200
        Bootstrap refits.
    draws : int, default 500
        Draws in each of 4 chains and each round.
    rounds : int, default 2
        Posteriors that are drawn; each corrects the learning rate once.
    random_state : None, int, Generator or RandomState
    progress : bool, default True

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from contrapca import CPCA, calibrate_learning_rate
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(150, 5))
    >>> model = CPCA(1, gamma=0.5).fit(X, background=Y)
    >>> w = calibrate_learning_rate(model, X, background=Y, draws=100, random_state=0, progress=False)
    >>> draws = model.posterior(learning_rate=w, random_state=0)
    >>> refits = model.bootstrap(X, background=Y, random_state=0, progress=False)
    >>> bool(0.7 < draws.angles().mean() / refits.angles().mean() < 1.4)  # equally wide
    True
    """
    check_count(rounds, "rounds")
    model._eigenbasis()  # refuses models without data, before anything long
    random = generator(random_state)
    refits = model.bootstrap(X, y, background=background, n=n, random_state=random, progress=progress)
    wanted = float(np.mean(np.sin(refits.angles()) ** 2))
    rate = wide = _first_rate(model)
    for _ in range(rounds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ContrastWarning)  # few draws are enough for a mean
            posterior = model.posterior(
                draws=draws, tune=draws, learning_rate=rate, random_state=random, progress=progress
            )
        wide = rate * float(np.mean(np.sin(posterior.angles()) ** 2)) / wanted
        rate = max(wide, _least_rate(model))
    if rate > wide:
        warn(
            f"Intervals would cover at learning_rate={wide:.3g}, but the posterior and its variances exist from "
            f"{rate:.3g} on only, which is returned: its intervals are too narrow. Use a smaller gamma or fewer "
            "components, or take intervals from bootstrap()."
        )
    return rate


def _least_rate(model: Any) -> float:
    """The least learning rate for which the posterior of PPCA or PCPCA and its variances exist; 0 for CPCA."""
    if not hasattr(model, "model_"):
        return 0.0
    d, D = model.components_.shape
    return float((D + d + 4) / model.n_effective_)


def _first_rate(model: Any) -> float:
    """A rate to start from: 1 where it is proper; for CPCA the inverse of its noise, half the mean of what is left."""
    if hasattr(model, "model_"):
        return max(1.0, _least_rate(model))
    left = float(model.feature_variance_.sum() - model.explained_variance_.sum())
    return 0.5 * (model.components_.shape[1] - model.components_.shape[0]) / max(left, np.finfo(float).tiny)
