/* Loops over memory, compiled for several processors; the best one is picked when the library loads.

   Every sum has a fixed order, so the same machine gives the same bits each time. */

#ifndef AROMATCH_LOOPS_H
#define AROMATCH_LOOPS_H

#include <stddef.h>
#include <string.h>

/* Function clones need GCC and the GNU C library's resolver; elsewhere the compiler's own target has to do. The levels
   of x86-64 ask what a processor can do; a name such as "haswell" would ask who made it, and leave out AMD's. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#if __GNUC__ >= 12
#define FOR_SEVERAL_PROCESSORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_SEVERAL_PROCESSORS __attribute__((target_clones("avx2", "default")))
#endif
#else
#define FOR_SEVERAL_PROCESSORS
#endif

#define T float
#define OF_T(name) name##_float
#include "loops_of_t.h"
#undef T
#undef OF_T

#define T double
#define OF_T(name) name##_double
#include "loops_of_t.h"
#undef T
#undef OF_T

#endif
