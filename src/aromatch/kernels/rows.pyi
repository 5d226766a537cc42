from typing import Any

FINE: int
NOT_FINITE: int
OUT_OF_RANGE: int
NOT_CANONICAL: int

class RowView:
    @staticmethod
    def of_dense(array: Any) -> RowView: ...
    @staticmethod
    def of_csr(shape: tuple[int, ...], data: Any, indices: Any, indptr: Any) -> RowView: ...
    @property
    def shape(self) -> tuple[int, int]: ...

def check_rows(view: RowView, numbers: Any, seen: Any) -> tuple[int, int, float]: ...
def squared_scales(Q: RowView, P: RowView, N: RowView, triplets: Any, out: Any) -> None: ...
