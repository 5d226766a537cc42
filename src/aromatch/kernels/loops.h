/* Loops over plain runs of memory, compiled for several processors; the best one is picked when the library loads.

   Every sum has a fixed order, eight lanes wide, so the same machine gives the same bits each time. */

#ifndef AROMATCH_LOOPS_H
#define AROMATCH_LOOPS_H

#include <stddef.h>

/* Function clones need GCC and the GNU C library's resolver; elsewhere the compiler's own target has to do. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define FOR_SEVERAL_PROCESSORS __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define FOR_SEVERAL_PROCESSORS
#endif

#define DEFINE_LOOPS(NAME, T)                                                                                       \
                                                                                                                    \
    /* x'y */                                                                                                       \
    FOR_SEVERAL_PROCESSORS static double dot_##NAME(const T *x, const T *y, ptrdiff_t n) {                          \
        T lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};                                                                       \
        ptrdiff_t j = 0;                                                                                            \
        for (; j + 8 <= n; j += 8)                                                                                  \
            for (int k = 0; k < 8; ++k) lane[k] += x[j + k] * y[j + k];                                             \
        for (int k = 0; j + k < n; ++k) lane[k] += x[j + k] * y[j + k];                                             \
        return (((double)lane[0] + lane[1]) + ((double)lane[2] + lane[3])) +                                        \
               (((double)lane[4] + lane[5]) + ((double)lane[6] + lane[7]));                                         \
    }                                                                                                               \
                                                                                                                    \
    /* a <- a + f x */                                                                                              \
    FOR_SEVERAL_PROCESSORS static void add_##NAME(T *restrict a, T f, const T *restrict x, ptrdiff_t n) {           \
        for (ptrdiff_t j = 0; j < n; ++j) a[j] += f * x[j];                                                         \
    }                                                                                                               \
                                                                                                                    \
    /* a <- a + f_0 x_0 + f_1 x_1 + f_2 x_2 + f_3 x_3: a is read and written once for four rows */                  \
    FOR_SEVERAL_PROCESSORS static void add_four_##NAME(T *restrict a, const T *f, const T *restrict x0,             \
                                                       const T *restrict x1, const T *restrict x2,                  \
                                                       const T *restrict x3, ptrdiff_t n) {                         \
        const T f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3];                                                         \
        for (ptrdiff_t j = 0; j < n; ++j) a[j] += (f0 * x0[j] + f1 * x1[j]) + (f2 * x2[j] + f3 * x3[j]);            \
    }                                                                                                               \
                                                                                                                    \
    /* w <- w + f s p, then s <- s max(1 - s g p2, floor): one row of d-AROMA, (5) and (6) */                       \
    FOR_SEVERAL_PROCESSORS static void downdate_##NAME(T *restrict w, T *restrict s, const T *restrict p,           \
                                                       const T *restrict p2, T f, T g, T floor, ptrdiff_t n) {      \
        for (ptrdiff_t j = 0; j < n; ++j) {                                                                         \
            const T share = 1 - s[j] * (g * p2[j]);                                                                 \
            w[j] += f * s[j] * p[j];                                                                                \
            s[j] *= share < floor ? floor : share;                                                                  \
        }                                                                                                           \
    }                                                                                                               \
                                                                                                                    \
    /* w <- w + f s p, then s <- s / (1 + s g p2): the inverse form */                                              \
    FOR_SEVERAL_PROCESSORS static void add_precision_##NAME(T *restrict w, T *restrict s, const T *restrict p,      \
                                                            const T *restrict p2, T f, T g, ptrdiff_t n) {          \
        for (ptrdiff_t j = 0; j < n; ++j) {                                                                         \
            const T s_j = s[j];                                                                                     \
            w[j] += f * s_j * p[j];                                                                                 \
            s[j] = s_j / (1 + s_j * (g * p2[j]));                                                                   \
        }                                                                                                           \
    }

DEFINE_LOOPS(float, float)
DEFINE_LOOPS(double, double)

#endif
