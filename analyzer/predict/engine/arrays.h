// SPDX-License-Identifier: Apache-2.0
/* Arrays of an input file, each checked as it is read (input.c): 0, or complain and -1. */
#ifndef TRACEHINT_ARRAYS_H
#define TRACEHINT_ARRAYS_H

#include "sim.h"

/* Numbers from 0 to `most`. */
int numbers(struct file *f, const char *name, size_t count, const double **at, double most);
/* Whole numbers from `low` to below `high`. */
int indices(struct file *f, const char *name, size_t count, const int32_t **at, int64_t low,
	    int64_t high);
/* Amounts of at least `low`. */
int amounts(struct file *f, const char *name, size_t count, const int64_t **at, int64_t low);
/* Begins of `count` lists in an array of `total` items: one more than lists, never falling. */
int begins(struct file *f, const char *name, size_t count, int64_t total, const int64_t **at);

#endif
