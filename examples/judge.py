"""A program that answers the comparisons of `aromatch ask --judge`.

    aromatch ask MODEL --judge "python examples/judge.py"

Reads one comparison per line, as JSON, and prints 1 or 2 for the better object, or 0 for neither. This judge prefers
texts in the folder of the query. A language model could compare the three texts instead.
"""

import json
import sys


def answer(comparison):
    folder, first, second = (comparison[name]["id"].split("/")[0] for name in ("query", "first", "second"))
    if (first == folder) == (second == folder):
        return 0
    return 1 if first == folder else 2


def main(lines=()):
    answers = []
    for line in lines:
        answers.append(answer(json.loads(line)))
        print(answers[-1], flush=True)  # the next comparison is sent after the answer
    return answers


if __name__ == "__main__":
    main(sys.stdin)
