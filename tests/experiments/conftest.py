"""Experiments in quick mode, each run once, through its files."""

from __future__ import annotations

import warnings

import pytest


@pytest.fixture(scope="session")
def quick(tmp_path_factory, need):
    """Results of an experiment in quick mode; its figure is drawn and its rows are written, too."""
    need("matplotlib")
    from contrapca.exceptions import ContrastWarning
    from experiments._stages import experiment, figure_stage, read_results, run_stage

    found = {}

    def results(name):
        if name not in found:
            folder = tmp_path_factory.mktemp(name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ContrastWarning)  # as the command does
                run_stage(name, folder, quick=True, tick=lambda text: None)
            found[name] = read_results(folder)
            assert figure_stage(name, folder).stat().st_size > 10_000
            rows = experiment(name).rows(found[name])
            assert all(row.item and row.paper and row.ours for row in rows)
            assert all(row.item.startswith("Figure") for row in rows), "every row names its figure"
        return found[name]

    return results
