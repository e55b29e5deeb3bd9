"""AnnData: tools, plots and getters in the manner of scanpy."""

from ._get import loadings, model
from ._pl import embedding, gamma_path, variance, verdict
from ._pl import loadings as plot_loadings
from ._report import report
from ._tl import clvm, compare, contrapca, cpca, pcpca, test
