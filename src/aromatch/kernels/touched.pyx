"""Matrices that store touched cells only, in one hash table per row.

The tables of all rows share one pool. The table of row i begins at ``rows[i, 0]``, has ``rows[i, 1]`` slots and holds
``rows[i, 2]`` cells. A slot of `columns` is the column of a cell + 1, or 0 if it is free, so zeroed memory is an empty
pool. Slots are found by hashing and linear probing, except in a table with a slot for each of the n columns. A table
above its load factor moves to a larger block of the pool. Sizes are 2, 3, 4, 6, 8, 12 and so on, so a freed block fits
the next row that grows to its size. ``room[0]`` is the used length of the pool; ``room[1 + kind]`` is the head of the
list of free blocks of that size, start + 1 of the first one, which stores the next one; 0 ends the list.

The cells of a triplet are gathered into a block, updated by the arithmetic of the dense kernels, bit-identically, and
written back if they changed. A triplet without an update inserts nothing. Kernels cannot enlarge the pool or the block:
they stop before the triplet that needs more and write the required size to `needs`.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from . cimport diagonal, oasis
from .diagonal cimport Scratch, scratch_size, take_scratch
from .rounds cimport count_round
from .rows cimport Pair, RowView, Workspace, floating, gather, read_pair
from .vectors cimport bilinear_form

NEEDS_SLOTS, NEEDS_BLOCK = range(2)
SIZE_OF_ROOM = 1 + 2 * 63  # every size that fits in an int64


cdef struct Table:
    int64_t *rows
    int32_t *columns
    Py_ssize_t n
    Py_ssize_t pool


# A block of gathered cells: a Pair with offsets into the block, and the slot of each cell, negative for absent cells.
cdef struct Gathered:
    Pair pair
    int64_t *slots
    Py_ssize_t *starts
    Py_ssize_t *columns       # 0, 1, 2, ..., of which `numbered` are written
    Py_ssize_t numbered
    Py_ssize_t width


# Number of slots of a table for this many cells: a load factor of at most four fifths, and at most n slots.
cdef inline int64_t slots_for(int64_t cells, Py_ssize_t n) noexcept nogil:
    cdef int64_t least = cells + cells // 4 + 1, size = 2
    while size < least:
        size *= 2
    if size >= 4 and size - size // 4 >= least:
        size -= size // 4
    return size if size < n else n


# Index of a size: 2, 3, 4, 6, 8 have 0, 1, 2, 3, 4.
cdef inline int kind_of(int64_t size) noexcept nogil:
    cdef int kind = 0
    while size > 3:
        size //= 2
        kind += 2
    return kind + (size == 3)


# Allocate a block of the pool for a table: a free block, or new memory.
cdef inline int64_t allocate(int64_t *room, int32_t *columns, int64_t size, Py_ssize_t n) noexcept nogil:
    cdef int64_t *left = room + 1 + kind_of(size)
    cdef int64_t start = room[0]
    if size == n or left[0] == 0:
        room[0] += size
        return start
    start = left[0] - 1
    memcpy(left, columns + start, sizeof(int64_t))
    memset(columns + start, 0, size * sizeof(int32_t))
    return start


# Add a block to the free list. Tables with a slot for every column never move.
cdef inline void release(int64_t *room, int32_t *columns, int64_t start, int64_t size) noexcept nogil:
    cdef int64_t *left = room + 1 + kind_of(size)
    memcpy(columns + start, left, sizeof(int64_t))
    left[0] = start + 1


cdef inline int64_t home(int64_t size, Py_ssize_t n, Py_ssize_t column) noexcept nogil:
    if size == n:
        return column
    # Upper bits of Knuth's multiplicative hash, scaled to the table size.
    return <int64_t>((<uint64_t>(<uint32_t>column * <uint32_t>2654435769) * <uint64_t>size) >> 32)


# The slot of a column in the table of a row, or -1 - slot for the free slot where it would be inserted.
cdef inline int64_t look_up(const int32_t *columns, const int64_t *row, Py_ssize_t n, Py_ssize_t column) noexcept nogil:
    cdef int64_t size = row[1], at = home(size, n, column), steps
    cdef const int32_t *own = columns + row[0]
    for steps in range(size):  # bounded, even if another thread changes the table
        if own[at] == column + 1:
            return row[0] + at
        if own[at] == 0:
            break
        at += 1
        if at == size:
            at = 0
    return -1 - (row[0] + at)


cdef inline int64_t insert(int32_t *columns, int64_t *row, Py_ssize_t n, Py_ssize_t column) noexcept nogil:
    cdef int64_t slot = -1 - look_up(columns, row, n, column)
    columns[slot] = <int32_t>(column + 1)
    row[2] += 1
    return slot


cdef void prepare(Gathered *block, Workspace space, Py_ssize_t m, Py_ssize_t n, int64_t *slots) noexcept:
    block.starts = <Py_ssize_t *>space.take(m)
    block.columns = <Py_ssize_t *>space.take(n)
    block.numbered = 0
    block.slots = slots


# Find the slots of the cells of a triplet. Returns False if the block needs more than `room` cells.
cdef bint find_cells(Gathered *block, const Table *table, const Pair *x, Py_ssize_t room) noexcept nogil:
    cdef Py_ssize_t i, k, at = 0
    cdef bint is_allocated
    cdef const int64_t *row
    block.width = x.k_p if x.p_full == NULL else x.n
    if x.k_q * block.width > room:
        return False
    block.pair = x[0]
    block.pair.q_starts = block.starts
    if x.p_full == NULL:
        block.pair.p_columns = block.columns
        while block.numbered < x.k_p:
            block.columns[block.numbered] = block.numbered
            block.numbered += 1
    for i in range(x.k_q):
        block.starts[i] = i * block.width
        row = table.rows + 3 * x.q_columns[i]
        is_allocated = row[1] > 0 and row[0] + row[1] <= table.pool
        for k in range(x.k_p):
            block.slots[at] = look_up(table.columns, row, table.n, x.p_columns[k]) if is_allocated else -1
            at += 1
    return True


# Copy the cells of a triplet into the block, with stride `apart`; absent cells have their initial value.
cdef void take_cells(
    const Gathered *block, const Pair *x, const floating *values, floating diagonal, floating elsewhere, floating *cells,
    Py_ssize_t apart=1,
) noexcept nogil:
    cdef Py_ssize_t i, k, at = 0
    cdef floating *row
    if x.p_full != NULL:
        # p is zero in the other columns, so any finite value is valid there.
        for i in range(x.k_q * block.width):
            cells[apart * i] = 0
    for i in range(x.k_q):
        row = cells + apart * block.starts[i]
        for k in range(x.k_p):
            if block.slots[at] >= 0:
                row[apart * block.pair.p_columns[k]] = values[block.slots[at]]
            else:
                row[apart * block.pair.p_columns[k]] = diagonal if x.q_columns[i] == x.p_columns[k] else elsewhere
            at += 1


cdef void put_cells(
    const Gathered *block, const floating *cells, floating *values, Py_ssize_t apart=1,
) noexcept nogil:
    cdef Py_ssize_t i, k, at = 0
    for i in range(block.pair.k_q):
        for k in range(block.pair.k_p):
            values[block.slots[at]] = cells[apart * (block.starts[i] + block.pair.p_columns[k])]
            at += 1


# Insert the absent cells of the triplet. Returns 0, or the number of slots that the pool lacks; then nothing changes.
cdef int64_t make_room(
    Gathered *block, const Table *table, const Pair *x, int64_t *room, int64_t pool, floating *W, floating *Sigma,
) noexcept nogil:
    cdef Py_ssize_t i, k
    cdef int64_t wanted = 0, size, missing, at, slot, new
    cdef int64_t[3] old
    cdef int64_t *row
    for i in range(x.k_q):
        wanted += new_size(table.rows + 3 * x.q_columns[i], missing_in(block, i), table.n)
    if room[0] + wanted > pool:
        return wanted
    for i in range(x.k_q):
        missing = missing_in(block, i)
        if missing == 0:
            continue
        row = table.rows + 3 * x.q_columns[i]
        size = new_size(row, missing, table.n)
        if size > 0:
            old[0], old[1], old[2] = row[0], row[1], row[2]
            row[0], row[1], row[2] = allocate(room, table.columns, size, table.n), size, 0
            for at in range(old[0], old[0] + old[1]):
                if table.columns[at] != 0:
                    new = insert(table.columns, row, table.n, table.columns[at] - 1)
                    W[new] = W[at]
                    if Sigma != NULL:
                        Sigma[new] = Sigma[at]
            if old[1] > 0:
                release(room, table.columns, old[0], old[1])
        for k in range(x.k_p):
            slot = look_up(table.columns, row, table.n, x.p_columns[k])
            if slot < 0:
                slot = insert(table.columns, row, table.n, x.p_columns[k])
            block.slots[i * x.k_p + k] = slot
    return 0


cdef inline int64_t missing_in(const Gathered *block, Py_ssize_t i) noexcept nogil:
    cdef Py_ssize_t k
    cdef int64_t missing = 0
    for k in range(block.pair.k_p):
        missing += block.slots[i * block.pair.k_p + k] < 0
    return missing


# Size of the larger table that a row needs for more cells, 0 if the current one suffices.
cdef inline int64_t new_size(const int64_t *row, int64_t missing, Py_ssize_t n) noexcept nogil:
    cdef int64_t size = slots_for(row[2] + missing, n)
    return size if missing > 0 and size > row[1] else 0


def learn_diagonal(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, int64_t[:, ::1] rows, int32_t[::1] columns, int64_t[::1] room, int64_t[::1] counts,
    floating[::1] start, floating[::1] W, floating[::1] Sigma,
    double r, bint only_mistakes, bint inverse, int64_t[::1] slots, floating[:, ::1] cells, int64_t[::1] needs,
):
    """Learn the triplets by d-AROMA, in place; stop before one whose score overflows or that needs more memory.

    Returns the number of triplets learned.
    """
    cdef Py_ssize_t m = Q.rows.n_columns, n = P.rows.n_columns, t
    cdef Workspace space = Workspace(m, n, sizeof(double), m + n + scratch_size(m, n))
    cdef Scratch scratch = take_scratch(space, m, n)
    cdef Pair *x = &space.pair
    cdef floating *q = <floating *>x.q
    cdef floating *means = &cells[0, 0]     # each followed by its variance
    cdef Table table
    cdef Gathered block
    cdef double r_t
    cdef double[2] result
    cdef int updated
    table.rows, table.columns, table.n, table.pool = &rows[0, 0], &columns[0], n, columns.shape[0]
    prepare(&block, space, m, n, &slots[0])
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(x, q, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            if not find_cells(&block, &table, x, slots.shape[0]):
                needs[1] = x.k_q * block.width
                break
            take_cells(&block, x, &W[0], start[0], <floating>0, means, 2)
            take_cells(&block, x, &Sigma[0], <floating>1, <floating>1, means + 1, 2)
            r_t = r if weights is None else r / weights[t]
            updated = diagonal.step(means, &block.pair, &scratch, r_t, only_mistakes, inverse, result)
            if updated < 0:
                break
            if updated:
                needs[0] = make_room(&block, &table, x, &room[0], columns.shape[0], &W[0], &Sigma[0])
                if needs[0] > 0:
                    break
                put_cells(&block, means, &W[0], 2)
                put_cells(&block, means + 1, &Sigma[0], 2)
            count_round(&counts[0], &record[t, 0] if record is not None else NULL, result[0], result[1], updated)
        else:
            t = triplets.shape[0]
    return t


def learn_oasis(
    RowView Q, RowView P, RowView N, const int64_t[:, ::1] triplets, const double[::1] weights,
    double[:, ::1] record, int64_t[:, ::1] rows, int32_t[::1] columns, int64_t[::1] room, int64_t[::1] counts,
    floating[::1] start, floating[::1] W, double C, int64_t[::1] slots, floating[:, ::1] cells, int64_t[::1] needs,
):
    """Learn the triplets by OASIS, in place; stop before one whose score overflows or that needs more memory.

    Returns the number of triplets learned.
    """
    cdef Py_ssize_t m = Q.rows.n_columns, n = P.rows.n_columns, t
    cdef Workspace space = Workspace(m, n, sizeof(double), 2 * m + n)
    cdef Pair *x = &space.pair
    cdef floating *q = <floating *>x.q
    cdef floating *tau_q = <floating *>space.take(m)
    cdef Table table
    cdef Gathered block
    cdef double margin
    cdef int updated
    table.rows, table.columns, table.n, table.pool = &rows[0, 0], &columns[0], n, columns.shape[0]
    prepare(&block, space, m, n, &slots[0])
    with nogil:
        for t in range(triplets.shape[0]):
            read_pair(x, q, &Q.rows, triplets[t, 0], &P.rows, triplets[t, 1], &N.rows, triplets[t, 2])
            if not find_cells(&block, &table, x, slots.shape[0]):
                needs[1] = x.k_q * block.width
                break
            take_cells(&block, x, &W[0], start[0], <floating>0, &cells[0, 0])
            updated = oasis.step(&cells[0, 0], &block.pair, tau_q, C if weights is None else C * weights[t], &margin)
            if updated < 0:
                break
            if updated:
                needs[0] = make_room(&block, &table, x, &room[0], columns.shape[0], &W[0], <floating *>NULL)
                if needs[0] > 0:
                    break
                put_cells(&block, &cells[0, 0], &W[0])
            count_round(&counts[0], &record[t, 0] if record is not None else NULL, margin, 0, updated)
        else:
            t = triplets.shape[0]
    return t


def forms(
    RowView Q, RowView P, const int64_t[:, ::1] indices, const int64_t[:, ::1] rows, const int32_t[::1] columns,
    const floating[::1] A, double on_diagonal, double elsewhere, bint squared, floating[::1] out,
    bint apart, int64_t[::1] slots, floating[:, ::1] cells, int64_t[::1] needs,
):
    """Compute ``q'Ap`` for every row of `indices`, bit-identical to `bilinear.forms`; stop if the block is too small.

    `apart` marks the cells of d-AROMA, as in `bilinear.forms`. Returns the number of rows computed.
    """
    cdef Py_ssize_t m = Q.rows.n_columns, n = P.rows.n_columns, t, k
    cdef Workspace space = Workspace(m, n, sizeof(double), m + n)
    cdef Pair *x = &space.pair
    cdef floating *q = <floating *>x.q
    cdef floating *p = <floating *>x.p
    cdef bint subtracts = indices.shape[1] == 3
    cdef Table table
    cdef Gathered block
    table.rows, table.columns, table.n = <int64_t *>&rows[0, 0], <int32_t *>&columns[0], n
    table.pool = min(columns.shape[0], A.shape[0])
    prepare(&block, space, m, n, &slots[0])
    with nogil:
        for t in range(indices.shape[0]):
            read_pair(
                x, q, &Q.rows, indices[t, 0], &P.rows, indices[t, 1],
                &P.rows if subtracts else NULL, indices[t, 2] if subtracts else 0)
            if squared:
                for k in range(x.k_q):
                    q[k] = q[k] * q[k]
                for k in range(x.k_p):
                    p[k] = p[k] * p[k]
            if apart:
                x.p_full = NULL
            if not find_cells(&block, &table, x, slots.shape[0]):
                needs[1] = x.k_q * block.width
                break
            take_cells(&block, x, &A[0], <floating>on_diagonal, <floating>elsewhere, &cells[0, 0])
            out[t] = <floating>bilinear_form(&cells[0, 0], &block.pair)
        else:
            t = indices.shape[0]
    return t


def add_products(
    RowView Q, Py_ssize_t first, const int64_t[:, ::1] rows, const int32_t[::1] columns, const floating[::1] W,
    double on_diagonal, floating[:, ::1] out,
):
    """Add ``q'W`` to each row of `out`, for the rows of Q from `first` on."""
    cdef Py_ssize_t m = Q.rows.n_columns, n = out.shape[1], t, i, found
    cdef Workspace space = Workspace(m, 1, sizeof(double))
    cdef floating *q = <floating *>space.pair.q
    cdef Py_ssize_t *q_columns = space.pair.q_columns
    cdef int64_t at, begin, size
    with nogil:
        for t in range(out.shape[0]):
            found = gather(&Q.rows, first + t, q, q_columns)
            for i in range(found):
                begin, size = rows[q_columns[i], 0], rows[q_columns[i], 1]
                if begin + size > min(columns.shape[0], W.shape[0]):
                    continue
                for at in range(begin, begin + size):
                    if columns[at] != 0:
                        out[t, columns[at] - 1] += q[i] * W[at]
                if on_diagonal != 0 and (
                        size == 0 or look_up(&columns[0], &rows[q_columns[i], 0], n, q_columns[i]) < 0):
                    out[t, q_columns[i]] += q[i] * <floating>on_diagonal


def close_gaps(
    const int64_t[::1] order, int64_t[:, ::1] rows, int32_t[::1] columns, int64_t[::1] room, floating[::1] W,
    floating[::1] Sigma,
):
    """Compact the pool; `order` has the rows in the order of their tables in the pool."""
    cdef Py_ssize_t i
    cdef int64_t end = 0, start, size
    with nogil:
        for i in range(order.shape[0]):
            start, size = rows[order[i], 0], rows[order[i], 1]
            if start > end:
                memmove(&columns[end], &columns[start], size * sizeof(int32_t))
                memmove(&W[end], &W[start], size * sizeof(floating))
                if Sigma is not None:
                    memmove(&Sigma[end], &Sigma[start], size * sizeof(floating))
                rows[order[i], 0] = end
            end += size
        if end < room[0]:
            memset(&columns[end], 0, (room[0] - end) * sizeof(int32_t))
        memset(&room[0], 0, room.shape[0] * sizeof(int64_t))
        room[0] = end


def table_sizes(const int64_t[::1] cells, Py_ssize_t n, int64_t[::1] sizes):
    """Compute the number of slots of the table of each row from its number of cells."""
    cdef Py_ssize_t i
    for i in range(cells.shape[0]):
        sizes[i] = slots_for(cells[i], n) if cells[i] > 0 else 0


def list_cells(
    const int64_t[:, ::1] rows, const int32_t[::1] columns, int32_t[::1] columns_out, int64_t[::1] slots_out,
):
    """List the column and the slot of every cell, row by row."""
    cdef Py_ssize_t i, found = 0
    cdef int64_t at
    with nogil:
        for i in range(rows.shape[0]):
            for at in range(rows[i, 0], rows[i, 0] + rows[i, 1]):
                if columns[at] != 0:
                    columns_out[found] = columns[at] - 1
                    slots_out[found] = at
                    found += 1


def insert_cells(
    int64_t[:, ::1] rows, int32_t[::1] columns, Py_ssize_t n, const int64_t[::1] indptr,
    const int32_t[::1] columns_in, int64_t[::1] slots_out,
):
    """Insert the cells of a CSR matrix into empty tables of sufficient size and write the slot of each."""
    cdef Py_ssize_t i
    cdef int64_t at
    with nogil:
        for i in range(rows.shape[0]):
            for at in range(indptr[i], indptr[i + 1]):
                slots_out[at] = insert(&columns[0], &rows[i, 0], n, columns_in[at])
