"""AnnData: tools, plots and getters in the manner of scanpy."""

from ._evidence import by_group, compare, report, test
from ._pl import by_group as plot_by_group
from ._pl import embedding, gamma_path, held_out, variance, verdict
from ._pl import loadings as plot_loadings
from ._results import components, loadings, model
from ._tl import clvm, contrapca, cpca, pcpca, project, ratiopca, sparse_cpca
