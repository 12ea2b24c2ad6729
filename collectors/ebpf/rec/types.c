// SPDX-License-Identifier: Apache-2.0
/* The kernel's own type information (BTF): reading it, and the numbers of named types. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "rec.h"
#include "types.h"

#define SOURCE "/sys/kernel/btf/vmlinux"
#define LARGEST (64U << 20)

struct types types;
static unsigned char *data;
static size_t size;
static bool mapped;

const char *types_name_of(const struct btf_type *t)
{
	return t->name_off < types.header->str_len ? types.strings + t->name_off : "";
}

/* Bytes of what follows a type; -1 for a kind that is not known. */
long types_rest_of(const struct btf_type *t)
{
	static const signed char per_member[] = {
		[BTF_KIND_STRUCT] = sizeof(struct btf_member),
		[BTF_KIND_UNION] = sizeof(struct btf_member),
		[BTF_KIND_ENUM] = sizeof(struct btf_enum),
		[BTF_KIND_FUNC_PROTO] = sizeof(struct btf_param),
		[BTF_KIND_DATASEC] = sizeof(struct btf_var_secinfo),
		[BTF_KIND_ENUM64] = sizeof(struct btf_enum64),
	};
	unsigned int kind = BTF_INFO_KIND(t->info);

	if (kind == 0 || kind > BTF_KIND_ENUM64)
		return -1;
	if (kind == BTF_KIND_ARRAY)
		return sizeof(struct btf_array);
	if (kind == BTF_KIND_INT || kind == BTF_KIND_VAR || kind == BTF_KIND_DECL_TAG)
		return 4;
	return kind < sizeof(per_member) ? (long)BTF_INFO_VLEN(t->info) * per_member[kind] : 0;
}

/* Where each type lies. */
static int index_types(void)
{
	const struct btf_header *header = types.header;
	const unsigned char *at = data + header->hdr_len + header->type_off;
	const unsigned char *end = at + header->type_len;
	unsigned int n;

	types.at = calloc(header->type_len / sizeof(struct btf_type) + 2, sizeof(*types.at));
	if (!types.at)
		return -ENOMEM;
	for (n = 1; at + sizeof(struct btf_type) <= end; n++) {
		const struct btf_type *t = (const struct btf_type *)at;
		long rest = types_rest_of(t);

		if (rest < 0 || rest > end - at - (long)sizeof(*t))
			return -EINVAL;
		types.at[n] = t;
		at += sizeof(*t) + (size_t)rest;
	}
	if (at != end)
		return -EINVAL;
	types.count = n;
	return 0;
}

/* All of the file, or none; pages that nobody looks at are not brought in where it can be mapped. */
static void read_source(int fd)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) || st.st_size <= 0 || st.st_size >= LARGEST)
		return;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0); /* Linux 6.16 */
	mapped = data != MAP_FAILED;
	if (mapped) {
		size = (size_t)st.st_size;
		return;
	}
	data = malloc((size_t)st.st_size);
	while (data && size < (size_t)st.st_size &&
	       (n = read(fd, data + size, (size_t)st.st_size - size)) > 0)
		size += (size_t)n;
}

/* Read it; false where there is none or it is not understood. */
bool types_read(void)
{
	int fd = open(SOURCE, O_RDONLY | O_CLOEXEC);
	const struct btf_header *header;

	if (fd < 0)
		return false;
	read_source(fd);
	close(fd);
	header = (const struct btf_header *)data;
	if (!data || size < sizeof(*header) || header->magic != BTF_MAGIC ||
	    (size_t)header->hdr_len + header->type_off + header->type_len > size ||
	    (size_t)header->hdr_len + header->str_off + header->str_len > size || !header->str_len)
		return false;
	types.header = header;
	types.strings = (const char *)data + header->hdr_len + header->str_off;
	if (types.strings[header->str_len - 1] == 0)
		return true;
	types.strings = NULL;
	return false;
}

/* Where a name stands among the strings; 0: nowhere. */
static unsigned int place_of(const char *name)
{
	const char *at = types.strings, *end = at + types.header->str_len;

	while ((at = memmem(at, (size_t)(end - at), name, strlen(name) + 1))) {
		if (at > types.strings && !at[-1])
			return (unsigned int)(at - types.strings);
		at++; /* the end of another name */
	}
	return 0;
}

/* The numbers of types by kind and name; 0 for one that is not there. */
int types_find(struct type_wanted *wanted, size_t n)
{
	if (!types.strings)
		return -ENOENT;
	if (!types.at && index_types()) {
		types.count = 0;
		return -EINVAL;
	}
	for (size_t i = 0; i < n; i++)
		wanted[i].place = place_of(wanted[i].name);
	for (unsigned int id = 1; id < types.count; id++) {
		unsigned int kind = BTF_INFO_KIND(types.at[id]->info);

		if (kind != BTF_KIND_TYPEDEF && kind != BTF_KIND_FUNC)
			continue;
		for (size_t i = 0; i < n; i++)
			if (types.at[id]->name_off == wanted[i].place && kind == wanted[i].kind)
				wanted[i].id = id;
	}
	return 0;
}

void types_free(void)
{
	if (mapped)
		munmap(data, size);
	else
		free(data);
	free(types.at);
	types = (struct types){};
	data = NULL;
	mapped = false;
	size = 0;
}
