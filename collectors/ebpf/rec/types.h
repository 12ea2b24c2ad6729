/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's type information as types.c has read it, for types_part.c. */
#ifndef TRACEHINT_TYPES_H
#define TRACEHINT_TYPES_H

#include <linux/btf.h>

struct types {
	const struct btf_header *header;
	const char *strings;
	const struct btf_type **at; /* by number; 0 is void */
	unsigned int count;
};
extern struct types types;

const char *types_name_of(const struct btf_type *t);
long types_rest_of(const struct btf_type *t);

#endif
