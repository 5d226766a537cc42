/* Baseline loops in C: float64, over the non-zeros of CSR rows, compiled with -O3. Each updates its matrices in place. */

#include <stdint.h>

/* p = row j less row k, as a list of non-zeros */
static int difference(const int32_t *indptr, const int32_t *indices, const double *data, int64_t j, int64_t k,
                      double *values, int32_t *columns) {
    int found = 0;
    int32_t a = indptr[j], a_end = indptr[j + 1], b = indptr[k], b_end = indptr[k + 1];
    while (a < a_end || b < b_end) {
        if (b == b_end || (a < a_end && indices[a] < indices[b])) {
            columns[found] = indices[a];
            values[found++] = data[a++];
        } else if (a == a_end || indices[b] < indices[a]) {
            columns[found] = indices[b];
            values[found++] = -data[b++];
        } else {
            columns[found] = indices[a];
            values[found++] = data[a++] - data[b++];
        }
    }
    return found;
}

void d_aroma(double *W, double *Sigma, int64_t n, const int32_t *indptr, const int32_t *indices, const double *data,
             const int64_t *triplets, int64_t n_triplets, double r, double *p, int32_t *columns) {
    for (int64_t t = 0; t < n_triplets; ++t) {
        const int64_t i = triplets[3 * t];
        const int k_p = difference(indptr, indices, data, triplets[3 * t + 1], triplets[3 * t + 2], p, columns);
        double margin = 0, variance = 0;
        for (int32_t a = indptr[i]; a < indptr[i + 1]; ++a)
            for (int b = 0; b < k_p; ++b) margin += data[a] * W[indices[a] * n + columns[b]] * p[b];
        if (margin >= 1) continue;
        for (int32_t a = indptr[i]; a < indptr[i + 1]; ++a)
            for (int b = 0; b < k_p; ++b) {
                const double x = data[a] * p[b];
                variance += Sigma[indices[a] * n + columns[b]] * x * x;
            }
        const double alpha = (1 - margin) / (variance + r);
        for (int32_t a = indptr[i]; a < indptr[i + 1]; ++a)
            for (int b = 0; b < k_p; ++b) {
                const double x = data[a] * p[b];
                double *w = W + indices[a] * n + columns[b], *s = Sigma + indices[a] * n + columns[b];
                *w += alpha * *s * x;
                *s -= *s * x * x * *s / (variance + r);
            }
    }
}

void oasis(double *W, int64_t n, const int32_t *indptr, const int32_t *indices, const double *data,
           const int64_t *triplets, int64_t n_triplets, double C, double *p, int32_t *columns) {
    for (int64_t t = 0; t < n_triplets; ++t) {
        const int64_t i = triplets[3 * t];
        const int k_p = difference(indptr, indices, data, triplets[3 * t + 1], triplets[3 * t + 2], p, columns);
        double margin = 0, q_norm = 0, p_norm = 0;
        for (int32_t a = indptr[i]; a < indptr[i + 1]; ++a)
            for (int b = 0; b < k_p; ++b) margin += data[a] * W[indices[a] * n + columns[b]] * p[b];
        if (margin >= 1) continue;
        for (int32_t a = indptr[i]; a < indptr[i + 1]; ++a) q_norm += data[a] * data[a];
        for (int b = 0; b < k_p; ++b) p_norm += p[b] * p[b];
        double tau = (1 - margin) / (q_norm * p_norm);
        if (tau > C) tau = C;
        for (int32_t a = indptr[i]; a < indptr[i + 1]; ++a)
            for (int b = 0; b < k_p; ++b) W[indices[a] * n + columns[b]] += tau * data[a] * p[b];
    }
}

/* f-AROMA with its three rank-one updates, for square W */
void f_aroma(double *W, double *Omega, double *Lambda, int64_t n, const int32_t *indptr, const int32_t *indices,
             const double *data, const int64_t *triplets, int64_t n_triplets, double r, double *p, int32_t *columns,
             double *a, double *b) {
    for (int64_t t = 0; t < n_triplets; ++t) {
        const int64_t i = triplets[3 * t];
        const int k_p = difference(indptr, indices, data, triplets[3 * t + 1], triplets[3 * t + 2], p, columns);
        double margin = 0, q_variance = 0, p_variance = 0;
        for (int32_t k = indptr[i]; k < indptr[i + 1]; ++k)
            for (int l = 0; l < k_p; ++l) margin += data[k] * W[indices[k] * n + columns[l]] * p[l];
        if (margin >= 1) continue;
        for (int64_t j = 0; j < n; ++j) a[j] = b[j] = 0;
        for (int32_t k = indptr[i]; k < indptr[i + 1]; ++k)
            for (int64_t j = 0; j < n; ++j) a[j] += data[k] * Lambda[indices[k] * n + j];
        for (int l = 0; l < k_p; ++l)
            for (int64_t j = 0; j < n; ++j) b[j] += p[l] * Omega[columns[l] * n + j];
        for (int32_t k = indptr[i]; k < indptr[i + 1]; ++k) q_variance += data[k] * a[indices[k]];
        for (int l = 0; l < k_p; ++l) p_variance += p[l] * b[columns[l]];
        const double variance = q_variance * p_variance, alpha = (1 - margin) / (r + variance);
        const double d = q_variance / (n * r + variance), c = p_variance / (n * r + variance);
        for (int64_t k = 0; k < n; ++k)
            for (int64_t j = 0; j < n; ++j) {
                W[k * n + j] += alpha * a[k] * b[j];
                Omega[k * n + j] -= d * b[k] * b[j];
                Lambda[k * n + j] -= c * a[k] * a[j];
            }
    }
}

/* What memory alone costs: one number of every cache line that a triplet's cells lie in, read and then written, with no
   arithmetic to speak of. Counts the lines. */
double touch_lines(double *W, int64_t n, const int32_t *indptr, const int32_t *indices, const double *data,
                   const int64_t *triplets, int64_t n_triplets, double zero, double *p, int32_t *columns, int64_t *n_lines) {
    double sum = 0;
    for (int64_t t = 0; t < n_triplets; ++t) {
        const int32_t *rows = indices + indptr[triplets[3 * t]], *end = indices + indptr[triplets[3 * t] + 1];
        int k_p = difference(indptr, indices, data, triplets[3 * t + 1], triplets[3 * t + 2], p, columns), lines = 0;
        for (int b = 0; b < k_p; ++b)
            if (lines == 0 || columns[b] / 8 != columns[lines - 1] / 8) columns[lines++] = columns[b];
        for (const int32_t *row = rows; row < end; ++row)
            for (int b = 0; b < lines; ++b) sum += W[*row * n + columns[b]];
        for (const int32_t *row = end; row-- > rows;)
            for (int b = 0; b < lines; ++b) W[*row * n + columns[b]] += zero;
        *n_lines += (end - rows) * lines;
    }
    return sum;
}
