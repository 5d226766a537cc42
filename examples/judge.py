"""A program that answers the comparisons of `aromatch ask --judge`, in place of a person.

    aromatch ask MODEL --judge "python examples/judge.py"

Reads a comparison a line, as JSON, and prints 1 or 2 for the better one, or 0 for neither. This one prefers texts that
lie in the folder of the query. A language model would be asked here instead, with the three texts.
"""

import json
import sys


def answer(asked):
    folder, first, second = (asked[name]["id"].split("/")[0] for name in ("query", "first", "second"))
    if (first == folder) == (second == folder):
        return 0
    return 1 if first == folder else 2


def main(lines=()):
    answers = []
    for line in lines:
        answers.append(answer(json.loads(line)))
        print(answers[-1], flush=True)  # the next comparison comes after the answer
    return answers


if __name__ == "__main__":
    main(sys.stdin)
