"""Tables on a GPU: the same numbers as NumPy's, and how fast. python -m benchmarks.gpu [--rounds 7] [--only NAME ...].

Needs torch with CUDA; cupy is checked too where it is installed. Takes about four minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import os
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from contrapca import CLVM, CPCA, PCPCA, PPCA, ContraPCA, Moments, RatioPCA, contrast_path, gamma_limits
from contrapca._util import arrays
from contrapca._util.arrays import host
from contrapca.contrast import _eigen as _spectral
from contrapca.data._groups import Groups
from contrapca.data.rows import _array_api
from contrapca.data.rows._storage import storage
from contrapca.moments._contrast import contrast

from .timing import Bound, Case, spread
from .timing import run as run_case

DEVICE = "cuda"
N, D, d, GAMMA = 500_000, 2000, 10, 0.3  # rows of each group, features, components
POINTS = 100  # gammas of a path
HUGE = 10_000, 12_000  # rows and features without a scatter matrix


def compat() -> str:
    """Make array_api_compat importable: the installed one, or scikit-learn's copy where nothing can be installed."""
    try:
        found = importlib.import_module("array_api_compat")
    except ModuleNotFoundError:
        found = importlib.import_module("sklearn.externals.array_api_compat")
        sys.modules["array_api_compat"] = found
    return f"array-api-compat {found.__version__} ({found.__name__})"


def versions(torch: Any) -> str:
    names = ["numpy", "scipy", "sklearn", "torch", "cupy", "contrapca"]
    found = [f"{name} {importlib.import_module(name).__version__}" for name in names if _there(name)]
    device = f"{torch.cuda.get_device_name(0)}, CUDA {torch.version.cuda}" if torch.cuda.is_available() else "no GPU"
    return f"Python {platform.python_version()}, {', '.join(found)}, {compat()}; {device}; {os.cpu_count()} CPU cores"


def _there(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


# ---------------------------------------------------------------------- the same numbers


def groups(n: int, m: int, width: int, seed: int = 0) -> tuple[Any, Any]:
    """Cases with two directions of their own, and one that the controls share."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((width, 3)))[0]
    X, Y = rng.standard_normal((n, width)) + 3, rng.standard_normal((m, width))
    X += rng.standard_normal((n, 3)) * [5, 4, 3] @ U.T
    Y += 5 * np.outer(rng.standard_normal(m), U[:, 0])
    return X, Y


def places(torch: Any) -> dict[str, Callable[[Any], Any]]:
    """From NumPy to every library and device that is here."""
    found: dict[str, Callable[[Any], Any]] = {"torch, cpu": torch.asarray}
    if torch.cuda.is_available():
        found["torch, cuda"] = lambda table: torch.asarray(table, device="cuda")
    with contextlib.suppress(Exception):
        cupy = importlib.import_module("cupy")
        cupy.ones(1) @ cupy.ones(1)
        found["cupy"] = cupy.asarray
    return found


@contextlib.contextmanager
def leaving(torch: Any) -> Iterator[list[int]]:
    """Numbers in each torch array that is copied to the host inside the block."""
    sizes: list[int] = []
    before = torch.Tensor.cpu

    def cpu(self: Any, *given: Any, **options: Any) -> Any:
        sizes.append(self.numel())
        return before(self, *given, **options)

    torch.Tensor.cpu = cpu
    try:
        yield sizes
    finally:
        torch.Tensor.cpu = before


def same_numbers(torch: Any) -> Iterator[str]:
    """One line for every estimator and library: the largest relative difference to NumPy."""
    tall, wide, many = groups(1500, 1200, 60), groups(60, 50, 400), groups(3000, 2500, 600)
    cases = {
        "PCPCA": (PCPCA(2, gamma=0.3), tall, 1e-9),
        "PCPCA, auto, pooled": (PCPCA(2, scale="pooled"), tall, 1e-9),
        "ContraPCA": (ContraPCA(2), tall, 1e-9),
        "ContraPCA, 600 features": (ContraPCA(2), many, 1e-9),
        "ContraPCA, wide": (ContraPCA(2), wide, 1e-9),
        "CPCA": (CPCA(2, gamma=2.0), tall, 1e-9),
        "CPCA, auto": (CPCA(2), tall, 1e-7),
        "PPCA": (PPCA(2), (tall[0], None), 1e-9),
        "PCPCA, lanczos": (PCPCA(2, gamma=0.3, solver="lanczos"), tall, 1e-9),
        "RatioPCA": (RatioPCA(2), tall, 1e-9),
        "RatioPCA, orthogonal, both ends, no ridge": (RatioPCA(3, ridge=0, end="both", orthogonal=True), tall, 1e-9),
        "RatioPCA, wide": (RatioPCA(2), wide, 1e-9),
        "CLVM": (CLVM(2, 2), tall, 1e-5),
        "PCPCA, float32": (PCPCA(2, gamma=0.3), tuple(table.astype(np.float32) for table in tall), 1e-4),
    }
    yield "| largest difference to NumPy | " + " | ".join(places(torch)) + " | bound | |"
    yield "|---" * (len(places(torch)) + 3) + "|"
    for name, (estimator, (X, Y), bound) in cases.items():
        here = _fitted(estimator, X, Y)
        found = []
        for put in places(torch).values():
            try:
                found.append(_difference(here, _fitted(estimator, put(X), None if Y is None else put(Y)), put, X, Y))
            except Exception:
                traceback.print_exc()
                found.append(np.nan)
        verdict = "ok" if max(found) <= bound else "MISSED"
        yield f"| {name} | " + " | ".join(f"{value:.1e}" for value in found) + f" | {bound:.0e} | {verdict} |"
    X, Y = tall
    limits, path = gamma_limits(X, background=Y), contrast_path(PCPCA(2), X, background=Y, gammas=20)
    for label, put in places(torch).items():
        other = gamma_limits(put(X), background=put(Y))
        far = max(abs(other.gamma[key] / value - 1) for key, value in limits.gamma.items())
        again = contrast_path(PCPCA(2), put(X), background=put(Y), gammas=20)
        latents = np.abs(host(again.latents(put(X))) - path.latents(X)).max()
        yield f"| limits and path, {label} | {far:.1e} | {latents:.1e} | | {_verdict(max(far, latents / 10) <= 1e-7)} |"


def _fitted(estimator: Any, X: Any, Y: Any) -> Any:
    return clone(estimator).fit(X) if Y is None else clone(estimator).fit(X, background=Y)


def _difference(here: Any, away: Any, put: Callable[[Any], Any], X: Any, Y: Any) -> float:
    """The largest difference of attributes and results, relative to the largest number; other kinds are an error."""
    given = put(X)
    pairs = [(getattr(away, name), getattr(here, name)) for name in ("components_", "mean_", "explained_variance_")]
    Z = here.transform(X)
    pairs += [(away.transform(given), Z), (away.inverse_transform(put(Z)), here.inverse_transform(Z))]
    if hasattr(here, "score_samples"):
        pairs.append((away.score_samples(given), here.score_samples(X)))
        pairs += list(zip(away.latent_posterior(given), here.latent_posterior(X), strict=True))
        pairs.append((away.sample(5, random_state=0), here.sample(5, random_state=0)))
        assert abs(away.score(given) - here.score(X)) < 1e-3 * abs(here.score(X))
    if hasattr(here, "contrast_score") and Y is not None:
        pairs.append((away.contrast_score(given), here.contrast_score(X)))
    worst = 0.0
    for found, expected in pairs:
        assert type(found) is type(given), (type(found), type(given))
        assert found.device == given.device
        assert str(found.dtype).endswith(str(expected.dtype))
        worst = max(worst, float(np.nanmax(np.abs(host(found) - expected)) / max(1.0, np.nanmax(np.abs(expected)))))
    return worst


def refusals(torch: Any) -> Iterator[str]:
    """What must be refused, with the sentence."""
    X, Y = map(torch.asarray, groups(50, 40, 6))
    tries = {"half": (X.half(), Y.half()), "bfloat16": (X.bfloat16(), Y.bfloat16()), "NumPy background": (X, Y.numpy())}
    tries |= {"sparse": (X.to_sparse(), Y), "complex": (X.to(torch.complex128), Y)}
    if torch.cuda.is_available():
        tries["two devices"] = X.cuda(), Y
    for name, (cases, controls) in tries.items():
        try:
            PCPCA(2).fit(cases, background=controls)
            yield f"- {name}: NOT REFUSED"
        except (TypeError, ValueError) as error:
            yield f"- {name}: {type(error).__name__}: {error}"


# ---------------------------------------------------------------------- speed


def large(torch: Any, n: int, width: int, kind: Any = None) -> tuple[Any, Any]:
    """Cases and controls on the GPU, float32, with directions of their own."""
    torch.manual_seed(0)
    like = {"device": DEVICE, "dtype": kind or torch.float32}
    U = torch.linalg.qr(torch.randn(width, 20, **like))[0]
    X, Y = torch.randn(n, width, **like), torch.randn(n, width, **like)
    X += (torch.randn(n, 20, **like) * torch.linspace(6, 2, 20, **like)) @ U.T
    Y += (torch.randn(n, 10, **like) * torch.linspace(6, 3, 10, **like)) @ U[:, :10].T
    return X, Y


def synced(torch: Any, call: Callable[[], object]) -> Callable[[], object]:
    def timed() -> object:
        found = call()
        torch.cuda.synchronize()
        return found

    return timed


def seconds(torch: Any, call: Callable[[], object], rounds: int = 3) -> list[float]:
    """Times of the call, after one that is not counted."""
    whole, times = synced(torch, call), []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        whole()
        times.append(time.perf_counter() - start)
    return times[1:]


def one_fit(torch: Any, rounds: int) -> Iterator[str]:
    """1,000,000 x 2000 in two halves."""
    X, Y = large(torch, N, D)
    limit = PCPCA(d).fit(X, background=Y).gamma_max_
    gammas = np.linspace(0, 0.99 * limit, POINTS)
    means = [host(table.mean(dim=0).double()) for table in (X, Y)]
    calls: dict[str, Callable[[], object]] = {
        "torch, X'X and Y'Y": lambda: (X.T @ X, Y.T @ Y),
        "contrapca, scatters": lambda: [storage(t).scatter(t, mean) for t, mean in zip((X, Y), means, strict=True)],
        "contrapca, sums": lambda: [storage(table).column_sums(table) for table in (X, Y)],
        "contrapca PCPCA, gamma 0.3": lambda: PCPCA(d, gamma=GAMMA).fit(X, background=Y),
        "contrapca PCPCA, gamma auto": lambda: PCPCA(d).fit(X, background=Y),
        "contrapca ContraPCA, gamma 0.3": lambda: ContraPCA(d, gamma=GAMMA).fit(X, background=Y),
        "contrapca ContraPCA, gamma auto": lambda: ContraPCA(d).fit(X, background=Y),
        f"contrapca, path of {POINTS} gammas": lambda: contrast_path(PCPCA(d), X, background=Y, gammas=gammas),
    }
    bounds = [
        Bound("contrapca PCPCA, gamma 0.3", "torch, X'X and Y'Y", 1.4),
        Bound("contrapca ContraPCA, gamma auto", "torch, X'X and Y'Y", 2.5),
        Bound(f"contrapca, path of {POINTS} gammas", "contrapca PCPCA, gamma 0.3", 3.0),
    ]
    calls = {name: synced(torch, call) for name, call in calls.items()}
    for call in calls.values():
        call()  # warm up
    name = f"{N:,} + {N:,} x {D:,}, float32, d = {d}; limit {limit:.3f}"
    yield f"| {name} | minimum, s | max / min | ratio to the bare products |"
    yield "|---|---:|---:|---:|"
    yield from run_case(Case(name, calls, ["torch, X'X and Y'Y"], bounds), rounds)
    with leaving(torch) as sizes:
        model = ContraPCA(d).fit(X, background=Y)
        model.transform(X), model.score_samples(X)
    yield f"| largest copy to the host in a fit of ContraPCA, transform and score: {max(sizes):,} numbers | | | |"
    solved = contrast_path(PCPCA(d), X, background=Y, gammas=gammas).solved
    yield f"| n_latent {model.n_latent_}; path solved exactly at {solved} gammas | | | |"
    for label, call in (
        ("transform", lambda: model.transform(X)),
        ("score_samples", lambda: model.score_samples(X)),
        ("contrast_score", lambda: model.contrast_score(X)),
    ):
        times = seconds(torch, call)
        yield f"| {label} of {N:,} rows | {min(times):.3f} | {spread(times):.1f} | |"
    parts = storage(X).scatter(X, means[0])
    centred = X.double() - torch.asarray(means[0], device=DEVICE)
    exact = centred.T @ centred
    error = float((parts - exact).abs().max() / exact.abs().max())
    yield f"| scatter against one product in float64, relative difference | {error:.1e} | | |"
    del centred, parts
    times = seconds(torch, lambda: torch.linalg.eigh(exact))
    yield f"| torch.linalg.eigh, order {D}, float64 | {min(times):.4f} | {spread(times):.1f} | |"
    times = seconds(torch, lambda: torch.linalg.eigvalsh(exact))
    yield f"| torch.linalg.eigvalsh | {min(times):.4f} | {spread(times):.1f} | |"


def tuning(torch: Any) -> Iterator[str]:
    """Which blocks and how many parts are fastest here; the constants of rows/_array_api.py."""
    X, _ = large(torch, N, D)
    mean = storage(X).column_sums(X) / X.shape[0]
    before = _array_api.COLUMN_PARTS, _array_api.BLOCK_BYTES
    bare = min(seconds(torch, lambda: X.T @ X))
    yield f"| scatter of {N:,} x {D:,}, s (X'X {bare:.3f}) | " + " | ".join(f"{p} parts" for p in (1, 2, 4, 8)) + " |"
    yield "|---|---:|---:|---:|---:|"
    for size in (64, 256, 1024):
        found = []
        for count in (1, 2, 4, 8):
            _array_api.COLUMN_PARTS, _array_api.BLOCK_BYTES = count, size * 2**20
            found.append(min(seconds(torch, lambda: storage(X).scatter(X, mean))))
        yield f"| blocks of {size} MiB | " + " | ".join(f"{value:.4f}" for value in found) + " |"
    _array_api.COLUMN_PARTS, _array_api.BLOCK_BYTES = before


def steps(torch: Any) -> Iterator[str]:
    """What the steps of a path cost: eigenvectors directly and by Lanczos, small problems there and on the host."""
    X, Y = large(torch, N, D)
    data = groups_of(X, Y)
    for gamma in (GAMMA, 0.9):
        C = contrast(data, gamma)
        for count in (d, d + 4):
            direct = min(seconds(torch, lambda C=C, count=count: _spectral._direct(C, count)))  # type: ignore[misc]
            yield f"| gamma {gamma}, {count} eigenpairs, directly | {1000 * direct:.1f} ms | |"
            for restarts in (3, 10):
                try:
                    call = functools.partial(_spectral._lanczos, C, count, None, _spectral.TIGHT, restarts)
                    products = call().n_iter
                    found = min(seconds(torch, call))
                    yield f"| by Lanczos, {restarts} restarts, {products} products | {1000 * found:.1f} ms | |"
                    break
                except _spectral.Unconverged as failure:
                    start = time.perf_counter()
                    with contextlib.suppress(_spectral.Unconverged):
                        call()
                    lost = time.perf_counter() - start
                    yield f"| Lanczos, {restarts} restarts: {failure} | {1000 * lost:.1f} ms | |"
    matrix, v = C.dense(), np.ones((D, 1))
    one = min(seconds(torch, lambda: [host(matrix @ arrays.put(v, matrix)) for _ in range(100)])) / 100
    yield f"| one product with C, vector there and back | {1e6 * one:.0f} us | |"
    rng = np.random.default_rng(0)
    for k in (70, 140, 200):
        small = rng.standard_normal((25, k, k))
        small = small + small.transpose(0, 2, 1)
        away = torch.asarray(small, device=DEVICE)
        tall = torch.asarray(rng.standard_normal((D, 3 * k)), device=DEVICE)
        last = [k - d, k - 1]
        timed = {
            "25 eigenproblems, torch on the device": lambda away=away: torch.linalg.eigh(away),
            "25 eigenproblems, NumPy": lambda small=small: np.linalg.eigh(small),
            "25 eigenproblems, SciPy, the largest d": lambda small=small, last=last: [
                scipy.linalg.eigh(one, subset_by_index=last, check_finite=False) for one in small
            ],
            "QR of D x 3 k, torch on the device": lambda tall=tall: torch.linalg.qr(tall),
            "QR of D x 3 k, NumPy": lambda tall=tall: np.linalg.qr(host(tall), mode="r"),
        }
        for name, call in timed.items():
            with threadpool_limits(1):
                yield f"| {name}, k = {k} | {1000 * min(seconds(torch, call)):.1f} ms | |"


def groups_of(X: Any, Y: Any) -> Any:
    """Moments of both tables."""
    return Groups.of(*(Moments.from_rows(table) for table in (X, Y)))


def profile(torch: Any) -> Iterator[str]:
    """Where the time of a fit goes, by the host's clock with the device synchronised at every call."""
    import cProfile
    import io
    import pstats

    X, Y = large(torch, N, D)
    for name, call in (
        ("PCPCA", lambda: PCPCA(d, gamma=GAMMA).fit(X, background=Y)),
        ("ContraPCA", lambda: ContraPCA(d).fit(X, background=Y)),
        ("path", lambda: contrast_path(PCPCA(d), X, background=Y, gammas=POINTS)),
    ):
        call()
        torch.cuda.synchronize()
        watch = cProfile.Profile()
        watch.runcall(synced(torch, call))
        text = io.StringIO()
        pstats.Stats(watch, stream=text).sort_stats("cumulative").print_stats(28)
        yield f"{name}:\n" + "\n".join(line for line in text.getvalue().splitlines()[6:] if line.strip())


def growth(torch: Any) -> Iterator[str]:
    """Slopes of the time of a fit in rows and in features."""
    sizes = {f"rows of each group (D = {D // 2:,})": [(N * k // 4, D // 2) for k in (1, 2, 4, 8)]}
    sizes[f"features ({N // 5:,} rows in each group)"] = [(N // 5, D * k // 4) for k in (1, 2, 4, 8)]
    for name, shapes in sizes.items():
        times = []
        for n, width in shapes:
            X, Y = large(torch, n, width)
            times.append(min(seconds(torch, lambda X=X, Y=Y: PCPCA(d, gamma=GAMMA).fit(X, background=Y))))  # type: ignore[misc]
            del X, Y
            torch.cuda.empty_cache()
        along = [shape[0] if name.startswith("rows") else shape[1] for shape in shapes]
        slope = np.polyfit(np.log(along), np.log(times), 1)[0]
        shown = ", ".join(f"{seconds_:.3f}" for seconds_ in times)
        yield f"| {name} | {', '.join(f'{value:,}' for value in along)} | {shown} s | slope {slope:.2f} |"
    X, Y = large(torch, *HUGE)
    model = PCPCA(5, gamma=GAMMA)
    times = seconds(torch, lambda: model.fit(X, background=Y))
    yield f"| {HUGE[0]:,} + {HUGE[0]:,} x {HUGE[1]:,}, d = 5: {model.solver_.name} | | {min(times):.3f} s | |"


def cupy_fit(torch: Any, rounds: int) -> Iterator[str]:
    """The same fit from cupy's arrays, which share torch's memory."""
    cupy = importlib.import_module("cupy")
    X, Y = (cupy.from_dlpack(table) for table in large(torch, N, D))

    def timed(call: Callable[[], object]) -> float:
        call()
        times = []
        for _ in range(rounds):
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            call()
            cupy.cuda.Device().synchronize()
            times.append(time.perf_counter() - start)
        return min(times)

    bare, fit = timed(lambda: (X.T @ X, Y.T @ Y)), timed(lambda: PCPCA(d, gamma=GAMMA).fit(X, background=Y))
    verdict = f"{fit / bare:.2f} (bound 1.4, {_verdict(fit <= 1.4 * bare)})"
    yield f"| cupy, X'X and Y'Y {bare:.3f} s | PCPCA, gamma 0.3 {fit:.3f} s | ratio {verdict} |"


def _verdict(met: bool) -> str:
    return "ok" if met else "MISSED"


PARTS: dict[str, Callable[..., Iterator[str]]] = {
    "numbers": lambda torch, rounds: same_numbers(torch),
    "refusals": lambda torch, rounds: refusals(torch),
    "fit": one_fit,
    "tuning": lambda torch, rounds: tuning(torch),
    "steps": lambda torch, rounds: steps(torch),
    "growth": lambda torch, rounds: growth(torch),
    "cupy": cupy_fit,
    "profile": lambda torch, rounds: profile(torch),
}


def main() -> None:
    """Run the chosen parts; a part that fails does not stop the others."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description="Tables on a GPU against NumPy.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    torch = importlib.import_module("torch")
    warnings.simplefilter("ignore")
    print(versions(torch), flush=True)
    for name in options.only:
        started = time.perf_counter()
        print(f"\n## {name}\n", flush=True)
        try:
            for line in PARTS[name](torch, options.rounds):
                print(line, flush=True)
        except Exception:
            traceback.print_exc()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        print(f"({name}: {time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
