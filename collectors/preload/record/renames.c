// SPDX-License-Identifier: Apache-2.0
/* Calls that create, change and remove names. */
#include <linux/fcntl.h>
#include <linux/stat.h>
#include "handlers.h"

#define AT_REMOVEDIR 0x200
#define RENAME_EXCHANGE_FLAG 2

static void record_name_change(struct rec *rec, const struct th_call *c, enum th_name_op op,
			       int dir, int path, int new_dir, int new_path)
{
	struct name_change change = {
		.op = op,
		.dir = dir < 0 ? TH_AT_FDCWD : (int)c->arg[dir],
		.path = (const char *)c->arg[path],
		.new_dir = new_dir < 0 ? TH_AT_FDCWD : (int)c->arg[new_dir],
		.new_path = new_path < 0 ? NULL : (const char *)c->arg[new_path],
	};

	if (op == TH_NAME_TRUNCATE)
		change.size = (unsigned long)c->arg[1];
	if (!th_failed(c->ret))
		name_changed(rec, &change);
}

void do_rename(struct rec *rec, const struct th_call *c)
{
	bool at = c->nr != __NR_rename;
	bool exchange = c->nr == __NR_renameat2 && (c->arg[4] & RENAME_EXCHANGE_FLAG);

	count_meta(rec, TH_META_RENAME, c);
	record_name_change(rec, c, exchange ? TH_NAME_EXCHANGE : TH_NAME_RENAME, at ? 0 : -1,
			   at ? 1 : 0, at ? 2 : -1, at ? 3 : 1);
}

void do_link(struct rec *rec, const struct th_call *c)
{
	bool at = c->nr == __NR_linkat;

	record_name_change(rec, c, TH_NAME_LINK, at ? 0 : -1, at ? 1 : 0, at ? 2 : -1, at ? 3 : 1);
}

void do_symlink(struct rec *rec, const struct th_call *c)
{
	bool at = c->nr == __NR_symlinkat;

	record_name_change(rec, c, TH_NAME_SYMLINK, at ? 1 : -1, at ? 2 : 1, -1, 0);
}

void do_unlink(struct rec *rec, const struct th_call *c)
{
	bool at = c->nr == __NR_unlinkat;
	bool dir = c->nr == __NR_rmdir || (at && (c->arg[2] & AT_REMOVEDIR));

	count_meta(rec, TH_META_UNLINK, c);
	record_name_change(rec, c, dir ? TH_NAME_RMDIR : TH_NAME_UNLINK, at ? 0 : -1, at, -1, -1);
}

void do_mkdir(struct rec *rec, const struct th_call *c)
{
	bool at = c->nr == __NR_mkdirat;

	count_meta(rec, TH_META_MKDIR, c);
	record_name_change(rec, c, TH_NAME_MKDIR, at ? 0 : -1, at, -1, -1);
}

void do_truncate(struct rec *rec, const struct th_call *c)
{
	record_name_change(rec, c, TH_NAME_TRUNCATE, -1, 0, -1, -1);
}

void do_mknod(struct rec *rec, const struct th_call *c)
{
	unsigned int type = (unsigned int)c->arg[c->nr == __NR_mknodat ? 2 : 1] & S_IFMT;

	if (!c->ret && (!type || type == S_IFREG))
		count_unknown(rec, c);
}
