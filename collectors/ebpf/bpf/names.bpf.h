/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* System calls that change names. The loader resolves the strings, see rec/resolve.c. */
#ifndef TRACEHINT_NAMES_BPF_H
#define TRACEHINT_NAMES_BPF_H

#include "episode.bpf.h"

#define RENAME_EXCHANGE 2

/* Path identifier of the directory that a string given with `dirfd` starts from; 0 if absolute. */
GLOBAL u32 start_dir(u32 slot, s32 dirfd, u64 text)
{
	u64 file;
	u8 first = 0;

	bpf_probe_read_user(&first, 1, (void *)text);
	if (first == '/')
		return 0;
	if (dirfd == AT_FDCWD)
		return fs_path(bpf_get_current_task_btf(), FS_CWD, SCRATCH_EXIT, slot);
	file = fd_file(bpf_get_current_task_btf(), dirfd);
	return file ? file_path(file, SCRATCH_EXIT, slot) : 0;
}

/* A change of names: addresses of the caller's strings, 0 where there is no second one. */
struct change {
	u32 op;
	s32 dirfd;
	s32 new_dirfd;
	u32 spare;
	u64 text;
	u64 other;
};

static __always_inline void name_changed(struct call *c, struct change *what)
{
	struct th_process *proc = process_at(c->slot);
	u32 op = what->op;
	u64 other = what->other;
	u32 slot = c->slot;
	u32 root = fs_path(bpf_get_current_task_btf(), FS_ROOT, SCRATCH_EXIT, slot);
	u32 dir = start_dir(slot, what->dirfd, what->text), new_dir = 0, user = SCRATCH_EXIT;
	struct scratch *s;
	struct th_name *rec;
	u64 at = sizeof(*rec);
	long n;

	if (other && op != TH_NAME_SYMLINK)
		new_dir = start_dir(slot, what->new_dirfd, other);
	s = bpf_map_lookup_elem(&scratches, &user);
	if (!s || !proc)
		return;
	rec = (struct th_name *)s->bytes;
	rec->kind = TH_NAME;
	rec->op = op;
	rec->epoch = proc->epoch;
	rec->root = root;
	rec->dir = dir;
	rec->new_dir = new_dir;
	rec->t_ns = moment_of(proc);
	rec->size = op == TH_NAME_TRUNCATE ? c->arg[1] : 0;
	rec->tgid = proc->tgid;
	rec->spare = 0;
	n = bpf_probe_read_user_str(&s->bytes[at], TH_MAX_PATH, (void *)what->text);
	rec->len = n > 0 ? n : 0;
	if (n < 0)
		lose(proc, TH_LOST_PATH_CUT, 1);
	if (n > 0 && n <= TH_MAX_PATH)
		at += n;
	rec->new_len = 0;
	if (other) {
		n = bpf_probe_read_user_str(&s->bytes[at], TH_MAX_PATH, (void *)other);
		if (n > 0 && n <= TH_MAX_PATH) {
			rec->new_len = n;
			at += n;
		}
	}
	barrier_var(at);
	at &= TEXT_MASK; /* no effect, as the sum is smaller; the verifier of Linux 6.12 needs it */
	/* Wake the loader to look the new name up soon, before it changes again. */
	send(proc, rec, at, op == TH_NAME_UNLINK || op == TH_NAME_RMDIR ? 0 : BPF_RB_FORCE_WAKEUP);
}

/* One case per call: the change, and the arguments with its paths. */
GLOBAL int name_call(struct call *c, u32 class)
{
	struct change w = {.dirfd = AT_FDCWD, .new_dirfd = AT_FDCWD};
	u64 *a;

	if (!c)
		return 0;
	a = c->arg;
	w.text = a[0];
	switch (class) {
	case TH_CALL_RENAME:
		w.op = TH_NAME_RENAME;
		w.other = a[1];
		break;
	case TH_CALL_RENAMEAT:
	case TH_CALL_RENAMEAT2:
		w.op = TH_NAME_RENAME;
		if (class == TH_CALL_RENAMEAT2 && (a[4] & RENAME_EXCHANGE))
			w.op = TH_NAME_EXCHANGE;
		w.dirfd = a[0];
		w.text = a[1];
		w.new_dirfd = a[2];
		w.other = a[3];
		break;
	case TH_CALL_LINK:
		w.op = TH_NAME_LINK;
		w.other = a[1];
		break;
	case TH_CALL_LINKAT:
		w.op = TH_NAME_LINK;
		w.dirfd = a[0];
		w.text = a[1];
		w.new_dirfd = a[2];
		w.other = a[3];
		break;
	case TH_CALL_SYMLINK:
		w.op = TH_NAME_SYMLINK;
		w.text = a[1];
		w.other = a[0];
		break;
	case TH_CALL_SYMLINKAT:
		w.op = TH_NAME_SYMLINK;
		w.dirfd = a[1];
		w.text = a[2];
		w.other = a[0];
		break;
	case TH_CALL_UNLINK:
		w.op = TH_NAME_UNLINK;
		break;
	case TH_CALL_UNLINKAT:
		w.op = a[2] & AT_REMOVEDIR ? TH_NAME_RMDIR : TH_NAME_UNLINK;
		w.dirfd = a[0];
		w.text = a[1];
		break;
	case TH_CALL_MKDIR:
		w.op = TH_NAME_MKDIR;
		break;
	case TH_CALL_MKDIRAT:
		w.op = TH_NAME_MKDIR;
		w.dirfd = a[0];
		w.text = a[1];
		break;
	case TH_CALL_RMDIR:
		w.op = TH_NAME_RMDIR;
		break;
	case TH_CALL_TRUNCATE:
		w.op = TH_NAME_TRUNCATE;
		break;
	default:
		return 0;
	}
	if (w.op <= TH_NAME_EXCHANGE)
		__sync_fetch_and_add(&state.path_gen, 1);
	name_changed(c, &w);
	return 0;
}

#endif
