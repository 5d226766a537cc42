"""Calls of the public functions and methods, with mostly valid arguments and one or two hostile ones.

Hypothesis draws the calls. A call may succeed or raise ValueError or TypeError, among them the exceptions of the
package; functions that take a path may raise OSError. After an exception the object is bit-identical.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import io
import json
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import aromatch as am
from aromatch._utils.checks import set_max_memory
from aromatch.exceptions import ConcurrentUseError, NumericalError
from aromatch.learners import LEARNERS
from tests.fuzz.formats import MAX_MEMORY
from tests.fuzz.sandbox import ACCEPTED, REFUSED, GuaranteeError, enter_empty
from tests.fuzz.values import evaluate

UNBUILDABLE = "unbuildable"
"""The outcome of a case whose arguments cannot be evaluated, such as a slice of None."""

_MODULES = ("", "triplets", "evaluation", "theory", "search", "learners", "features", "datasets")
_REFUSALS = (ValueError, TypeError, NumericalError, NotFittedError, ConcurrentUseError)

# What is not called, and why.
_LEFT_OUT = {
    "HasSimilarity": "a protocol: nobody calls it",
    "LEARNERS": "a table",
    "Similarity": "an abstract base class; its methods are called on every learner",
    "TripletLearner": "an abstract base class; its methods are called on every learner",
    "count": "a method of tuple",
    "index": "a method of tuple",
    "get_metadata_routing": "of scikit-learn, without arguments",
    "set_output": "of scikit-learn: its errors are not ours",
    "set_params": "of scikit-learn; the constructors are called with the same parameters",
}
_LEFT_OUT_SUFFIX = "_request"  # of scikit-learn: RuntimeError unless metadata routing is switched on
_LEFT_OUT_PARAMETERS = {
    "download": "would use the network",
    "verbose": "a flag that is only tested for truth",
    "doing": "the title of a progress bar",
}

# Passed always, and never hostile.
_FIXED = {"n_jobs": "1"}
# Passed always, though some calls do without: the defaults would read the data sets of this machine, or do nothing.
_NEEDED = ("y", "folder", "good", "bad")
_PATHS = ("path", "folder", "cache", "log", "qrels")

# Valid values by the name of the parameter, or by function and parameter.
_VALID: dict[str, str] = {
    "triplets": "TRIPLETS", "Q": "Q", "P": "P", "X": "Q", "y": "Y", "q": "Q[0]", "p": "P[0]", "p_pos": "P[1]", "p_neg": "P[2]",
    "query": "Q[0]", "queries": "Q", "objects": "P", "vectors": "Q", "pairs": "PAIRS", "is_similar": "IS_SIMILAR",
    "sample_weight": "WEIGHTS", "learn_one.sample_weight": "2.0", "AROW.score.sample_weight": "np.ones(8)", "fit_transform.X": "Q", "PatchDescriptors.fit_transform.X": "IMAGES", "rate": "0.5", "m": "5", "n": "5",
    "path": "path()", "load.path": "model_file()", "scale": "0.5", "random_state": "0", "k": "3", "ids": "None", "add.ids": "list(range(10, 18))",
    "remove.ids": "[0, 1]", "good": "[0]", "bad": "[1, 2]", "shown": "[0, 1, 2]", "clicked": "[1]", "model": "fitted('DiagonalAROMA')",
    "models": "[fitted('MomentAROMA'), fitted('MomentAROMA')]", "candidates": "TRIPLETS", "suggest_comparisons.n": "2", "top": "3",
    "y_objects": "Y", "query_ids": "IDS", "object_ids": "IDS", "log": "CLICKS", "qrels": "QRELS", "sessions": "SESSIONS", "evaluate_retrieval.qrels": "None",
    "probabilities": "np.linspace(0, 1, 20)", "n_objects": "5", "run": "run()", "V": "np.eye(4)", "learner": "am.DiagonalAROMA()",
    "names": "['a.b', 'a.c']", "texts": "TEXTS", "images": "IMAGES", "text": "'apple pear'", "name": "'name'", "from_preset.name": "'paper'",
    "folder": "path('folder')", "header": "fingerprint().to_header()", "other": "fingerprint()", "fingerprint": "fingerprint()",
    "check_fingerprint.queries": "fingerprint()", "check_fingerprint.objects": "fingerprint()", "set_fingerprint.queries": "fingerprint()",
    "set_fingerprint.objects": "fingerprint()", "generator": "np.random.default_rng(0)", "input_features": "None", "classes": "[0, 1]",
    "dimension": "4", "is_normalised": "True", "probe": "(1.0, 2.0)", "n_samples": "20", "n_features": "3", "n_classes": "2",
    "function": "lambda found, at: at", "arrays": "{}", "TextFeatures.from_parts.header": "text_features().to_parts()[0]",
    "load_stdlib.folder": "path('x').parent", "ImageFeatures.n_samples": "50", "n_words": "3", "patch_size": "8", "stride": "8", "n_bins": "4",
    "n_triplets": "20", "n_constraints": "20", "max_iter": "5", "max_sweeps": "2", "n_components": "2", "n_neighbors": "1", "init": "'identity'",
    "explore": "'thompson'", "query_names": "['a', 'b', 'c', 'd']", "object_names": "['a', 'b', 'c', 'd']", "ks": "(1, 3)", "query_rows": "[0, 2]",
    "hierarchy": "{0: ('x',), 1: ('x', 'y')}", "bounds": "(0.5, 2.0)", "encoder": "None", "store": "None", "metric": "'dot'", "method": "'spectral'",
    "explain_pair.q": "Q[:1]", "explain_pair.p": "P[:1]", "lemma_3.run": "run('FactoredAROMA')", "theorem_2.run": "run('FactoredAROMA')", "n_jobs": "1",
    "theorem_2_holds_for_every_V.run": "run('FactoredAROMA')", "labels": "Y", "report": "None", "fit_params": "", "settings": "", "cache": "None", "classes_of": "None", "token_pattern": "r'\\w+'",
}  # fmt: skip

_HOSTILE = [
    "None", "True", "False", "0", "-1", "1", "2", "2**31", "2**53", "2**62", "2**63", "-2**63", "2**64", "10**30", "10**400", "-10**400", "0.0", "-0.0",
    "0.5", "-0.5", "1e-320", "1e-200", "1e38", "1e160", "1e200", "1e308", "-1e308", "nan", "inf", "-inf", "1j", "np.float16(1)", "np.int8(-1)", "np.uint64(2**64 - 1)", "np.bool_(True)",
    "np.float32('nan')", "np.datetime64('NaT')", "Decimal('NaN')", "Decimal('1e400')", "Fraction(10**400, 3)", "pd.NA", "''", "'x'", "'\\x1b[2J'", "'\\0'", "'\\ud800'", "b''", "b'x'",
    "'a' * 10_000", "[]", "()", "{}", "set()", "[[]]", "[[], []]", "[None]", "[0]", "[-1]", "[2**63]", "[10**400]", "[nan]", "[inf]", "['a']", "['a', 1]", "[[0, 1, 2]]", "[[0, 1], [2]]",
    "[[0, 1, 10**400]]", "[[0, 1, None]]", "[[-1, 0, 1]]", "[[0.5, 1, 2]]", "[True, False]", "[[[1.0]]]", "[{}]", "[{'a': 1}]", "{'a': 1}", "{'a': {'b': nan}}", "{'a': {'b': 10**400}}", "{None: {None: None}}", "{1: [2]}",
    "[('a', 'b', 'c')]", "[('a',)]", "[('a', ['b'], ['c'])]", "[{'query': 'a'}]", "[(None, None, None)]", "[('a', ['b', 'b'], ['b'])]", "[('zz', ['b'], ['b'])]", "[('a', 'b', nan)]", "[('a', 'b', 10**400)]",
    "np.array(1.0)", "np.array([])", "np.array(None)", "np.array([[]])", "np.empty((0, 4))", "np.empty((4, 0))", "np.empty((0, 0))", "np.ones((2, 2, 2))", "np.array(['a', 'b'])",
    "np.array([object()])", "np.array([[10**400]], dtype=object)", "np.array([[None] * 4] * 8)", "np.array([1, 'a', None], dtype=object)", "np.zeros(3, dtype='M8[s]')", "np.zeros((8, 4), dtype='V3')", "np.zeros((8, 4), dtype=[('a', 'f8')])",
    "np.full((8, 4), nan)", "np.full((8, 4), 1e308)", "np.full((8, 4), 1e160)", "np.full((8, 4), 1e-170)", "np.full((8, 4), 5e-324)", "np.full((1, 4), inf)", "np.full((8, 4), 1e30, dtype='f4')", "np.full((8, 4), 'x')", "np.full((8, 4), 1 + 1j)",
    "np.broadcast_to(1.0, (8, 4))", "np.broadcast_to(1.0, (8, 1000))", "np.broadcast_to(0, (1000, 3))", "np.broadcast_to(0, 1000)",
    "object()", "object", "int", "len", "lambda *a, **k: None", "iter([1, 2])", "(x for x in ())", "range(8)", "range(2**40)", "range(10**30)", "memoryview(b'abcd')", "bytearray(8)", "Strange()", "...", "slice(3)", "NotImplemented",
    "pd.DataFrame(Q)", "pd.DataFrame(Q, columns=list('abcd'))", "pd.DataFrame({'a': ['x']})", "pd.Series([1, None])", "pd.Series(['a', 'b'], dtype='category')", "pd.array([1, None])", "pd.DataFrame()",
    "am", "am.DiagonalAROMA", "am.DiagonalAROMA()", "fitted('OASIS')", "fitted('Euclidean')", "fitted('AROW')", "adapter()", "index()", "fingerprint()", "np.random.RandomState(0)", "np.random.default_rng(0)", "np.random.PCG64(0)",
    "path()", "path('folder').parent", "'/proc'", "'/dev/null'", "'/nonexistent/x'", "'.'", "'a' * 300", "1.5", "-2", "3", "7", "'auto'", "'zero'", "'identity'", "'float32'", "np.eye(4)", "-np.eye(4)", "np.full((4, 4), 1e308)", "np.full((4, 4), nan)", "np.eye(3)",
]  # fmt: skip
_SPOILED = [
    "{}[:-1]", "{}[:0]", "{}[::-1]", "{}[None]", "np.asarray({}).T", "np.asarray({}).tolist()", "np.asarray({})[:, :-1]", "np.asarray({})[:, :0]", "np.asarray({}).ravel()", "np.asfortranarray({})", "read_only({})", "unaligned({})",
    "np.asarray({}).view(Rows)", "np.matrix({})", "masked({})", "np.ma.array({})", "pd.DataFrame({})", "pd.Series(list({}))", "iter({})", "list({})", "tuple({})", "np.asarray({}).astype(object)", "np.asarray({}).astype(str)", "np.asarray({}).astype('f2')",
    "np.asarray({}).astype('f4')", "np.asarray({}).astype('>f8')", "np.asarray({}).astype('g')", "np.asarray({}).astype('i1')", "np.asarray({}).astype('u8')", "np.asarray({}).astype(bool)", "np.asarray({}).astype(complex)", "np.asarray({}) * 1e300", "np.asarray({}) * 1e-300",
    "np.asarray({}) * 1e20", "np.asarray({}) * -1", "np.asarray({}) * 0", "np.asarray({}) + 10**15", "np.repeat({}, 2, axis=0)", "np.concatenate([{}, {}])", "put({}, nan, dtype=float)", "put({}, inf, dtype=float)", "put({}, -1)", "put({}, 100)", "put({}, 1e308, dtype=float)",
    "put({}, None, dtype=object)", "put({}, 10**400, dtype=object)", "put({}, 'x', dtype=object)", "put({}, [1, 2], dtype=object)", "put({}, 2**62, dtype='i8')", "str({})", "{{1: {}}}", "[{}]", "({},)",
    "csr({})", "csr({}, 'csc')", "csr({}, 'coo')", "csr({}, 'bsr')", "csr({}, 'dia')", "csr({}, 'dok')", "csr({}, 'lil')", "sparse.csr_matrix({})",
]  # fmt: skip
_FORMS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
_INDEX_TYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f8", "bool", "object")
_INDEX_LISTS = (
    "[]",
    "[0]",
    "[-1]",
    "[0, 100]",
    "[2**31 - 1]",
    "[2**62]",
    "[-2**62, 0]",
    "[nan]",
    "[[0]]",
    "[0] * 40",
    "[3, 2, 1, 0, 0, 9, 9, 9, 9]",
    "[0, 9, 1, 2, 3, 4, 5, 6, 7]",
    "list(range(0, 36, 4))",
    "[0] * 8 + [99]",
)
_LISTS_OF_LISTS = (
    "[]",
    "[[0]] * 8",
    "[[0, 1, 2, 3]] * 7 + [[0] * 9]",
    "[[]] * 8",
    "[[0]] * 40",
    "[[2**62]] * 8",
    "[[-1]] * 8",
    "[[nan]] * 8",
    "[[None]] * 8",
    "[0] * 8",
)
_DICTIONARIES = (
    "{}",
    "{(0, 0): 1.0}",
    "{(100, 0): 1.0}",
    "{(0, -1): 1.0}",
    "{(2**62, 0): 1.0}",
    "{0: 1.0}",
    "{(0, 0, 0): 1.0}",
    "{(0, 0): None}",
    "{(0, 0): 10**400}",
    "{(nan, 0): 1.0}",
)
_SHAPES = (
    "(8, 4)",
    "(4, 8)",
    "(8, 3)",
    "(8, 100)",
    "(9, 4)",
    "(2**40, 4)",
    "(8, 2**40)",
    "(0, 4)",
    "(-1, 4)",
    "(8,)",
    "(8, 4, 1)",
)


class Callee(NamedTuple):
    """A function, a class or a method."""

    name: str
    """The function or the method; a class stands for its constructor, followed by a fit."""
    on: tuple[str, ...]
    """Expressions of objects to call the method of; empty for functions."""
    parameters: dict[str, inspect.Parameter]

    def valid(self, parameter: str) -> str:
        owner = self.on[0].partition("'")[2].partition("'")[0] if self.on else ""
        last = self.name.rpartition(".")[2]
        for key in (f"{owner}.{last}.{parameter}", f"{self.name}.{parameter}", f"{last}.{parameter}", parameter):
            if key in _VALID:
                return _VALID[key]
        default = self.parameters[parameter].default
        return "None" if default is inspect.Parameter.empty else repr(default)

    def needs(self, parameter: str) -> bool:
        """Return whether a parameter is always passed."""
        return (
            parameter in _FIXED or parameter in _NEEDED or self.parameters[parameter].default is inspect.Parameter.empty
        )


class CallCase(NamedTuple):
    """A call, as expressions."""

    name: str
    on: str
    arguments: dict[str, str]

    @property
    def data(self) -> bytes:
        return (json.dumps(self._asdict(), indent=1) + "\n").encode()

    @property
    def format(self) -> str:
        return "calls"

    @classmethod
    def of(cls, data: bytes) -> CallCase:
        return cls(**json.loads(data))

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value}" for name, value in self.arguments.items())
        return f"{self.on + '.' if self.on else 'am.'}{self.name}({arguments})"


def callees() -> list[Callee]:
    """Return every public function, class and method."""
    found: dict[str, Callee] = {}
    seen = set()
    for module in _MODULES:
        place = importlib.import_module(f"aromatch.{module}".rstrip("."))
        for name in getattr(place, "__all__", None) or [one for one in vars(place) if not one.startswith("_")]:
            public = getattr(place, name)
            if name in _LEFT_OUT or inspect.ismodule(public) or id(public) in seen or not callable(public):
                continue
            if inspect.isclass(public) and issubclass(public, Exception):
                continue
            seen.add(id(public))
            full = f"{module}.{name}".lstrip(".")
            found[full] = Callee(full, (), _parameters(public))
            if inspect.isclass(public):
                found |= {f"{full}.{one.name}": one for one in _methods(name, public)}
    return list(found.values())


_OBJECTS = {
    "Adapter": ("adapter()", "adapter(ids=list('abcdefgh'))", "adapter(metric='dot')", "am.Adapter(Q)"),
    "Index": ("index()", "index(ids=list('abcdefgh'))", "am.Index(fitted('Euclidean'), P)", "am.Index(fitted('LMNN'), P, approximate=True)"),
    "Fingerprint": ("fingerprint()",),
    "TextFeatures": ("text_features()", "am.features.TextFeatures()"),
    "ImageFeatures": ("image_features()", "am.features.ImageFeatures(n_words=2, patch_size=8, stride=8, n_jobs=1)"),
    "PatchDescriptors": ("am.features.PatchDescriptors(patch_size=8, stride=8, n_jobs=1)",),
    "LabelSampler": ("am.triplets.LabelSampler(Y)",),
}  # fmt: skip


# Parameters that make a fit fast.
_FAST = {"n_triplets": "20", "n_constraints": "20", "max_iter": "5"}


def _methods(name: str, cls: Any) -> Iterator[Callee]:
    """Iterate over the methods that objects of a class have."""
    if name in LEARNERS:
        on = _learners(name, cls)
    elif name in _OBJECTS:
        on = _OBJECTS[name]
    else:
        return  # a record of results, whose methods take no arguments
    example = evaluate(on[-1])
    for method in dir(cls):
        if method.startswith("_") or method in _LEFT_OUT or method.endswith(_LEFT_OUT_SUFFIX):
            continue
        is_property = isinstance(inspect.getattr_static(cls, method), property)
        if not is_property and callable(getattr(example, method, None)):
            yield Callee(method, on, _parameters(getattr(cls, method)))


def _learners(name: str, cls: Any) -> tuple[str, ...]:
    """Return expressions of models of a learner in several states; the last one is not fitted."""
    parameters = inspect.signature(cls).parameters
    fast = "".join(f", {one}={value}" for one, value in _FAST.items() if one in parameters)
    if name == "TripletEmbedding":
        ways = [f", method='{method}', n_components=2" for method in ("moment", "spectral", "cosine")]
    else:
        ways = [fast]
        ways += [f"{fast}, cells='touched'"] if "cells" in parameters else []
        ways += [f"{fast}, dtype='float32'"] if "dtype" in parameters else []
    found = [f"fitted('{name}'{way})" for way in ways]
    if hasattr(cls, "calibrate"):
        found += [f"calibrated('{name}'{ways[0]})", f"fitted('{name}'{ways[0]}).set_fingerprint(fingerprint())"]
    return (*found, f"am.{name}({ways[-1].removeprefix(', ')})")


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return {}
    return {
        name: one
        for name, one in signature.parameters.items()
        if name != "self" and name not in _LEFT_OUT_PARAMETERS and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    }


# -- strategies -------------------------------------------------------------------------------------------------------


@st.composite
def hostile(draw: Any, valid: str) -> str:
    """Return an expression of a hostile value, or of a valid one that is spoiled."""
    kind = draw(st.integers(0, 9))
    if kind < 4:
        return str(draw(st.sampled_from(_HOSTILE)))
    if kind < 7:
        return str(draw(st.sampled_from(_SPOILED))).replace("{}", f"({valid})").replace("{{", "{").replace("}}", "}")
    if kind == 7 and valid.startswith(("Q", "P[", "P")) and "AIRS" not in valid:
        # Only for a matrix: SciPy cannot represent a broken one as text, so no message about another type can name it.
        form = draw(st.sampled_from(_FORMS))
        arrays = {"index_type": f"'{draw(st.sampled_from(_INDEX_TYPES))}'"} if draw(st.booleans()) else {}
        of_form = {"coo": ("data",), "dia": ("data", "offsets"), "lil": ("rows", "data"), "dok": ("_dict",)}
        names = of_form.get(form, ("indices", "indptr", "data"))
        for name in draw(st.lists(st.sampled_from(names), max_size=2, unique=True)):
            lists = {"lil": _LISTS_OF_LISTS, "dok": _DICTIONARIES}.get(form, _INDEX_LISTS)
            arrays[name] = draw(st.sampled_from(lists))
        if draw(st.integers(0, 3)) == 0:
            arrays["shape"] = draw(st.sampled_from(_SHAPES))
        return f"csr(Q, '{form}'{''.join(f', {name}={value}' for name, value in arrays.items())})"
    if kind == 8:
        shape = draw(st.lists(st.integers(0, 9), max_size=3))
        dtype = draw(st.sampled_from(("f8", "f4", "f2", "i8", "i1", "u8", "bool", "object", "U3", "c16")))
        value = draw(st.sampled_from(("0", "1", "-1", "2", "1e30")))
        return f"np.full({tuple(shape)}, {value}).astype('{dtype}')"
    values = st.one_of(
        st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3), st.lists(st.integers(-3, 12))
    )
    return repr(draw(values))


@st.composite
def calls(draw: Any, known: list[Callee]) -> CallCase:
    """Return a call with valid arguments, of which up to two are hostile."""
    callee = draw(st.sampled_from(known))
    on = draw(st.sampled_from(callee.on)) if callee.on else ""
    names = [name for name in callee.parameters if callee.needs(name) or draw(st.booleans())]
    arguments = {name: callee.valid(name) for name in names}
    names = [name for name in names if name not in _FIXED]
    for _ in range(draw(st.sampled_from((0, 1, 1, 1, 2))) if names else 0):
        name = draw(st.sampled_from(names))
        value = draw(hostile(callee.valid(name)))
        # Without a folder, `load_stdlib` parses the standard library of this machine: slow, and nobody's hostile input.
        arguments[name] = callee.valid(name) if name == "folder" and value == "None" else value
    return CallCase(callee.name, on, arguments)


def make_calls(number: int, n: int, known: list[Callee]) -> list[CallCase]:
    """Return n calls; the number is the seed."""
    found: list[CallCase] = []

    @seed(number)
    @settings(
        max_examples=n,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(calls(known))
    def collect(case: CallCase) -> None:
        found.append(case)

    collect()
    return found


# -- running ----------------------------------------------------------------------------------------------------------


def run_call(case: CallCase, work: Path) -> str:
    """Make a call; return whether its arguments were accepted or refused."""
    enter_empty(work)
    usual, tempfile.tempdir = tempfile.tempdir, str(work)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                target = evaluate(case.on) if case.on else None
                function = _function(case.name, target)
                positional, arguments = _arguments(case, function)
            except Exception:
                return UNBUILDABLE
            set_max_memory(MAX_MEMORY)
            before = _state(target, work)
            warnings.simplefilter("error", RuntimeWarning)
            outcome = ACCEPTED
            try:
                result = function(*positional, **arguments)
                if inspect.isclass(function):
                    _fit(case.name.rpartition(".")[2], result)
                    target, before = result, None
                elif inspect.isgenerator(result):
                    next(result, None)
            except _REFUSALS:
                outcome = REFUSED
            except OSError:
                if not any(name in _PATHS for name in case.arguments) and not _takes_pictures(case):
                    raise
                outcome = REFUSED
            _check_state(target, before, outcome, work)
    finally:
        tempfile.tempdir = usual
    return outcome


def _takes_pictures(case: CallCase) -> bool:
    """Return whether a method takes pictures: every text among them is the path of a file, which may not exist."""
    return "image_features" in case.on or "ImageFeatures" in case.on or "PatchDescriptors" in case.on


def _function(name: str, target: Any) -> Any:
    found: Any = am if target is None else target
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _arguments(case: CallCase, function: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the values of the arguments, the leading ones by position: scikit-learn renames some of them to X."""
    found = {name: evaluate(value) for name, value in case.arguments.items()}
    positional = []
    for name, one in inspect.signature(function).parameters.items():
        if name not in found or one.kind is one.KEYWORD_ONLY:
            break
        positional.append(found.pop(name))
    return positional, found


def _fit(name: str, made: Any) -> None:
    """Fit a new estimator, which checks its parameters there, as in scikit-learn."""
    if hasattr(made, "fit_triplets"):
        made.fit_triplets(evaluate("TRIPLETS"), evaluate("Q"))
    elif name in LEARNERS:
        made.fit(evaluate("Q"), evaluate("Y"))
    elif name == "TextFeatures":
        made.fit(evaluate("TEXTS"), evaluate("Y"))
    elif name == "ImageFeatures":
        made.fit(evaluate("IMAGES"))


def _state(target: Any, work: Path) -> Any:
    """Return what identifies the state of an object: the digest of its file, or the results of a search."""
    if target is None or inspect.isclass(target):
        return None
    if hasattr(target, "save"):
        try:
            target.save(work / "state")
        except (*_REFUSALS, AttributeError):  # not fitted, or a parameter that no file can hold
            return None
        with (work / "state").open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    if isinstance(target, am.Index):
        return [array.tobytes() for array in target.search(evaluate("Q"), k=8) if array is not None]
    return None


def _check_state(target: Any, before: Any, outcome: str, work: Path) -> None:
    after = _state(target, work)
    if outcome == REFUSED and before is not None and after != before:
        raise GuaranteeError(f"{type(target).__name__} is changed by a call that raised an error")
    if outcome == ACCEPTED and isinstance(after, bytes) and after != before:
        am.load(work / "state")  # whatever is saved, loads
