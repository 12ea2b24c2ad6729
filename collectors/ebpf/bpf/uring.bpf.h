/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * io_uring: operations are counted at completion, whichever thread executed them (the submitter, a
 * worker, the polling thread). The request's position is the end of the access.
 */
#ifndef TRACEHINT_URING_BPF_H
#define TRACEHINT_URING_BPF_H

#include "calls.bpf.h"
#include "share.bpf.h"

/* include/uapi/linux/io_uring.h; the numbers are fixed */
enum {
	URING_READV = 1,
	URING_WRITEV = 2,
	URING_READ_FIXED = 4,
	URING_WRITE_FIXED = 5,
	URING_FALLOCATE = 17,
	URING_OPENAT = 18,
	URING_READ = 22,
	URING_WRITE = 23,
	URING_OPENAT2 = 28,
	URING_SPLICE = 30,
	URING_TEE = 33,
	URING_RENAMEAT = 35,
	URING_UNLINKAT = 36,
	URING_MKDIRAT = 37,
	URING_SYMLINKAT = 38,
	URING_LINKAT = 39,
	URING_READ_MULTISHOT = 49,
	URING_FTRUNCATE = 55,
	URING_READV_FIXED = 60,
	URING_WRITEV_FIXED = 61,
};

/* Before Linux 6.13 the request itself points to its task. */
struct io_kiocb___task {
	struct task_struct *task;
} __attribute__((preserve_access_index));

static __always_inline u32 uring_tid(u64 req)
{
	u64 task;

	if (bpf_core_field_exists(((struct io_kiocb *)0)->tctx))
		task = (u64)K(struct io_uring_task, K(struct io_kiocb, req, tctx), task);
	else
		BPF_CORE_READ_INTO(&task, (struct io_kiocb___task *)req, task);
	return K(struct task_struct, task, pid);
}

static __always_inline int uring_op(u32 opcode)
{
	switch (opcode) {
	case URING_READV:
	case URING_READ_FIXED:
	case URING_READ:
	case URING_READ_MULTISHOT:
	case URING_READV_FIXED:
		return TH_READ;
	case URING_WRITEV:
	case URING_WRITE_FIXED:
	case URING_WRITE:
	case URING_WRITEV_FIXED:
		return TH_WRITE;
	}
	return -1;
}

/* Requests that move bytes or change names, and are only counted: their arguments are gone. */
#define URING_UNFOLLOWED                                                                           \
	(1ULL << URING_FALLOCATE | 1ULL << URING_SPLICE | 1ULL << URING_TEE |                      \
	 1ULL << URING_RENAMEAT | 1ULL << URING_UNLINKAT | 1ULL << URING_MKDIRAT |                 \
	 1ULL << URING_SYMLINKAT | 1ULL << URING_LINKAT | 1ULL << URING_FTRUNCATE)

/* Record a file opened, perhaps created or truncated, by a request. */
static __always_inline bool uring_opened(u64 req, u32 slot, int fd)
{
	struct call c = {.slot = slot, .ret = fd};

	if (!bpf_core_type_exists(struct io_open) || K(struct io_open, req, file_slot))
		return false;
	c.arg[1] = K(struct io_open, req, how.flags);
	open_calls(&c, TH_CALL_OPEN);
	return true;
}

/* Requests other than reads and writes. */
static __always_inline void uring_other(u64 req, u32 opcode, int res)
{
	u32 slot;
	struct th_process *proc;

	if (res < 0 || opcode > 63 ||
	    !((URING_UNFOLLOWED | 1ULL << URING_OPENAT | 1ULL << URING_OPENAT2) >> opcode & 1))
		return;
	slot = slot_of(uring_tid(req));
	if (!slot)
		return;
	proc = process_at(slot);
	if (!proc || proc->state != TH_LIVE)
		return;
	if ((opcode == URING_OPENAT || opcode == URING_OPENAT2) && uring_opened(req, slot, res))
		return;
	proc->unknown_call = TH_UNKNOWN_URING + opcode;
	lose(proc, TH_LOST_UNKNOWN_CALL, 1);
}

static __always_inline void uring_completed(u64 req)
{
	u32 opcode = K(struct io_kiocb, req, opcode);
	int op = uring_op(opcode), res = K(struct io_kiocb, req, cqe.res);
	struct find f = {};
	struct th_process *proc;
	struct th_episode *ep;
	s64 end;

	if (op < 0) {
		uring_other(req, opcode, res);
		return;
	}
	if (res <= 0)
		return;
	f.slot = slot_of(uring_tid(req));
	if (!f.slot)
		return;
	proc = process_at(f.slot);
	if (!proc || proc->state != TH_LIVE)
		return;
	f.file = (u64)K(struct io_kiocb, req, file);
	f.inode = (u64)K(struct file, f.file, f_inode);
	find_key(&f, KEY_URING);
	ep = hashed_at(proc->epoch, f.key, 0);
	if (!ep || ep->file != f.file || ep->inode != f.inode) {
		if (ep)
			episode_end(ep, f.slot, 0);
		share_make(&f);
		ep = hashed_at(proc->epoch, f.key, 0);
	}
	if (!ep || (ep->state & TH_EP_IGNORED))
		return;
	if (ep->state & TH_EP_PIPE) {
		pipe_op(proc, ep, op, res);
		return;
	}
	/* struct io_rw overlays the request from its start, the file */
	end = K(struct io_rw, req, kiocb.ki_pos);
	run_add(proc, ep, op | TH_HOW_URING << 8, end - res, res);
}

#endif
