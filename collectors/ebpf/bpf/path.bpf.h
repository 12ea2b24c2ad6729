/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Path identifiers. The text of a path is sent to the loader once; later the identifier comes from
 * the cache while the directory entry, its name, parent and inode are unchanged and nothing has
 * been renamed.
 */
#ifndef TRACEHINT_PATH_BPF_H
#define TRACEHINT_PATH_BPF_H

#include "state.bpf.h"

/* Passed by address: a load from memory yields the plain number that callees require. */
struct where {
	u64 dentry;
	u64 vfsmount;
};

static __always_inline u64 mount_of(u64 vfsmount)
{
	return vfsmount - bpf_core_field_offset(struct mount, mnt);
}

/* One step towards the root: cross a mount point, or append a name. */
static long walk_step(u32 i, u32 *user)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, user);
	struct walk *w;
	u64 parent, up;
	long n;
	u32 at;

	if (!s)
		return 1;
	w = &s->walk;
	if (w->dentry == (u64)K(struct mount, w->mount, mnt.mnt_root)) {
		up = (u64)K(struct mount, w->mount, mnt_parent);
		if (up == w->mount || !up)
			return 1;
		w->dentry = (u64)K(struct mount, w->mount, mnt_mountpoint);
		w->mount = up;
		return 0;
	}
	parent = (u64)K(struct dentry, w->dentry, d_parent);
	if (parent == w->dentry || !parent)
		return 1;
	at = sizeof(struct th_path) + w->len;
	if (w->len >= TH_MAX_PATH || i == TH_MAX_LEVELS - 1) {
		w->cut = 1;
		return 1;
	}
	n = bpf_probe_read_kernel_str(&s->bytes[at & TEXT_MASK], 256,
				      K(struct dentry, w->dentry, d_name.name));
	if (n > 0)
		w->len += n;
	w->dentry = parent;
	return 0;
}

static __always_inline u32 path_walk(u64 dentry, u64 mount, u32 user, u32 slot)
{
	struct th_process *proc = process_at(slot);
	struct scratch *s = bpf_map_lookup_elem(&scratches, &user);
	struct th_path *rec;
	u64 len;

	if (!s)
		return 0;
	s->walk.dentry = dentry;
	s->walk.mount = mount;
	s->walk.len = s->walk.cut = 0;
	th_loop(TH_MAX_LEVELS, walk_step, &user, 0);
	len = s->walk.len;
	rec = (struct th_path *)s->bytes;
	rec->kind = TH_PATH;
	rec->id = __sync_fetch_and_add(&state.paths, 1) + 1;
	rec->len = len;
	rec->cut = s->walk.cut;
	if (rec->cut)
		lose(proc, TH_LOST_PATH_CUT, 1);
	barrier_var(len);
	if (len > TH_MAX_PATH + 256)
		return 0;
	return send(proc, rec, sizeof(*rec) + len, 0) ? rec->id : 0;
}

/* Path identifier of a directory entry; 0 if its record was lost. */
GLOBAL u32 path_id(struct where *at, u32 user, u32 slot)
{
	u64 dentry = at ? at->dentry : 0;
	struct path_key key = {.dentry = dentry, .mount = at ? mount_of(at->vfsmount) : 0};
	struct path_value now = {
		.name = K(struct dentry, dentry, d_name.hash_len),
		.parent = (u64)K(struct dentry, dentry, d_parent),
		.inode = (u64)K(struct dentry, dentry, d_inode),
		.gen = state.path_gen,
	};
	struct path_value *old = bpf_map_lookup_elem(&path_cache, &key);

	if (old && old->name == now.name && old->parent == now.parent && old->inode == now.inode &&
	    old->gen == now.gen && state.paths - old->id < TH_PATHS_KEPT / 2)
		return old->id;
	now.id = path_walk(dentry, key.mount, user, slot);
	if (now.id)
		bpf_map_update_elem(&path_cache, &key, &now, BPF_ANY);
	return now.id;
}

static __always_inline u32 file_path(u64 file, u32 user, u32 slot)
{
	struct where at = {
		.dentry = (u64)K(struct file, file, f_path.dentry),
		.vfsmount = (u64)K(struct file, file, f_path.mnt),
	};

	return path_id(&at, user, slot);
}

enum fs_place { FS_ROOT, FS_CWD };

static __always_inline u32 fs_path(struct task_struct *task, enum fs_place place, u32 user,
				   u32 slot)
{
	struct fs_struct *fs = plain(task)->fs;
	struct where at;

	if (place == FS_ROOT) {
		at.dentry = (u64)fs->root.dentry;
		at.vfsmount = (u64)fs->root.mnt;
	} else {
		at.dentry = (u64)fs->pwd.dentry;
		at.vfsmount = (u64)fs->pwd.mnt;
	}
	return path_id(&at, user, slot);
}

/* Whether the mount is internal to the kernel (memfd, System V segments): not files. */
static __always_inline bool internal_mount(u64 file)
{
	u64 mount = mount_of((u64)K(struct file, file, f_path.mnt));

	return (u64)K(struct mount, mount, mnt_ns) >= (u64)-4095;
}

#endif
