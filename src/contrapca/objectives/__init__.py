"""The objectives: the relative likelihood, CPCA's variance and loss, the likelihoods of masked rows and of CLVM."""

from ._clvm import clvm_log_likelihood
from ._complete import (
    Evaluation,
    contrastive_variance,
    relative_log_likelihood,
)
from ._masked import masked_latents, masked_log_likelihood
