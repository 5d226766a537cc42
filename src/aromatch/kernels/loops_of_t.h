/* The loops for one precision T; loops.h includes this file once for each precision. */

/* Eight double or sixteen float lanes: two AVX2 registers. */
typedef T OF_T(half) __attribute__((vector_size(32), aligned(sizeof(T))));
#define HALF ((ptrdiff_t)(32 / sizeof(T)))
#define LANES (2 * HALF)

/* -- over contiguous memory ---------------------------------------------------------------------------------------- */

/* Elementwise products of x with up to four rows, summed by lane; the lanes do not depend on the number of rows. */
static inline __attribute__((always_inline)) void OF_T(add_in_lanes)(const T *const *A, ptrdiff_t width, const T *x,
                                                                     T lane[][LANES], const int rows) {
    OF_T(half) low[4], high[4];
    ptrdiff_t j = 0;
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) low[r] = high[r] = (OF_T(half)){0};
    for (; j + LANES <= width; j += LANES) {
        const OF_T(half) x_low = *(const OF_T(half) *)(x + j), x_high = *(const OF_T(half) *)(x + j + HALF);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
            low[r] += *(const OF_T(half) *)(A[r] + j) * x_low;
            high[r] += *(const OF_T(half) *)(A[r] + j + HALF) * x_high;
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
        memcpy(lane[r], &low[r], sizeof low[r]);
        memcpy(lane[r] + HALF, &high[r], sizeof high[r]);
        for (ptrdiff_t k = 0; j + k < width; ++k) lane[r][k] += A[r][j + k] * x[j + k];
    }
}

static inline __attribute__((always_inline)) void OF_T(few_dots)(const T *const *A, ptrdiff_t width, const T *x,
                                                                 double *out, const int rows) {
    T lane[4][LANES];
    OF_T(add_in_lanes)(A, width, x, lane, rows);
    for (int r = 0; r < rows; ++r) {
        out[r] = 0;
        for (ptrdiff_t k = 0; k < HALF; ++k) out[r] += (double)lane[r][k] + lane[r][k + HALF];
    }
}

/* x'y */
FOR_SEVERAL_PROCESSORS static double OF_T(dot)(const T *x, const T *y, ptrdiff_t n) {
    double result;
    OF_T(few_dots)(&x, n, y, &result, 1);
    return result;
}

/* A x for each row x of X, bit-identical to `dot`; the results of consecutive x are `stride` apart. Four x share each read
   of A, the larger matrix. */
FOR_SEVERAL_PROCESSORS static void OF_T(dots)(const T *A, ptrdiff_t n_rows, ptrdiff_t width, const T *X, ptrdiff_t n_x,
                                              double *out, ptrdiff_t stride) {
    for (; n_x >= 4; n_x -= 4, X += 4 * width, out += 4 * stride) {
        const T *const xs[4] = {X, X + width, X + 2 * width, X + 3 * width};
        double found[4];
        for (ptrdiff_t i = 0; i < n_rows; ++i) {
            OF_T(few_dots)(xs, width, A + i * width, found, 4);
            for (int k = 0; k < 4; ++k) out[k * stride + i] = found[k];
        }
    }
    for (; n_x > 0; --n_x, X += width, out += stride) {
        const T *row = A;
        ptrdiff_t i = 0;
        for (; i + 4 <= n_rows; i += 4, row += 4 * width) {
            const T *const rows[4] = {row, row + width, row + 2 * width, row + 3 * width};
            OF_T(few_dots)(rows, width, X, out + i, 4);
        }
        for (; i < n_rows; ++i, row += width) OF_T(few_dots)(&row, width, X, out + i, 1);
    }
}

/* q'Ap for the rows of A that begin at `starts` and a dense p */
FOR_SEVERAL_PROCESSORS static double OF_T(form)(const T *A, const ptrdiff_t *starts, const T *q, ptrdiff_t k_q,
                                                const T *p, ptrdiff_t width) {
    double total = 0, found[4];
    ptrdiff_t i = 0;
    for (; i + 4 <= k_q; i += 4) {
        const T *const rows[4] = {A + starts[i], A + starts[i + 1], A + starts[i + 2], A + starts[i + 3]};
        OF_T(few_dots)(rows, width, p, found, 4);
        total += (q[i] * found[0] + q[i + 1] * found[1]) + (q[i + 2] * found[2] + q[i + 3] * found[3]);
    }
    for (; i < k_q; ++i) {
        const T *const row = A + starts[i];
        OF_T(few_dots)(&row, width, p, found, 1);
        total += q[i] * found[0];
    }
    return total;
}

/* x'x in double precision */
FOR_SEVERAL_PROCESSORS static double OF_T(sum_of_squares)(const T *x, ptrdiff_t n) {
    double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ptrdiff_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int k = 0; k < 8; ++k) lane[k] += (double)x[j + k] * x[j + k];
    for (; j < n; ++j) lane[0] += (double)x[j] * x[j];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* z = x - y, both rounded to the precision of z, or z = x without y; returns the number of non-zeros of z. */
#define DEFINE_DIFFERENCE(OTHER)                                                                                    \
    FOR_SEVERAL_PROCESSORS static ptrdiff_t OF_T(difference_of_##OTHER)(const OTHER *restrict x,                    \
                                                                        const OTHER *restrict y, T *restrict z,     \
                                                                        ptrdiff_t n) {                              \
        ptrdiff_t found = 0;                                                                                        \
        for (ptrdiff_t j = 0; j < n; ++j) z[j] = y ? (T)x[j] - (T)y[j] : (T)x[j];                                   \
        for (ptrdiff_t j = 0; j < n; ++j) found += z[j] != 0;                                                       \
        return found;                                                                                               \
    }
DEFINE_DIFFERENCE(float)
DEFINE_DIFFERENCE(double)
#undef DEFINE_DIFFERENCE

/* a <- a + f x */
FOR_SEVERAL_PROCESSORS static void OF_T(add)(T *restrict a, T f, const T *restrict x, ptrdiff_t n) {
    for (ptrdiff_t j = 0; j < n; ++j) a[j] += f * x[j];
}

/* a <- a + f_0 x_0 + f_1 x_1 + f_2 x_2 + f_3 x_3: a is read and written once for four rows */
FOR_SEVERAL_PROCESSORS static void OF_T(add_four)(T *restrict a, const T *f, const T *restrict x0,
                                                  const T *restrict x1, const T *restrict x2, const T *restrict x3,
                                                  ptrdiff_t n) {
    const T f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3];
    for (ptrdiff_t j = 0; j < n; ++j) a[j] += (f0 * x0[j] + f1 * x1[j]) + (f2 * x2[j] + f3 * x3[j]);
}

/* Up to six rows of C = A B in one strip of columns of B. Every cell is one sum in the order of k, so its bits do not
   depend on the number of rows that are multiplied together; BLAS has no such guarantee. `next` is the column of B to
   prefetch, in rows of that width, or NULL: strips are too narrow for the hardware prefetcher. */
static inline __attribute__((always_inline)) void OF_T(multiply_strip)(const T *const *A, ptrdiff_t depth, const T *strip,
                                                                       T *const *C, ptrdiff_t found, const int rows,
                                                                       const T *next, ptrdiff_t width) {
    OF_T(half) low[6], high[6];
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) low[r] = high[r] = (OF_T(half)){0};
    for (ptrdiff_t k = 0; k < depth; ++k) {
        const OF_T(half) b_low = *(const OF_T(half) *)(strip + k * LANES);
        const OF_T(half) b_high = *(const OF_T(half) *)(strip + k * LANES + HALF);
        if (next) __builtin_prefetch(next + k * width);
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r) {
            low[r] += A[r][k] * b_low;
            high[r] += A[r][k] * b_high;
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
        T lane[LANES];
        memcpy(lane, &low[r], sizeof low[r]);
        memcpy(lane + HALF, &high[r], sizeof high[r]);
        if (found == LANES)
            memcpy(C[r], lane, sizeof lane);
        else
            memcpy(C[r], lane, found * sizeof(T));
    }
}

/* C = A B for the rows in `rows`, or for the first n_rows without it; B has the shape depth x width and `strip` holds
   depth * LANES values. */
FOR_SEVERAL_PROCESSORS static void OF_T(multiply)(const T *A, const ptrdiff_t *rows, ptrdiff_t n_rows, ptrdiff_t depth,
                                                  const T *B, ptrdiff_t width, T *C, T *strip) {
    if (n_rows <= 3) { /* strips do not pay off for so few: rows of B, the same sums */
        for (ptrdiff_t i = 0; i < n_rows; ++i) {
            const ptrdiff_t row = rows ? rows[i] : i;
            T *restrict c = C + row * width;
            for (ptrdiff_t j = 0; j < width; ++j) c[j] = 0;
            for (ptrdiff_t k = 0; k < depth; ++k) {
                const T f = A[row * depth + k];
                const T *restrict b = B + k * width;
                for (ptrdiff_t j = 0; j < width; ++j) c[j] += f * b[j];
            }
        }
        return;
    }
    for (ptrdiff_t j = 0; j < width; j += LANES) {
        const ptrdiff_t found = width - j < LANES ? width - j : LANES;
        if (found == LANES) {
            for (ptrdiff_t k = 0; k < depth; ++k) memcpy(strip + k * LANES, B + k * width + j, LANES * sizeof(T));
        } else {
            memset(strip, 0, depth * LANES * sizeof(T));
            for (ptrdiff_t k = 0; k < depth; ++k) memcpy(strip + k * LANES, B + k * width + j, found * sizeof(T));
        }
        for (ptrdiff_t i = 0, batch; i < n_rows; i += batch) {
            const T *a[6];
            T *c[6];
            batch = n_rows - i >= 6 ? 6 : n_rows - i >= 2 ? 2 : 1;
            for (ptrdiff_t r = 0; r < batch; ++r) {
                const ptrdiff_t row = rows ? rows[i + r] : i + r;
                a[r] = A + row * depth;
                c[r] = C + row * width + j;
            }
            if (batch == 6 && i == 0)
                OF_T(multiply_strip)(a, depth, strip, c, found, 6, B + j + 2 * LANES - 1, width);
            else if (batch == 6)
                OF_T(multiply_strip)(a, depth, strip, c, found, 6, NULL, 0);
            else if (batch == 2)
                OF_T(multiply_strip)(a, depth, strip, c, found, 2, NULL, 0);
            else
                OF_T(multiply_strip)(a, depth, strip, c, found, 1, NULL, 0);
        }
    }
}

/* Copy the upper triangle of a square matrix to the lower one, in tiles that avoid cache conflicts for every width. */
FOR_SEVERAL_PROCESSORS static void OF_T(mirror)(T *S, ptrdiff_t width) {
    enum { SIDE = 4 };
    const ptrdiff_t even = width / SIDE * SIDE;
    T tile[SIDE][SIDE];
    for (ptrdiff_t i = 0; i < even; i += SIDE) {
        for (ptrdiff_t j = 0; j < i; j += SIDE) {
            for (int a = 0; a < SIDE; ++a)
                for (int b = 0; b < SIDE; ++b) tile[b][a] = S[(j + a) * width + i + b];
            for (int b = 0; b < SIDE; ++b) memcpy(S + (i + b) * width + j, tile[b], sizeof tile[b]);
        }
        for (int a = 1; a < SIDE; ++a)
            for (int b = 0; b < a; ++b) S[(i + a) * width + i + b] = S[(i + b) * width + i + a];
    }
    for (ptrdiff_t i = even; i < width; ++i)
        for (ptrdiff_t j = 0; j < i; ++j) S[i * width + j] = S[j * width + i];
}

/* -- over scattered cells, A + starts[i] + columns[k] for the non-zeros of q and p ---------------------------------

   These loops are bound by memory latency and by the look-ups of p. Several rows share each look-up, and an update goes
   from the last row to the first, because the preceding sum leaves the last rows in the cache. */

/* x'y for a sparse y, in four independent chains of additions */
static inline double OF_T(sparse_dot)(const T *x, const T *y, const ptrdiff_t *columns, ptrdiff_t found) {
    double a0 = 0, a1 = 0, a2 = 0, a3 = 0;
    ptrdiff_t k = 0;
    for (; k + 4 <= found; k += 4) {
        a0 += x[columns[k]] * y[k];
        a1 += x[columns[k + 1]] * y[k + 1];
        a2 += x[columns[k + 2]] * y[k + 2];
        a3 += x[columns[k + 3]] * y[k + 3];
    }
    for (; k < found; ++k) a0 += x[columns[k]] * y[k];
    return (a0 + a1) + (a2 + a3);
}

/* q'Ap */
FOR_SEVERAL_PROCESSORS static double OF_T(sparse_form)(const T *A, const ptrdiff_t *starts, const T *q, ptrdiff_t k_q,
                                                       const T *p, const ptrdiff_t *columns, ptrdiff_t k_p) {
    double total = 0;
    ptrdiff_t i = 0;
    for (; i + 4 <= k_q; i += 4) {
        const T *r0 = A + starts[i], *r1 = A + starts[i + 1], *r2 = A + starts[i + 2], *r3 = A + starts[i + 3];
        T a0 = 0, a1 = 0, a2 = 0, a3 = 0;
        for (ptrdiff_t k = 0; k < k_p; ++k) {
            const ptrdiff_t j = columns[k];
            const T p_k = p[k];
            a0 += r0[j] * p_k;
            a1 += r1[j] * p_k;
            a2 += r2[j] * p_k;
            a3 += r3[j] * p_k;
        }
        total += ((double)q[i] * a0 + (double)q[i + 1] * a1) + ((double)q[i + 2] * a2 + (double)q[i + 3] * a3);
    }
    for (; i < k_q; ++i) total += q[i] * OF_T(sparse_dot)(A + starts[i], p, columns, k_p);
    return total;
}

/* A <- A + f p' */
FOR_SEVERAL_PROCESSORS static void OF_T(sparse_add)(T *A, const ptrdiff_t *starts, const T *f, ptrdiff_t k_q,
                                                    const T *p, const ptrdiff_t *columns, ptrdiff_t k_p) {
    ptrdiff_t i = k_q;
    for (; i >= 4; i -= 4) {
        T *restrict r0 = A + starts[i - 1], *restrict r1 = A + starts[i - 2];
        T *restrict r2 = A + starts[i - 3], *restrict r3 = A + starts[i - 4];
        const T f0 = f[i - 1], f1 = f[i - 2], f2 = f[i - 3], f3 = f[i - 4];
        for (ptrdiff_t k = 0; k < k_p; ++k) {
            const ptrdiff_t j = columns[k];
            const T p_k = p[k];
            r0[j] += f0 * p_k;
            r1[j] += f1 * p_k;
            r2[j] += f2 * p_k;
            r3[j] += f3 * p_k;
        }
    }
    for (; i > 0; --i)
        for (ptrdiff_t k = 0; k < k_p; ++k) A[starts[i - 1] + columns[k]] += f[i - 1] * p[k];
}

/* -- over the cells of d-AROMA: mean w and variance s of a cell are adjacent, in one cache line ---------------------

   One sum of products with (p, p^2) gives margin and variance; `out` receives both. */

/* A cell (w, s), or (p, p^2) */
typedef T OF_T(pair) __attribute__((vector_size(2 * sizeof(T)), aligned(sizeof(T))));

/* q'Wp and sum_ij q_i^2 Sigma_ij p_j^2, for a dense p */
FOR_SEVERAL_PROCESSORS static void OF_T(cell_forms)(const T *cells, const ptrdiff_t *starts, const T *q, const T *q2,
                                                    ptrdiff_t k_q, const T *pairs, ptrdiff_t n, double *out) {
    out[0] = out[1] = 0;
    for (ptrdiff_t i = 0; i < k_q; i += 4) {
        const int rows = k_q - i < 4 ? (int)(k_q - i) : 4;
        const T *A[4];
        T lane[4][LANES];
        for (int r = 0; r < rows; ++r) A[r] = cells + 2 * starts[i + r];
        if (rows == 4)
            OF_T(add_in_lanes)(A, 2 * n, pairs, lane, 4);
        else
            for (int r = 0; r < rows; ++r) OF_T(add_in_lanes)(A + r, 2 * n, pairs, lane + r, 1);
        for (int r = 0; r < rows; ++r) {
            double w = 0, s = 0;
            for (ptrdiff_t k = 0; k < LANES; k += 2) {
                w += lane[r][k];
                s += lane[r][k + 1];
            }
            out[0] += q[i + r] * w;
            out[1] += q2[i + r] * s;
        }
    }
}

/* The same, for a sparse p */
FOR_SEVERAL_PROCESSORS static void OF_T(sparse_cell_forms)(const T *cells, const ptrdiff_t *starts, const T *q,
                                                           const T *q2, ptrdiff_t k_q, const T *pairs,
                                                           const ptrdiff_t *columns, ptrdiff_t k_p, double *out) {
    const OF_T(pair) *A = (const OF_T(pair) *)cells, *P = (const OF_T(pair) *)pairs;
    ptrdiff_t i = 0;
    out[0] = out[1] = 0;
    for (; i + 4 <= k_q; i += 4) {
        const OF_T(pair) *r0 = A + starts[i], *r1 = A + starts[i + 1], *r2 = A + starts[i + 2], *r3 = A + starts[i + 3];
        OF_T(pair) a0 = {0, 0}, a1 = {0, 0}, a2 = {0, 0}, a3 = {0, 0};
        for (ptrdiff_t k = 0; k < k_p; ++k) {
            const ptrdiff_t j = columns[k];
            const OF_T(pair) p_k = P[k];
            a0 += r0[j] * p_k;
            a1 += r1[j] * p_k;
            a2 += r2[j] * p_k;
            a3 += r3[j] * p_k;
        }
        out[0] += ((double)q[i] * a0[0] + (double)q[i + 1] * a1[0]) +
                  ((double)q[i + 2] * a2[0] + (double)q[i + 3] * a3[0]);
        out[1] += ((double)q2[i] * a0[1] + (double)q2[i + 1] * a1[1]) +
                  ((double)q2[i + 2] * a2[1] + (double)q2[i + 3] * a3[1]);
    }
    for (; i < k_q; ++i) {
        OF_T(pair) a = {0, 0}, b = {0, 0};
        ptrdiff_t k = 0;
        for (; k + 2 <= k_p; k += 2) {
            a += A[starts[i] + columns[k]] * P[k];
            b += A[starts[i] + columns[k + 1]] * P[k + 1];
        }
        if (k < k_p) a += A[starts[i] + columns[k]] * P[k];
        a += b;
        out[0] += (double)q[i] * a[0];
        out[1] += (double)q2[i] * a[1];
    }
}

/* (5) and (6) for one cell. Sigma shrinks by the factor 1 - s x^2 / (variance + r), which cancels when one cell carries
   the whole variance. In exact arithmetic the factor is at least r / (variance + r); with that floor Sigma stays positive
   at any scale of x. */
static inline void OF_T(downdate_cell)(T *cell, T f, T g, const T *pair, T floor) {
    const T w = cell[0], s = cell[1], share = 1 - s * (g * pair[1]);
    cell[0] = w + f * s * pair[0];
    cell[1] = s * (share < floor ? floor : share);
}

/* (5) and the inverse form of (6) for one cell */
static inline void OF_T(add_precision_to_cell)(T *cell, T f, T g, const T *pair) {
    const T w = cell[0], s = cell[1];
    cell[0] = w + f * s * pair[0];
    cell[1] = s / (1 + s * (g * pair[1]));
}

/* A row of cells; means and variances are separated in registers, in the cheapest order. */
static inline __attribute__((always_inline)) void OF_T(update_row)(T *row, T f, T g, const T *pairs, ptrdiff_t n, T floor,
                                                                   const int inverse) {
    ptrdiff_t j = 0;
#ifdef CAN_SHUFFLE
    for (; j + HALF <= n; j += HALF) {
        OF_T(half) *cells = (OF_T(half) *)(row + 2 * j);
        const OF_T(half) a = cells[0], b = ((OF_T(half) *)(row + 2 * j + HALF))[0];
        const OF_T(half) x = *(const OF_T(half) *)(pairs + 2 * j), y = *(const OF_T(half) *)(pairs + 2 * j + HALF);
        const OF_T(half) p = __builtin_shufflevector(x, y, FIRSTS), p2 = __builtin_shufflevector(x, y, SECONDS);
        OF_T(half) w = __builtin_shufflevector(a, b, FIRSTS), s = __builtin_shufflevector(a, b, SECONDS), change = s * (g * p2);
        w += f * s * p;
        if (inverse) {
            s = s / (1 + change);
        } else {
            change = 1 - change;
            for (ptrdiff_t k = 0; k < HALF; ++k) change[k] = change[k] < floor ? floor : change[k];
            s *= change;
        }
        *cells = __builtin_shufflevector(w, s, LOWER);
        *(OF_T(half) *)(row + 2 * j + HALF) = __builtin_shufflevector(w, s, UPPER);
    }
#endif
    for (; j < n; ++j)
        if (inverse)
            OF_T(add_precision_to_cell)(row + 2 * j, f, g, pairs + 2 * j);
        else
            OF_T(downdate_cell)(row + 2 * j, f, g, pairs + 2 * j, floor);
}

FOR_SEVERAL_PROCESSORS static void OF_T(downdate)(T *cells, const ptrdiff_t *starts, const T *f, const T *g,
                                                  ptrdiff_t k_q, const T *pairs, ptrdiff_t n, T floor) {
    for (ptrdiff_t i = k_q; i > 0; --i)
        OF_T(update_row)(cells + 2 * starts[i - 1], f[i - 1], g[i - 1], pairs, n, floor, 0);
}

FOR_SEVERAL_PROCESSORS static void OF_T(add_precision)(T *cells, const ptrdiff_t *starts, const T *f, const T *g,
                                                       ptrdiff_t k_q, const T *pairs, ptrdiff_t n) {
    for (ptrdiff_t i = k_q; i > 0; --i)
        OF_T(update_row)(cells + 2 * starts[i - 1], f[i - 1], g[i - 1], pairs, n, 0, 1);
}

FOR_SEVERAL_PROCESSORS static void OF_T(sparse_downdate)(T *cells, const ptrdiff_t *starts, const T *f, const T *g,
                                                         ptrdiff_t k_q, const T *pairs, const ptrdiff_t *columns,
                                                         ptrdiff_t k_p, T floor) {
    ptrdiff_t i = k_q;
    for (; i >= 2; i -= 2) {
        T *row0 = cells + 2 * starts[i - 1], *row1 = cells + 2 * starts[i - 2];
        const T f0 = f[i - 1], f1 = f[i - 2], g0 = g[i - 1], g1 = g[i - 2];
        for (ptrdiff_t k = 0; k < k_p; ++k) {
            OF_T(downdate_cell)(row0 + 2 * columns[k], f0, g0, pairs + 2 * k, floor);
            OF_T(downdate_cell)(row1 + 2 * columns[k], f1, g1, pairs + 2 * k, floor);
        }
    }
    if (i > 0)
        for (ptrdiff_t k = 0; k < k_p; ++k)
            OF_T(downdate_cell)(cells + 2 * (starts[0] + columns[k]), f[0], g[0], pairs + 2 * k, floor);
}

FOR_SEVERAL_PROCESSORS static void OF_T(sparse_add_precision)(T *cells, const ptrdiff_t *starts, const T *f,
                                                              const T *g, ptrdiff_t k_q, const T *pairs,
                                                              const ptrdiff_t *columns, ptrdiff_t k_p) {
    for (ptrdiff_t i = k_q; i > 0; --i)
        for (ptrdiff_t k = 0; k < k_p; ++k)
            OF_T(add_precision_to_cell)(cells + 2 * (starts[i - 1] + columns[k]), f[i - 1], g[i - 1], pairs + 2 * k);
}

#undef HALF
#undef LANES
