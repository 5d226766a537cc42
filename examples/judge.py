"""A program that answers the comparisons of `aromatch ask --judge`.

    aromatch ask MODEL --data FOLDER --judge "python examples/judge.py"

Reads one comparison per line, as JSON, and prints 1 or 2 for the better object, or 0 for neither. This judge prefers a
text in the folder of the query, and otherwise the text that shares more of its words with the query. A language
model could compare the three texts instead.
"""

import json
import sys


def answer(comparison):
    query, first, second = (comparison[name] for name in ("query", "first", "second"))
    scores = [(folder(one) == folder(query), similarity(one, query)) for one in (first, second)]
    return 0 if scores[0] == scores[1] else 1 if scores[0] > scores[1] else 2


def folder(item):
    return item["id"].split("/")[0]


def similarity(one, other):
    words, others = (set((item["text"] or "").lower().split()) for item in (one, other))
    return len(words & others) / max(1, len(words | others))


def main(lines=()):
    answers = []
    for line in lines:
        answers.append(answer(json.loads(line)))
        print(answers[-1], flush=True)  # the next comparison is sent after the answer
    return answers


if __name__ == "__main__":
    main(sys.stdin)
