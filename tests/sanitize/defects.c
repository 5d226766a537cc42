/* Deliberate defects, compiled like the kernels: a build that does not report them is not instrumented. */

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

static volatile int sink;
static long shared;

void read_past_the_end(int n) {
    int *x = malloc(n * sizeof(int));
    x[0] = 1;
    sink = x[n];
    free(x);
}

void write_after_free(int n) {
    int *x = malloc(n * sizeof(int));
    free(x);
    ((volatile int *)x)[0] = n;
}

void overflow(int n) { sink = INT_MAX + n; }

void shift(int n) { sink = 1 << (31 + n); }

void misalign(int n) {
    char *x = malloc(64);
    sink = *(volatile int *)(x + n % 3 + 1);
    free(x);
}

void cast(int n) { sink = (int)(1e300 * n); }

void leak(int n) { sink = ((volatile int *)malloc(n * sizeof(int)))[0] != 0; }

static void *count(void *n) {
    for (int i = 0; i < *(int *)n; ++i) shared += 1;
    return NULL;
}

void race(int n) {
    pthread_t first, second;
    n *= 1000;
    pthread_create(&first, NULL, count, &n);
    pthread_create(&second, NULL, count, &n);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
}
