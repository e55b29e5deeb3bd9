"""`contrapca test`: is there anything to find?"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict, replace
from typing import Any

from ..data.checks import shows_replicates
from ..inference import MIN_UNITS, contrast_test
from ._inputs import cautions_of, check_units, described, input_facts, inputs_of, scale_of
from ._results import records

MOST = 10  # dimensions tested by default


def test(options: Namespace) -> tuple[list[Any], dict[str, Any]]:
    """Test the tables: the verdict, then the p-values."""
    inputs = inputs_of(options)
    check_units(inputs, MIN_UNITS, "the test needs")
    found = contrast_test(
        inputs.study,
        max_components=options.components or MOST,
        scale=scale_of(options),
        depth="match" if options.depth == "match" else "ignore",  # reading the tables has warned already
        random_state=options.seed,
        progress=options.progress,
    )
    found = replace(found, ignores_replicates=shows_replicates(inputs.findings))
    facts = {"n_components": found.n_components, "level": found.level, "units": found.units}
    facts |= {"missing": None if found.missing is None else asdict(found.missing)}
    facts |= {"noise_ratio": found.noise_ratio, "remarks": found.remarks(), "dimensions": records(found.table())}
    summary = {"verdict": found.verdict(), "test": facts, "cautions": cautions_of(inputs)}
    return [found, *described(inputs)], summary | {"inputs": input_facts(inputs)}
