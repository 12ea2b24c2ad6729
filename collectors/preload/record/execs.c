// SPDX-License-Identifier: Apache-2.0
/* Exec: ends the record of a process, and records programs that cannot load the library. */
#include "process.h"

#define MAX_PATH 4096

/* Record the next program here, because it does not load the library. */
static void record_successor(struct rec *rec, const struct th_call *call, enum th_class class)
{
	bool at = call->nr == __NR_execveat;
	char *const *argv = (char *const *)call->arg[at ? 2 : 1];
	char *const *envp = (char *const *)call->arg[at ? 3 : 2];
	struct th_process_page *page = epoch_new(arguments_size(argv) + MAX_PATH);

	if (!page)
		return;
	struct rec next = {
		.page = page, .epoch = page->proc.epoch, .cwd = rec->cwd, .root = rec->root};

	next.chunks[TH_PATH] = &page->head;
	page->proc.pid = page->proc.tgid = rec->page->proc.pid;
	page->proc.ppid = rec->page->proc.ppid;
	page->space = rec->page->space;
	page->mounts = rec->page->mounts;
	page->proc.flags = TH_PROC_EXECED;
	page->proc.cwd = rec->cwd;
	page->proc.exe =
		path_at(&next, at ? call->arg[0] : TH_AT_FDCWD, (const char *)call->arg[at]);
	page->unentered = class;
	put_arguments(&next, argv, envp);
	__atomic_fetch_add(&arena->remounts, 1, __ATOMIC_RELAXED);
	rec->page->proc.hashed = page->proc.epoch; /* void if the exec fails */
}

void process_executing(const struct th_call *call, enum th_class class)
{
	/* a child that did nothing else needs no record: its parent and the program have all facts
	 * if both have the same PID namespace */
	bool silent =
		class == TH_CLASS_DYNAMIC && !rec_begun() && !image.foreign && !image.other_space;
	struct rec *rec = silent || class == TH_CLASS_UNREADABLE ? NULL : rec_here();

	if (!rec)
		return;
	if (class == TH_CLASS_DYNAMIC && (rec->foreign || arena_out_of_reach()))
		class = TH_CLASS_FOREIGN;
	slots_settle(rec);
	if (class != TH_CLASS_DYNAMIC)
		record_successor(rec, call, class);
	rec->page->proc.cpu_ns = cpu_used();
	rec->page->proc.end_ns = now_ticks();
	rec->page->proc.kind = TH_EXEC;
}

void process_not_executed(const struct th_call *call)
{
	struct rec *rec = rec_begun() ? rec_here() : NULL;

	(void)call;
	if (!rec || rec->page->proc.kind != TH_EXEC)
		return;
	rec->page->proc.kind = TH_ALIVE;
	rec->page->proc.end_ns = 0;
	rec->page->proc.cpu_ns = 0;
	rec->page->proc.hashed = 0;
}
