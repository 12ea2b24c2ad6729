// SPDX-License-Identifier: Apache-2.0
/*
 * The part of the kernel's type information that the programs need.
 *
 * libbpf looks for each of our 30 structs among all types of the kernel, 130,000
 * of them: a fifth of the time that loading takes. Those that we use come early
 * (the compiler saw them first). So libbpf gets the types up to the last one that
 * matters, with all that they are made of; in place of the others stands an empty
 * type, as numbers must stay what they are in the kernel.
 */
#define _GNU_SOURCE
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rec.h"
#include "types.h"

/* Structs whose members the programs read; see bpf/vmlinux.h. One that is missing here costs
 * time only: the loader goes on with all types when libbpf does not find it. */
static const char *const structs[] = {
	"address_space",  "cred",	  "dentry",	   "fdtable",	    "file",
	"files_struct",	  "fs_struct",	  "hlist_bl_head", "hlist_bl_node", "inode",
	"io_cqe",	  "io_kiocb",	  "io_open",	   "io_rw",	    "io_uring_task",
	"kiocb",	  "linux_binprm", "mm_struct",	   "mount",	    "open_how",
	"path",		  "pid",	  "pt_regs",	   "qstr",	    "signal_struct",
	"super_block",	  "task_struct",  "thread_info",   "upid",	    "vfsmount",
	"vm_area_struct", "xa_node",	  "xarray",
};

/* What is written: types, and behind them their names. */
struct part {
	unsigned char *types;
	char *strings;
	size_t length, str_length;
};

static bool is_wanted(const struct btf_type *t)
{
	const char *name;

	if (BTF_INFO_KIND(t->info) != BTF_KIND_STRUCT)
		return false;
	name = types_name_of(t);
	for (size_t i = 0; i < sizeof(structs) / sizeof(*structs); i++)
		if (*name == *structs[i] && !strcmp(name, structs[i]))
			return true;
	return false;
}

/* The numbers of types that one is made of, without what is only pointed to. */
static unsigned int parts_of(const struct btf_type *t, unsigned int i)
{
	const void *rest = t + 1;

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return i < BTF_INFO_VLEN(t->info) ? ((const struct btf_member *)rest)[i].type : 0;
	case BTF_KIND_ARRAY:
		return i == 0	? ((const struct btf_array *)rest)->type
		       : i == 1 ? ((const struct btf_array *)rest)->index_type
				: 0;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return i == 0 ? t->type : 0;
	}
	return 0;
}

/* Mark the wanted types and what they are made of; the highest number among them, 0: none. */
static unsigned int mark_needed(unsigned char *needed, unsigned int *todo)
{
	unsigned int n = 0, last = 0, part;

	for (unsigned int id = 1; id < types.count; id++)
		if (is_wanted(types.at[id]))
			needed[todo[n++] = id] = 1;
	while (n) {
		unsigned int id = todo[--n];

		last = id > last ? id : last;
		for (unsigned int i = 0; (part = parts_of(types.at[id], i)); i++)
			if (part < types.count && !needed[part])
				needed[todo[n++] = part] = 1;
	}
	return last;
}

/* Where the name stands now; *full when there is no room. */
static unsigned int add_name(struct part *part, unsigned int name_off, bool *full)
{
	const char *name = name_off < types.header->str_len ? types.strings + name_off : "";
	size_t length = strlen(name) + 1, at = part->str_length;

	if (length == 1)
		return 0;
	*full |= length > types.header->str_len - at;
	if (*full)
		return 0;
	memcpy(part->strings + at, name, length);
	part->str_length += length;
	return (unsigned int)at;
}

/* One type, with its names where they stand now; without values and what it points to. */
static bool add_type(struct part *part, const struct btf_type *from)
{
	struct btf_type *t = (struct btf_type *)(part->types + part->length);
	struct btf_member *members = (struct btf_member *)(t + 1);
	unsigned int kind = BTF_INFO_KIND(from->info);
	bool values = kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64, full = false;
	size_t length = sizeof(*t) + (values ? 0 : (size_t)types_rest_of(from));

	memcpy(t, from, length);
	part->length += length;
	t->name_off = add_name(part, from->name_off, &full);
	if (values)
		t->info &= ~0xffffU; /* the number of values */
	else if (kind == BTF_KIND_PTR)
		t->type = 0;
	else if (kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION)
		for (unsigned int i = 0; i < BTF_INFO_VLEN(t->info); i++)
			members[i].name_off = add_name(part, members[i].name_off, &full);
	return !full;
}

static bool collect_part(struct part *part, const unsigned char *needed, unsigned int last)
{
	static const struct btf_type empty = {.info = BTF_KIND_FWD << 24};

	part->strings[0] = 0;
	part->str_length = 1;
	for (unsigned int id = 1; id <= last; id++) {
		if (needed[id]) {
			if (!add_type(part, types.at[id]))
				return false;
			continue;
		}
		memcpy(part->types + part->length, &empty, sizeof(empty));
		part->length += sizeof(empty);
	}
	return true;
}

static int write_part(const struct part *part)
{
	struct btf_header header = *types.header;
	int fd = memfd_create("types", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	header.hdr_len = sizeof(header);
	header.type_off = 0;
	header.type_len = (unsigned int)part->length;
	header.str_off = header.type_len;
	header.str_len = (unsigned int)part->str_length;
	if (write(fd, &header, sizeof(header)) == (ssize_t)sizeof(header) &&
	    write(fd, part->types, part->length) == (ssize_t)part->length &&
	    write(fd, part->strings, part->str_length) == (ssize_t)part->str_length)
		return fd;
	close(fd);
	return -1;
}

/* A file with the types up to the last that is needed; -1: take all. After types_find. */
int types_part(void)
{
	unsigned char *needed = calloc(types.count + 1, 1);
	unsigned int *todo = calloc(types.count + 1, sizeof(*todo));
	unsigned int last = needed && todo && types.count ? mark_needed(needed, todo) : 0;
	struct part part = {};
	int fd = -1;

	free(todo);
	if (last) {
		part.types = malloc(types.header->type_len);
		part.strings = malloc(types.header->str_len);
	}
	if (part.types && part.strings && collect_part(&part, needed, last))
		fd = write_part(&part);
	free(part.types);
	free(part.strings);
	free(needed);
	return fd;
}
