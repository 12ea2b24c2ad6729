// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel's own type information (BTF): which tracepoints it has, and the
 * part of it that the programs need.
 *
 * libbpf looks for each of our 30 structs among all types of the kernel, 130,000
 * of them: a quarter of the time that loading takes. Those that we use come
 * early (the compiler saw them first). So libbpf gets the types up to the last one
 * that matters, with all that they are made of; their numbers stay the same.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "rec.h"

#define SOURCE "/sys/kernel/btf/vmlinux"
#define LARGEST (64U << 20)

/* Structs whose members the programs read; see bpf/vmlinux.h. One that is missing here costs
 * time only: the loader goes on with all types when libbpf does not find it. */
static const char *const structs[] = {
	"address_space", "cred",      "dentry",	       "fdtable",	 "file",
	"files_struct",	 "fs_struct", "hlist_bl_head", "hlist_bl_node",	 "inode",
	"io_cqe",	 "io_kiocb",  "io_rw",	       "io_uring_task",	 "kiocb",
	"linux_binprm",	 "mm_struct", "mount",	       "path",		 "pid",
	"pt_regs",	 "qstr",      "signal_struct", "super_block",	 "task_struct",
	"thread_info",	 "upid",      "vfsmount",      "vm_area_struct", "xa_node",
	"xarray",
};

static unsigned char *data;
static size_t size;
static bool mapped;
static const struct btf_header *header;
static const char *strings;
static const struct btf_type **types; /* by number; 0 is void */
static unsigned int count;

static const char *name_of(const struct btf_type *t)
{
	return t->name_off < header->str_len ? strings + t->name_off : "";
}

/* Bytes of what follows a type; -1 for a kind that is not known. */
static long rest_of(const struct btf_type *t)
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
	const unsigned char *at = data + header->hdr_len + header->type_off;
	const unsigned char *end = at + header->type_len;

	types = calloc(header->type_len / sizeof(struct btf_type) + 2, sizeof(*types));
	if (!types)
		return -ENOMEM;
	for (count = 1; at + sizeof(struct btf_type) <= end; count++) {
		const struct btf_type *t = (const struct btf_type *)at;
		long rest = rest_of(t);

		if (rest < 0 || rest > end - at - (long)sizeof(*t))
			return -EINVAL;
		types[count] = t;
		at += sizeof(*t) + (size_t)rest;
	}
	return at == end ? 0 : -EINVAL;
}

/* Read it; false where there is none or it is not understood. */
bool types_read(void)
{
	int fd = open(SOURCE, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) || st.st_size <= 0 || st.st_size >= LARGEST)
		st.st_size = 0;
	if (st.st_size) /* Linux 6.16; pages that nobody looks at are not brought in */
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	mapped = data && data != MAP_FAILED;
	if (mapped)
		size = (size_t)st.st_size;
	else
		data = st.st_size ? malloc((size_t)st.st_size) : NULL;
	while (data && size < (size_t)st.st_size &&
	       (n = read(fd, data + size, (size_t)st.st_size - size)) > 0)
		size += (size_t)n;
	close(fd);
	header = (const struct btf_header *)data;
	if (!data || size < sizeof(*header) || header->magic != BTF_MAGIC ||
	    (size_t)header->hdr_len + header->type_off + header->type_len > size ||
	    (size_t)header->hdr_len + header->str_off + header->str_len > size || !header->str_len)
		return false;
	strings = (const char *)data + header->hdr_len + header->str_off;
	return strings[header->str_len - 1] == 0;
}

bool types_name(const char *name)
{
	return strings && memmem(strings, header->str_len, name, strlen(name) + 1);
}

/* The numbers of types that one is made of, without what is only pointed to. */
static unsigned int parts_of(const struct btf_type *t, unsigned int i)
{
	unsigned int kind = BTF_INFO_KIND(t->info);
	const void *rest = t + 1;

	switch (kind) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return i < BTF_INFO_VLEN(t->info) ? ((const struct btf_member *)rest)[i].type : 0;
	case BTF_KIND_ARRAY:
		return i == 0	? ((const struct btf_array *)rest)->type
		       : i == 1 ? ((const struct btf_array *)rest)->index_type
				: 0;
	case BTF_KIND_PTR: /* libbpf looks at what kind of thing it points to, no further */
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return i == 0 ? t->type : 0;
	}
	return 0;
}

static bool is_wanted(const struct btf_type *t)
{
	const char *name;

	if (BTF_INFO_KIND(t->info) != BTF_KIND_STRUCT)
		return false;
	name = name_of(t);
	for (size_t i = 0; i < sizeof(structs) / sizeof(*structs); i++)
		if (*name == *structs[i] && !strcmp(name, structs[i]))
			return true;
	return false;
}

/* The highest number among the wanted types and what they are made of; 0 when that is unknown. */
static unsigned int last_needed(void)
{
	unsigned char *seen = calloc(count, 1);
	unsigned int *todo = calloc(count, sizeof(*todo)), n = 0, last = 0, part;

	for (unsigned int id = 1; seen && todo && id < count; id++)
		if (is_wanted(types[id]))
			seen[todo[n++] = id] = 1;
	while (n) {
		const struct btf_type *t = types[todo[--n]];
		bool ends = BTF_INFO_KIND(t->info) == BTF_KIND_PTR;

		last = todo[n] > last ? todo[n] : last;
		for (unsigned int i = 0; !ends && (part = parts_of(t, i)); i++)
			if (part < count && !seen[part])
				seen[todo[n++] = part] = 1;
	}
	free(seen);
	free(todo);
	return last;
}

/* A file with the types up to the last that is needed; -1: take all. */
int types_part(void)
{
	struct btf_header part;
	unsigned int last;
	size_t length;
	int fd;

	if (!strings || index_types())
		return -1;
	last = last_needed();
	if (!last || last + 1 >= count)
		return -1;
	length = (size_t)((const unsigned char *)types[last + 1] - (const unsigned char *)types[1]);
	part = *header;
	part.hdr_len = sizeof(part);
	part.type_off = 0;
	part.type_len = (unsigned int)length;
	part.str_off = part.type_len;
	fd = memfd_create("types", MFD_CLOEXEC);
	if (fd < 0)
		return -1;
	if (write(fd, &part, sizeof(part)) == (ssize_t)sizeof(part) &&
	    write(fd, types[1], length) == (ssize_t)length &&
	    write(fd, strings, header->str_len) == (ssize_t)header->str_len)
		return fd;
	close(fd);
	return -1;
}

void types_free(void)
{
	if (mapped)
		munmap(data, size);
	else
		free(data);
	mapped = false;
	free(types);
	data = NULL;
	types = NULL;
	strings = NULL;
	size = 0;
}
