// SPDX-License-Identifier: Apache-2.0
/* Successful calls that change names. */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "record.h"

#define AT_SYMLINK_NOFOLLOW 0x100

/* Set the attributes of the file that has the name now, if there is one. */
static void set_attributes(struct th_spool_name *out, long dir, const char *path)
{
	struct statx facts;

	if (th_failed(
		    th_sys(__NR_statx, dir, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &facts)))
		return;
	out->ino = facts.stx_ino;
	out->dev = (unsigned long long)facts.stx_dev_major << 32 | facts.stx_dev_minor;
	out->mode = facts.stx_mode;
	out->nlink = facts.stx_nlink;
}

/* Return the text of an old name; of a descriptor's name in /proc, that of the open file. */
static unsigned int old_name(struct rec *rec, const struct name_change *change)
{
	int fd = 0;

	if (!path_is_own(change->path))
		return path_at(rec, change->dir, change->path);
	for (const char *c = th_base(change->path); *c; c++) {
		if (*c < '0' || *c > '9' || fd > 100000000)
			return path_at(rec, change->dir, change->path);
		fd = fd * 10 + (*c - '0');
	}
	return path_of_fd(rec, fd);
}

void name_changed(struct rec *rec, const struct name_change *change)
{
	unsigned long long now = now_ticks();
	unsigned int old = old_name(rec, change), new = 0;
	struct th_spool_name found = {.op = change->op};

	if (change->op == TH_NAME_SYMLINK)
		new = text_put(rec, 0, change->new_path, (unsigned int)th_len(change->new_path));
	else if (change->new_path)
		new = path_at(rec, change->new_dir, change->new_path);
	if (change->op != TH_NAME_UNLINK && change->op != TH_NAME_RMDIR) {
		bool second = change->new_path && change->op != TH_NAME_SYMLINK;

		set_attributes(&found, second ? change->new_dir : change->dir,
			       second ? change->new_path : change->path);
	}
	struct th_spool_name *out = record_new(rec, TH_NAME, sizeof(*out));

	if (!out) {
		lose(rec, TH_LOST_LIFECYCLE, 1);
		return;
	}
	*out = found;
	out->epoch = rec->epoch;
	out->off = old;
	out->new_off = new;
	out->size = change->size;
	out->t_ns = now; /* last: the record is complete */
}
