"""The scripts in examples/ run, print a table of the figures they return, and find what they are there to show."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def run(capsys):
    """Run the `main` of a script; give its figures and what it printed."""

    def run_main(name):
        spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.main(), capsys.readouterr().out

    return run_main


def test_every_example_is_run_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {"multiclass", "different_spaces", "one_at_a_time"}


def test_several_classes_are_told_apart_nearly_as_well_as_by_logistic_regression(run):
    accuracy, printed = run("multiclass")
    assert accuracy["LogisticRegression"] > 0.96
    # Measured: 0.014 and 0.006 behind, on 629 images.
    assert accuracy["DiagonalAROMA"] > accuracy["LogisticRegression"] - 0.02
    assert accuracy["FactoredAROMA"] > accuracy["LogisticRegression"] - 0.02
    for name, share in accuracy.items():
        assert f"{name:20}{share:8.3f}\n" in printed


def test_sounds_find_pictures_whose_features_are_others(run):
    accuracy, printed = run("different_spaces")
    assert "W is 12 x 30" in printed
    for learner in ("DiagonalAROMA", "FactoredAROMA", "FullAROMA"):
        along = [row[learner] for row in accuracy.values()]
        assert along == sorted(along)
        assert along[0] > 0.6
        assert along[-1] > 0.85
    for row in accuracy.values():
        assert "".join(f"{share:15.3f}" for share in row.values()) in printed
    # The features are correlated: what the two that know it learn from 100 judgements, the diagonal does not.
    assert min(accuracy[100]["FactoredAROMA"], accuracy[100]["FullAROMA"]) > accuracy[100]["DiagonalAROMA"] + 0.02


def test_a_stream_is_foreseen_better_and_with_more_confidence_as_it_goes_on(run):
    table, printed = run("one_at_a_time")
    first, last = table[0], table[-1]
    assert first["right"] < 0.75
    assert last["right"] > 0.94
    for name in ("std", "updates"):
        along = [row[name] for row in table]
        assert along == sorted(along, reverse=True)
    assert last["margin"] > 1 > first["margin"]
    for row in table:
        assert "".join(f"{value:9.3f}" for value in row.values()) in printed
