"""`contrapca test`: is there anything to find?"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict, replace

from .._util.text import plural
from ..data.checks import shows_replicates
from ..inference import MIN_UNITS, contrast_test
from ._console import Console
from ._inputs import cautions_of, described, input_facts, inputs_of
from ._models import scale_of
from ._summary import records

MOST = 10  # dimensions tested by default


def test(options: Namespace, console: Console) -> None:
    """Test the tables; print the verdict, then the p-values."""
    inputs = inputs_of(options)
    study = inputs.study
    kind = "row" if study.blocks is None else "pair" if study.paired else "block"
    units = study.counts if study.blocks is None else study.blocks.map(lambda own: len(set(own)))
    for group, source, count in zip(("cases", "controls"), (inputs.sources * 2)[:2], units, strict=True):
        if count < MIN_UNITS:
            raise ValueError(
                f"{source!r} has {plural(count, kind)} of {group}: the test needs at least {MIN_UNITS} in each group."
            )
    found = contrast_test(
        study,
        max_components=options.components or MOST,
        scale=scale_of(options),
        depth="match" if options.depth == "match" else "ignore",  # reading the tables has warned already
        random_state=options.seed,
        progress=console.progress,
    )
    found = replace(found, ignores_replicates=shows_replicates(inputs.findings))
    console.say(found, *described(inputs))
    facts = {"n_components": found.n_components, "level": found.level, "units": found.units}
    facts |= {"missing": None if found.missing is None else asdict(found.missing)}
    facts |= {"noise_ratio": found.noise_ratio, "remarks": found.remarks(), "dimensions": records(found.table())}
    console.summarise(
        {"verdict": found.verdict(), "test": facts, "cautions": cautions_of(inputs), "inputs": input_facts(inputs)}
    )
