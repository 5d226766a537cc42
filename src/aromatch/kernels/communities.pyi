from typing import Any

def move_nodes(
    indptr: Any,
    neighbours: Any,
    weights: Any,
    strengths: Any,
    order: Any,
    labels: Any,
    resolution: float,
    max_rounds: int,
) -> int: ...
