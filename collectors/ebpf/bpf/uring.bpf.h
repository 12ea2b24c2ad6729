/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * io_uring: operations are counted at completion, whoever carried them out (the
 * submitter, a worker, the polling thread). The position is where it ended.
 */
#ifndef TRACEHINT_URING_BPF_H
#define TRACEHINT_URING_BPF_H

#include "share.bpf.h"

/* include/uapi/linux/io_uring.h; the numbers are fixed */
enum {
	URING_READV = 1,
	URING_WRITEV = 2,
	URING_READ_FIXED = 4,
	URING_WRITE_FIXED = 5,
	URING_READ = 22,
	URING_WRITE = 23,
	URING_READ_MULTISHOT = 49,
	URING_READV_FIXED = 60,
	URING_WRITEV_FIXED = 61,
};

/* Before Linux 6.13 the request names its task itself. */
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

static __always_inline void uring_completed(u64 req)
{
	int op = uring_op(K(struct io_kiocb, req, opcode)), res = K(struct io_kiocb, req, cqe.res);
	struct find f = {};
	struct th_process *proc;
	struct th_episode *ep;
	s64 end;

	if (op < 0 || res <= 0)
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
		count_op(ep, op, ~0ULL, res);
		return;
	}
	/* the command data begins where the request does, with the file */
	end = K(struct io_rw, req, kiocb.ki_pos);
	run_add(ep, op | TH_HOW_URING << 8, end - res, res);
}

#endif
