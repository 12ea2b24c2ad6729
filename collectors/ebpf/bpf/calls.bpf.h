/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Recording of system calls by their class. */
#ifndef TRACEHINT_CALLS_BPF_H
#define TRACEHINT_CALLS_BPF_H

#include "aio.bpf.h"
#include "io.bpf.h"
#include "mmap.bpf.h"
#include "names.bpf.h"

/* Count a metadata operation, and an error if it failed. */
static __always_inline void meta(struct call *c, u32 kind)
{
	struct th_process *proc = process_at(c->slot);

	if (kind >= TH_META_KINDS || !proc)
		return;
	__sync_fetch_and_add(&proc->meta[kind], 1);
	if (c->ret < 0)
		__sync_fetch_and_add(&proc->meta_errors[kind], 1);
}

static __always_inline void name_meta(struct call *c, u32 class)
{
	if (class <= TH_CALL_RENAMEAT2)
		meta(c, TH_META_RENAME);
	else if (class >= TH_CALL_MKDIR && class <= TH_CALL_MKDIRAT)
		meta(c, TH_META_MKDIR);
	else if (class >= TH_CALL_UNLINK && class <= TH_CALL_RMDIR)
		meta(c, TH_META_UNLINK);
}

GLOBAL int data_calls(struct call *c, u32 class)
{
	u64 *a;
	s64 ret;

	if (!c)
		return 0;
	a = c->arg;
	ret = c->ret;
	switch (class) {
	case TH_CALL_COPY_RANGE:
		if (ret > 0) {
			moved_slow(c, a[0], OP(TH_READ, TH_HOW_COPY, 0), end_offset(a[1], ret),
				   ret);
			moved_slow(c, a[2], OP(TH_WRITE, TH_HOW_COPY, 0), end_offset(a[3], ret),
				   ret);
		}
		break;
	case TH_CALL_SENDFILE:
		if (ret > 0) {
			moved_slow(c, a[1], OP(TH_READ, TH_HOW_SENDFILE, 0), end_offset(a[2], ret),
				   ret);
			moved_slow(c, a[0], OP(TH_WRITE, TH_HOW_SENDFILE, 0), -1, ret);
		}
		break;
	case TH_CALL_SPLICE:
		if (ret > 0) {
			moved_slow(c, a[0], OP(TH_READ, TH_HOW_SPLICE, 0), end_offset(a[1], ret),
				   ret);
			moved_slow(c, a[2], OP(TH_WRITE, TH_HOW_SPLICE, 0), end_offset(a[3], ret),
				   ret);
		}
		break;
	case TH_CALL_TEE:
		if (ret > 0) {
			moved_slow(c, a[0], OP(TH_READ, TH_HOW_SPLICE, 0), -1, ret);
			moved_slow(c, a[1], OP(TH_WRITE, TH_HOW_SPLICE, 0), -1, ret);
		}
		break;
	case TH_CALL_VMSPLICE:
		if (ret > 0)
			moved_slow(c, a[0], spliced_op(a[0]), -1, ret);
		break;
	case TH_CALL_FTRUNCATE:
		if (!ret)
			touched(c, a[0], OP(TH_TRUNCATE, TH_HOW_TRUNCATE, 0), a[1], 0);
		break;
	case TH_CALL_IOCTL:
		if (!ret)
			do_clone(c);
		break;
	}
	return 0;
}

GLOBAL int open_calls(struct call *c, u32 class)
{
	u64 flags = 0;

	if (!c)
		return 0;
	if (c->ret < 0) {
		meta(c, TH_META_FAILED_OPEN);
		return 0;
	}
	switch (class) {
	case TH_CALL_OPEN:
		flags = c->arg[1];
		break;
	case TH_CALL_OPENAT:
	case TH_CALL_OPEN_HANDLE:
		flags = c->arg[2];
		break;
	case TH_CALL_CREAT:
		flags = O_CREAT | O_TRUNC | O_WRONLY;
		break;
	case TH_CALL_OPENAT2:
		bpf_probe_read_user(&flags, sizeof(flags), (void *)c->arg[2]);
		break;
	}
	do_open(c, flags);
	return 0;
}

GLOBAL int meta_calls(struct call *c, u32 class)
{
	if (!c)
		return 0;
	switch (class) {
	case TH_CALL_STATAT:
		if (c->arg[3] & AT_EMPTY_PATH)
			break; /* fstat: no path is looked up */
		meta(c, TH_META_STAT);
		break;
	case TH_CALL_STATX:
		if (c->arg[2] & AT_EMPTY_PATH)
			break;
		meta(c, TH_META_STAT);
		break;
	case TH_CALL_STAT:
		meta(c, TH_META_STAT);
		break;
	case TH_CALL_READDIR:
		meta(c, TH_META_READDIR);
		break;
	case TH_CALL_CHMOD:
		meta(c, TH_META_CHMOD);
		break;
	case TH_CALL_XATTR:
		meta(c, TH_META_XATTR);
		break;
	case TH_CALL_ACCESS:
		meta(c, TH_META_ACCESS);
		break;
	}
	return 0;
}

static __always_inline void not_followed(struct call *c, u32 what)
{
	struct th_process *proc = process_at(c->slot);

	if (!proc)
		return;
	proc->unknown_call = what;
	lose(proc, TH_LOST_UNKNOWN_CALL, 1);
}

/* Whether a call is recorded that has an effect only with some arguments. */
static __always_inline bool of_interest(struct call *c, u32 class)
{
	switch (class) {
	case TH_CALL_MPROTECT:
		return !c->ret && (c->arg[2] & PROT_WRITE);
	case TH_CALL_MADVISE:
		return !c->ret && (u32)c->arg[2] == MADV_POPULATE_WRITE;
	case TH_CALL_MKNOD: /* a regular file, created without an open */
		return !c->ret && (!(c->arg[1] & S_IFMT) || (c->arg[1] & S_IFMT) == S_IFREG);
	case TH_CALL_MKNODAT:
		return !c->ret && (!(c->arg[2] & S_IFMT) || (c->arg[2] & S_IFMT) == S_IFREG);
	case TH_CALL_IOCTL:
		return !c->ret && unfollowed_ioctl(c->arg[1]);
	}
	return class == TH_CALL_UNKNOWN && c->ret >= 0;
}

static __always_inline void rare_calls(struct call *c, u32 class, u32 nr)
{
	if (class >= TH_CALL_OPEN && class <= TH_CALL_OPEN_HANDLE)
		open_calls(c, class);
	else if (class == TH_CALL_DUP2 && c->ret >= 0 && c->arg[0] != c->arg[1])
		close_fd(c->slot, c->tid, c->arg[1], 1);
	else if (class == TH_CALL_CLOSE_RANGE && !c->ret)
		do_close_range(c);
	else if (class == TH_CALL_MMAP || class == TH_CALL_MREMAP) {
		/* not within data_calls: the whole stack has 512 bytes */
		if (c->ret < 0 && c->ret >= -4095)
			return;
		if (class == TH_CALL_MMAP)
			do_mmap(c, c->arg[5]);
		else if (do_mremap(c))
			not_followed(c, nr);
	} else if (class == TH_CALL_FALLOCATE) {
		do_fallocate(c);
	} else if (class == TH_CALL_TEE || class == TH_CALL_VMSPLICE ||
		   (class >= TH_CALL_COPY_RANGE && class <= TH_CALL_IOCTL &&
		    class != TH_CALL_TRUNCATE)) {
		data_calls(c, class);
		if (class == TH_CALL_IOCTL && of_interest(c, class))
			not_followed(c, nr);
	} else if (class == TH_CALL_TRUNCATE ||
		   (class >= TH_CALL_RENAME && class <= TH_CALL_RMDIR)) {
		if (class != TH_CALL_TRUNCATE)
			name_meta(c, class);
		if (!c->ret)
			name_call(c, class);
	} else if (class >= TH_CALL_STAT && class <= TH_CALL_STATX)
		meta_calls(c, class);
	else if (class == TH_CALL_IO_SUBMIT) {
		do_io_submit(c);
		if (c->ret > AIO_REQUESTS || c->arg[0] == AIO_CUT)
			not_followed(c, nr);
	} else if (of_interest(c, class)) {
		bool mapping = class == TH_CALL_MPROTECT || class == TH_CALL_MADVISE;

		if (!mapping || writable(c, class == TH_CALL_MADVISE))
			not_followed(c, nr);
	}
}

/* Convert a 32-bit call, with a split offset or one in pages, to a 64-bit one; return its class. */
static __always_inline u64 joined(struct call *c, u32 class)
{
	u64 *a = c->arg;

	switch (class) {
	case TH_CALL_PREAD_SPLIT:
	case TH_CALL_PWRITE_SPLIT:
		a[3] |= a[4] << 32;
		return class == TH_CALL_PREAD_SPLIT ? TH_CALL_PREAD : TH_CALL_PWRITE;
	case TH_CALL_MMAP_PAGES:
		a[5] *= 4096;
		return TH_CALL_MMAP;
	case TH_CALL_FTRUNCATE_SPLIT:
	case TH_CALL_TRUNCATE_SPLIT:
		a[1] |= a[2] << 32;
		return class == TH_CALL_FTRUNCATE_SPLIT ? TH_CALL_FTRUNCATE : TH_CALL_TRUNCATE;
	case TH_CALL_FALLOCATE_SPLIT:
		a[2] |= a[3] << 32;
		a[3] = a[4] | a[5] << 32;
		return TH_CALL_FALLOCATE;
	}
	return class;
}

#endif
