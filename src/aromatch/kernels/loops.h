/* Innermost loops, compiled for several instruction sets; the loader selects the best one.

   The order of every sum is fixed, so results are bit-identical between runs on one machine. */

#ifndef AROMATCH_LOOPS_H
#define AROMATCH_LOOPS_H

#include <stddef.h>
#include <string.h>

/* Function clones need GCC and the resolver of the GNU C library; other platforms use the default target of the compiler.
   The levels of x86-64 select by capability; a name such as "haswell" selects by vendor and excludes AMD. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#if __GNUC__ >= 12
#define FOR_SEVERAL_PROCESSORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_SEVERAL_PROCESSORS __attribute__((target_clones("avx2", "default")))
#endif
#else
#define FOR_SEVERAL_PROCESSORS
#endif

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define CAN_SHUFFLE
#endif
#endif

/* Shuffles of two registers of pairs, a and b: FIRSTS and SECONDS separate the two members of the pairs; LOWER and UPPER
   restore the pairs of a and of b. No element crosses the middle of a register, which would be slow. */
#define T float
#define OF_T(name) name##_float
#define FIRSTS 0, 2, 8, 10, 4, 6, 12, 14
#define SECONDS 1, 3, 9, 11, 5, 7, 13, 15
#define LOWER 0, 8, 1, 9, 4, 12, 5, 13
#define UPPER 2, 10, 3, 11, 6, 14, 7, 15
#include "loops_of_t.h"
#undef T
#undef OF_T
#undef FIRSTS
#undef SECONDS
#undef LOWER
#undef UPPER

#define T double
#define OF_T(name) name##_double
#define FIRSTS 0, 4, 2, 6
#define SECONDS 1, 5, 3, 7
#define LOWER FIRSTS
#define UPPER SECONDS
#include "loops_of_t.h"
#undef T
#undef OF_T
#undef FIRSTS
#undef SECONDS
#undef LOWER
#undef UPPER

#endif
