/* What the C programs share. */
#ifndef DS4_TESTS_CHECK_H
#define DS4_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "ds4/ds4.h"

/* Ends the program with a line that says which condition does not hold, and the library's latest error. */
#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            printf("line %d: %s (%s)\n", __LINE__, #condition, ds4_error()); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

#endif
