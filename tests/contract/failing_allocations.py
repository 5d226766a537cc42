"""Run a call with each of its allocations failing in turn: `python failing_allocations.py NAME`.

The functions of `_testcapi` make a single allocation of the interpreter fail. Prints how many calls ended before and
after the change. Exits with an error if an object is half changed.
"""

import _testcapi
import copy
import sys
from collections import Counter

import numpy as np

import aromatch as am

# Calls without a failure after which no allocation is left.
N_WITHOUT = 20


def saved(one):
    header, arrays = one._to_parts()
    return repr(header), {name: array.tobytes() for name, array in arrays.items()}


def calls():
    X, triplets = np.random.default_rng(0).normal(size=(30, 6)), np.random.default_rng(1).integers(30, size=(40, 3))

    def adapter():
        one = am.Adapter(X, random_state=0)
        one.judge(X[0] + 0.1, good=[1, 2], bad=[3])
        return one

    def learner():
        return am.FactoredAROMA().fit_triplets(triplets, X)

    return {
        "judge": (adapter, lambda one: one.judge(X[0] + 0.5, good=[1, 7], bad=[2, 3])),
        "click": (adapter, lambda one: one.click(X[0] + 0.5, [4, 5, 1], [5])),
        "add": (adapter, lambda one: one.add(X[:3] + 1)),
        "remove": (adapter, lambda one: one.remove([0, 1, 9])),
        "partial_fit_triplets": (learner, lambda one: one.partial_fit_triplets(triplets, X)),
        "learn_one": (learner, lambda one: one.learn_one(X[0], X[1], X[2])),
    }


def main(name):
    make, call = calls()[name]
    start = make()
    whole = copy.deepcopy(start)
    call(whole)
    before, after = saved(start), saved(whole)
    found, number, n_without = Counter(), 0, 0
    while n_without < N_WITHOUT:
        number, one, failed = number + 1, copy.deepcopy(start), False
        _testcapi.set_nomemory(number, number + 1)
        try:
            call(one)
        except (MemoryError, SystemError, RuntimeError):  # NumPy does not always name the lack of memory
            failed = True
        finally:
            _testcapi.remove_mem_hooks()
        state = saved(one)
        if state not in (before, after) or (not failed and state != after):
            sys.exit(f"half changed when allocation {number} failed")
        found["before" if state == before else "after"] += failed
        n_without = 0 if failed else n_without + 1
    print(found["before"], found["after"])


if __name__ == "__main__":
    main(sys.argv[1])
