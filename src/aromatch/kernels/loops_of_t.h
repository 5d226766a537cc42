/* The loops, for one precision T; loops.h includes this once for each. */

/* -- over plain runs of memory, eight lanes wide ------------------------------------------------------------------ */

/* x'y */
FOR_SEVERAL_PROCESSORS static double OF_T(dot)(const T *x, const T *y, ptrdiff_t n) {
    T lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ptrdiff_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int k = 0; k < 8; ++k) lane[k] += x[j + k] * y[j + k];
    for (int k = 0; j + k < n; ++k) lane[k] += x[j + k] * y[j + k];
    return (((double)lane[0] + lane[1]) + ((double)lane[2] + lane[3])) +
           (((double)lane[4] + lane[5]) + ((double)lane[6] + lane[7]));
}

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

/* One cell of d-AROMA, (5) and (6). Sigma shrinks by 1 - s x^2 / (variance + r), two numbers that nearly agree when one
   cell carries the whole variance. In exact arithmetic the result is never under r / (variance + r), so that is its
   floor, and Sigma stays positive whatever the scale of x. */
static inline void OF_T(downdate_cell)(T *w, T *s, T f, T g, T p, T p2, T floor) {
    const T s_old = *s, share = 1 - s_old * (g * p2);
    *w += f * s_old * p;
    *s = s_old * (share < floor ? floor : share);
}

/* The same with the inverse form of (6). */
static inline void OF_T(add_precision_cell)(T *w, T *s, T f, T g, T p, T p2) {
    const T s_old = *s;
    *w += f * s_old * p;
    *s = s_old / (1 + s_old * (g * p2));
}

FOR_SEVERAL_PROCESSORS static void OF_T(downdate)(T *restrict w, T *restrict s, T f, T g, const T *restrict p,
                                                  const T *restrict p2, ptrdiff_t n, T floor) {
    for (ptrdiff_t j = 0; j < n; ++j) OF_T(downdate_cell)(w + j, s + j, f, g, p[j], p2[j], floor);
}

FOR_SEVERAL_PROCESSORS static void OF_T(add_precision)(T *restrict w, T *restrict s, T f, T g, const T *restrict p,
                                                       const T *restrict p2, ptrdiff_t n) {
    for (ptrdiff_t j = 0; j < n; ++j) OF_T(add_precision_cell)(w + j, s + j, f, g, p[j], p2[j]);
}

/* -- over scattered cells, A + starts[i] + columns[k] for the non-zeros of q and p ---------------------------------

   Such a loop waits for memory and for look-ups of p. So several rows share each look-up, and an update goes from the
   last row to the first, since the caches still hold what the sum before it saw last. */

/* x'y for a sparse y, in four chains so that one addition need not wait for the other */
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

FOR_SEVERAL_PROCESSORS static void OF_T(sparse_downdate)(T *W, T *S, const ptrdiff_t *starts, const T *f, const T *g,
                                                         ptrdiff_t k_q, const T *p, const T *p2,
                                                         const ptrdiff_t *columns, ptrdiff_t k_p, T floor) {
    ptrdiff_t i = k_q;
    for (; i >= 2; i -= 2) {
        const ptrdiff_t row0 = starts[i - 1], row1 = starts[i - 2];
        const T f0 = f[i - 1], f1 = f[i - 2], g0 = g[i - 1], g1 = g[i - 2];
        for (ptrdiff_t k = 0; k < k_p; ++k) {
            const ptrdiff_t j0 = row0 + columns[k], j1 = row1 + columns[k];
            OF_T(downdate_cell)(W + j0, S + j0, f0, g0, p[k], p2[k], floor);
            OF_T(downdate_cell)(W + j1, S + j1, f1, g1, p[k], p2[k], floor);
        }
    }
    if (i > 0)
        for (ptrdiff_t k = 0; k < k_p; ++k) {
            const ptrdiff_t j = starts[0] + columns[k];
            OF_T(downdate_cell)(W + j, S + j, f[0], g[0], p[k], p2[k], floor);
        }
}

FOR_SEVERAL_PROCESSORS static void OF_T(sparse_add_precision)(T *W, T *S, const ptrdiff_t *starts, const T *f,
                                                              const T *g, ptrdiff_t k_q, const T *p, const T *p2,
                                                              const ptrdiff_t *columns, ptrdiff_t k_p) {
    for (ptrdiff_t i = k_q; i > 0; --i)
        for (ptrdiff_t k = 0; k < k_p; ++k) {
            const ptrdiff_t j = starts[i - 1] + columns[k];
            OF_T(add_precision_cell)(W + j, S + j, f[i - 1], g[i - 1], p[k], p2[k]);
        }
}
