"""The machinery: stage by stage, drawn again without computing, nothing half-written."""

import importlib
import json
import types

import pytest

NAMES = ("one", "two")


@pytest.fixture
def command(need, tmp_path, monkeypatch):
    """The command with two made-up experiments, and what they were asked for: (run, calls, home)."""
    need("matplotlib")
    stages = importlib.import_module("experiments._stages")
    entry = importlib.import_module("experiments.__main__")
    calls = []

    def made_up(name):
        def run(config, tick):
            calls.append((name, "run", config["size"]))
            tick("half-way")
            return {"value": config["size"] * 2}

        def figure(results):
            from matplotlib.figure import Figure

            calls.append((name, "figure", results["value"]))
            return Figure()

        return types.SimpleNamespace(
            TITLE=f"Experiment {name}",
            config=lambda *, quick: {"size": 1 if quick else 10, "seed": 0},
            run=run,
            figure=figure,
            rows=lambda results: [stages.Row("a | b", "19", str(results["value"]), False, "one more")],
        )

    modules = {name: made_up(name) for name in NAMES}
    for module in (stages, entry):
        monkeypatch.setattr(module, "experiment", modules.__getitem__)
        monkeypatch.setattr(module, "EXPERIMENTS", NAMES)
    monkeypatch.setattr(entry, "HERE", tmp_path)
    return types.SimpleNamespace(
        run=lambda *arguments: entry.main(arguments, home=tmp_path), calls=calls, home=tmp_path, modules=modules
    )


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_all_runs_everything_and_writes_the_table(command, capsys):
    assert command.run("all") == 0
    assert files(command.home) == [
        "RESULTS.md",
        *(f"results/{name}/{file}" for name in NAMES for file in ("figure.png", "results.json")),
    ]
    record = json.loads((command.home / "results/one/results.json").read_text())
    assert record["config"] == {"size": 10, "seed": 0}
    assert record["results"] == {"value": 20}
    table = (command.home / "RESULTS.md").read_text()
    assert table.count(r"| a \| b | 19 | 20 | **no** | one more |") == 2
    assert "[2/2] two: done" in capsys.readouterr().err


def test_three_answers():
    from experiments.__main__ import line
    from experiments._stages import Row

    rows = (Row("item", "1", "1", True), Row("item", "1", "2", False, "why"), Row("item", "none", "2", None))
    assert [line(row).split(" | ")[3] for row in rows] == ["yes", "**no**", "n/a"]


def test_a_no_without_a_reason_is_refused():
    from experiments._stages import Row

    with pytest.raises(ValueError, match="say why"):
        Row("item", "1", "2", False)


def test_quick_mode_leaves_the_full_results_alone(command):
    command.run("all")
    before = (command.home / "RESULTS.md").read_text()
    assert command.run("one", "--quick") == 0
    assert (command.home / "RESULTS.md").read_text() == before
    assert json.loads((command.home / "results/quick/one/results.json").read_text())["results"] == {"value": 2}
    assert "Not run." in (command.home / "results/quick/RESULTS.md").read_text()


def test_stages_one_by_one(command):
    assert command.run("one", "--stage", "run") == 0
    assert files(command.home / "results") == ["one/results.json"]
    assert command.run("one", "--stage", "figure") == 0
    assert command.calls == [("one", "run", 10), ("one", "figure", 20)]


def test_a_figure_is_drawn_again_from_the_file_alone(command):
    command.run("one")
    path = command.home / "results/one/results.json"
    path.write_text(path.read_text().replace('"value": 20', '"value": 21'))
    command.calls.clear()
    assert command.run("one", "--stage", "figure") == 0
    assert command.calls == [("one", "figure", 21)]


def test_a_figure_without_results_says_what_to_do(command, capsys):
    assert command.run("two", "--stage", "figure") == 1
    assert "run the stage 'run' first" in capsys.readouterr().err


def test_a_figure_of_other_results_does_not_stay(command):
    command.run("one")
    assert command.run("one", "--stage", "run") == 0
    assert files(command.home / "results") == ["one/results.json"]


@pytest.mark.parametrize("values", [{"value": float("nan")}, {"value": object()}])
def test_results_that_are_not_plain_leave_the_old_ones(command, values, capsys):
    command.run("one")
    command.modules["one"].run = lambda config, tick: values
    assert command.run("one", "two") == 1
    assert json.loads((command.home / "results/one/results.json").read_text())["results"] == {"value": 20}
    assert (command.home / "results/two/results.json").exists(), "one failure does not stop the others"
    assert "1 of 2 done" in capsys.readouterr().err


@pytest.mark.parametrize("stage", ["run", "figure"])
def test_an_interrupted_run_leaves_nothing_half_written(command, stage):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    command.run("all")
    before = {name: (command.home / "results" / name / "results.json").read_text() for name in NAMES}
    picture = types.SimpleNamespace(savefig=lambda file, **_: (file.write(b"half"), interrupt()))
    setattr(command.modules["one"], stage, interrupt if stage == "run" else lambda results: picture)
    with pytest.raises(KeyboardInterrupt):
        command.run("all")
    after = {name: (command.home / "results" / name / "results.json").read_text() for name in NAMES}
    keep = ("config", "results")
    assert {n: [json.loads(t)[k] for k in keep] for n, t in after.items()} == {
        n: [json.loads(t)[k] for k in keep] for n, t in before.items()
    }
    left = files(command.home / "results")
    assert ("one/figure.png" in left) == (stage == "run")
    assert not [name for name in left if name.rpartition("/")[2] not in ("results.json", "figure.png")]


def test_a_log_hears_of_progress_now_and_then(command, capsys, monkeypatch):
    command.run("one")
    assert "half-way" not in capsys.readouterr().err, "not within the first half minute"
    monkeypatch.setattr(importlib.import_module("experiments.__main__"), "SECONDS_BETWEEN", -1)
    command.run("one")
    assert "[1/1] one: half-way" in capsys.readouterr().err


def test_unknown_names_are_refused(command, capsys):
    with pytest.raises(SystemExit):
        command.run("three")
    assert "one" in capsys.readouterr().err
