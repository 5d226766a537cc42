"""Access to the raw results of a figure by method and settings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .run import precision_at_10
from .spec import Spec
from .statistics import Comparison, Mean, compare, mean_over_splits

_NOT_SETTINGS = frozenset({"label", "method", "at", "variant"})


class Results:
    """The results in the JSON file of a figure."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.spec = Spec(**raw["spec"])
        self._by_kind: dict[tuple[Any, ...], dict[int, list[dict[str, Any]]]] = {}
        for result in raw["cells"]:
            cell = result["cell"]
            if cell["part"] == "test":
                key = _kind(cell["method"], cell["settings"], cell["variant"])
                self._by_kind.setdefault(key, {}).setdefault(cell["split"], []).append(result)
        validation = {
            r["name"]: precision_at_10(self.spec, r) for r in raw["cells"] if r["cell"]["part"] == "validation"
        }
        self._choices = [self.spec.choices(split, validation) for split in range(self.spec.n_splits)]

    @property
    def test_ratio(self) -> float:
        """Size of a test part over that of its training part."""
        return float(
            np.mean([result["test_ratio"] for result in self.raw["cells"] if result["cell"]["part"] == "test"])
        )

    def has(self, method: str, **settings: Any) -> bool:
        """Return whether a method was run with these settings."""
        return _kind(method, settings, "") in self._by_kind

    def values(
        self, measure: str, method: str, *, at: int | None = None, variant: str = "", **settings: Any
    ) -> list[float]:
        """Return a measure on every split: `"P@10"`, precision at any other rank, or `"mAP"`.

        Parameters
        ----------
        measure : str
            The measure.
        method : str
            The method.
        at : int, optional
            Number of triplets after which it was evaluated; the last evaluation by default.
        variant : str, default ""
            Variant of the features.
        **settings : values of parameters
            Parameters of the learner. `r="chosen"` or `C="chosen"` is the best value on the validation part.
        """
        found = []
        for split in range(self.spec.n_splits):
            exact, after = self._exact(split, method, settings)
            result, index = self._at(split, method, after if at is None else at, variant, exact)
            found.append(self._measure(result, index, measure))
        return found

    def seconds(self, method: str, **settings: Any) -> float:
        """Return the mean training time over the splits."""
        times = []
        for split in range(self.spec.n_splits):
            exact, after = self._exact(split, method, settings)
            times.append(float(self._at(split, method, after, "", exact)[0]["found"]["seconds"]))
        return sum(times) / len(times)

    def choice(self, split: int, method: str, init: str = "") -> dict[str, Any]:
        """Return the best settings on the validation part of a split."""
        return dict(self._choices[split][method, init].settings)

    def mean(self, measure: str, method: str, **settings: Any) -> Mean:
        """Return the mean of a measure over the splits."""
        return mean_over_splits(self.values(measure, method, **settings))

    def compare(self, measure: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Comparison:
        """Compare two methods over the same splits."""
        return compare(self.values(measure, **ours), self.values(measure, **theirs), self.test_ratio)

    def checkpoints(self, method: str, **settings: Any) -> list[int]:
        """Return the numbers of triplets after which a method was evaluated."""
        return sorted({at for result in self._results(0, method, "", settings) for at in result["found"]["n_triplets"]})

    def curve(self, measure: str, method: str, **settings: Any) -> NDArray[np.float64]:
        """Return a measure at every checkpoint, one row per split."""
        at = self.checkpoints(method, **{**settings, **self._first_choice(method, settings)})
        return np.array([self.values(measure, method, at=n, **settings) for n in at]).T

    def _exact(self, split: int, method: str, settings: dict[str, Any]) -> tuple[dict[str, Any], int | None]:
        """Return settings with chosen values filled in, and the number of triplets of a choice."""
        if "chosen" not in settings.values():
            return settings, None
        chosen = self._choices[split][method, str(settings.get("init", ""))]
        return chosen.settings, chosen.n_triplets or None

    def _first_choice(self, method: str, settings: dict[str, Any]) -> dict[str, Any]:
        return self.choice(0, method, str(settings.get("init", ""))) if "chosen" in settings.values() else {}

    def _results(self, split: int, method: str, variant: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
        key = _kind(method, settings, variant)
        if key not in self._by_kind:
            raise KeyError(f"no cell of {method} with {settings} and the features {variant or 'of the spec'}")
        return self._by_kind[key][split]

    def _at(
        self, split: int, method: str, at: int | None, variant: str, settings: dict[str, Any]
    ) -> tuple[dict[str, Any], int]:
        """Find the cell that was evaluated after so many triplets, and the index of that evaluation."""
        results = self._results(split, method, variant, settings)
        if at is None:
            result = max(results, key=lambda r: r["cell"]["n_triplets"])
            return result, len(result["found"]["n_triplets"]) - 1
        # The cell that ends there comes first, because its training time belongs to that number of triplets.
        for result in sorted(results, key=lambda r: bool(r["cell"]["n_triplets"] != at)):
            if at in result["found"]["n_triplets"]:
                return result, result["found"]["n_triplets"].index(at)
        raise KeyError(f"{method} with {settings} was not evaluated after {at} triplets")

    def _measure(self, result: dict[str, Any], index: int, measure: str) -> float:
        if measure == "mAP":
            return float(result["found"]["mean_average_precision"][index])
        return float(result["found"]["precision"][index][self.spec.ks.index(int(measure.removeprefix("P@")))])


def settings_of(line: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the learner in a line of a panel."""
    return {name: value for name, value in line.items() if name not in _NOT_SETTINGS}


def _kind(method: str, settings: dict[str, Any], variant: str) -> tuple[Any, ...]:
    return method, variant, tuple(sorted((name, str(value)) for name, value in settings.items()))
