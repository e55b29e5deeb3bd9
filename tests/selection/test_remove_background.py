"""A foreground without the background's directions."""

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from contrapca import remove_background
from contrapca.datasets import make_hidden_clusters

DATA = make_hidden_clusters(200, 200, 15, random_state=0)
X, Y, LABELS = DATA.foreground, DATA.background, DATA.labels


def test_removed_directions_and_surviving_structure():
    """No variance is left along the background's directions; the planted clusters survive, and become visible."""
    corrected = remove_background(X, background=Y, n_directions=3)
    assert corrected.shape == X.shape
    np.testing.assert_allclose(corrected.mean(axis=0), X.mean(axis=0), atol=1e-10)
    B = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)[2][:3]
    np.testing.assert_allclose((corrected - corrected.mean(axis=0)) @ B.T, 0, atol=1e-9)
    left = np.linalg.norm((corrected - corrected.mean(axis=0)) @ DATA.plane)
    assert left > 0.9 * np.linalg.norm((X - X.mean(axis=0)) @ DATA.plane)

    def leading(table):
        Z = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)[0][:, :2]
        return silhouette_score(Z, LABELS)

    assert leading(corrected) > 0.4
    assert leading(X) < 0.2


def test_directions_that_the_background_has_not():
    with pytest.raises(ValueError, match=r"n_directions=3 .* varies in only 2 directions"):
        remove_background(X, background=Y[:3], n_directions=3)


def test_remove_background_keeps_frames(need):
    pd = need("pandas")
    names = [f"g{j}" for j in range(15)]
    table = pd.DataFrame(X, columns=names, index=[f"r{i}" for i in range(200)])
    found = remove_background(table, background=pd.DataFrame(Y, columns=names))
    assert list(found.columns) == names
    assert list(found.index) == list(table.index)
    with pytest.raises(ValueError, match="n_directions=15"):
        remove_background(X, background=Y, n_directions=15)
