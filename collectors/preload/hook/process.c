// SPDX-License-Identifier: Apache-2.0
/* Identity of this process, and calls that create another one. */
#include "core.h"

#define MADV_NOHUGEPAGE 15
#define MADV_WIPEONFORK 18
#define WIPED (4UL << 20)

struct th_state *th_state;

/* Mappings that children of vfork leave behind by exec; also zeroed in children by fork. */
static struct th_left {
	int pid; /* 0: free */
	void *at;
	size_t bytes;
} * left_mappings;

/* Mapped once and divided into adjacent pieces, so that fewer pages are touched. */
static char *wiped;
static size_t wiped_left;

void *th_map_wiped(size_t bytes)
{
	bytes = (bytes + 63) & ~63UL;
	if (!wiped) {
		wiped = th_map(WIPED);
		if (!wiped)
			return NULL;
		if (th_failed(th_sys(__NR_madvise, wiped, WIPED, MADV_WIPEONFORK))) {
			th_sys(__NR_munmap, wiped, WIPED);
			wiped = NULL;
			return NULL;
		}
		/* where huge pages are the default, one would use 2 MiB of each process */
		th_sys(__NR_madvise, wiped, WIPED, MADV_NOHUGEPAGE);
		wiped_left = WIPED - TH_FORKING * sizeof(*left_mappings);
		left_mappings = (struct th_left *)(wiped + wiped_left);
	}
	if (bytes > wiped_left)
		return NULL;
	wiped += bytes;
	wiped_left -= bytes;
	return wiped - bytes;
}

/* Whether another process may run in this memory. */
static bool may_be_other(void)
{
	return __atomic_load_n(&th_state->vforks, __ATOMIC_RELAXED) || th_state->shared;
}

int th_pid(void)
{
	int pid = th_state->pid;

	if (pid && !may_be_other())
		return pid;
	int real = (int)th_sys(__NR_getpid);

	if (!pid)
		th_state->pid = real;
	return real;
}

bool th_vforked(void)
{
	return may_be_other() && th_pid() != th_state->pid;
}

static unsigned long clone_flags(const struct th_call *call)
{
	if (call->nr == __NR_clone)
		return (unsigned long)call->arg[0];
	if (call->nr == __NR_clone3 && th_readable((const void *)call->arg[0], 8))
		return *(const uint64_t *)call->arg[0];
	return call->nr == __NR_vfork ? TH_CLONE_VM | TH_CLONE_VFORK : 0;
}

/* Store the flags of the process that this thread is about to create; false: no space. */
static bool store_fork(unsigned int flags, unsigned long long began)
{
	int tid = (int)th_sys(__NR_gettid);

	for (unsigned int i = 0; i < TH_FORKING; i++) {
		int none = 0;

		if (__atomic_compare_exchange_n(&th_state->forking[i].tid, &none, tid, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
			th_state->forking[i].flags = flags;
			th_state->forking[i].began = began;
			return true;
		}
	}
	return false;
}

/* Return the stored flags and set `began`; if there was no space, return 0. */
static unsigned long take_fork(unsigned long long *began)
{
	int tid = (int)th_sys(__NR_gettid);

	for (unsigned int i = 0; i < TH_FORKING; i++) {
		if (th_state->forking[i].tid != tid)
			continue;
		unsigned long flags = th_state->forking[i].flags;

		*began = th_state->forking[i].began;
		__atomic_store_n(&th_state->forking[i].tid, 0, __ATOMIC_SEQ_CST);
		return flags;
	}
	return 0;
}

/* Update the state before there are two processes. */
void th_fork_before(const struct th_call *call)
{
	unsigned long flags = clone_flags(call);
	bool vfork = (flags & (TH_CLONE_VM | TH_CLONE_VFORK)) == (TH_CLONE_VM | TH_CLONE_VFORK);
	bool thread = flags & TH_CLONE_THREAD;
	unsigned long long began = 0;

	th_pid();
	if (vfork && !thread)
		__atomic_add_fetch(&th_state->vforks, 1, __ATOMIC_SEQ_CST);
	else if (flags & TH_CLONE_VM && !thread)
		th_state->shared = 1;
	th_tell_forking(flags, &began);
	if (!store_fork((unsigned int)flags, began) && vfork)
		th_state->shared = 1; /* the count stays too high: slow, but correct */
}

/* Let the parent unmap this memory after the exec of its child by vfork. */
void th_leave(void *at, size_t bytes)
{
	int pid = th_pid();

	for (unsigned int i = 0; i < TH_FORKING && th_vforked(); i++) {
		int none = 0;

		if (!__atomic_compare_exchange_n(&left_mappings[i].pid, &none, pid, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			continue;
		left_mappings[i].bytes = bytes;
		left_mappings[i].at = at;
		return;
	}
}

/* Undo th_leave after a failed exec. */
void th_unleave(void *at)
{
	for (unsigned int i = 0; i < TH_FORKING && th_vforked(); i++)
		if (left_mappings[i].at == at && left_mappings[i].pid == th_pid()) {
			left_mappings[i].at = NULL;
			__atomic_store_n(&left_mappings[i].pid, 0, __ATOMIC_SEQ_CST);
		}
}

static void give_back(int pid)
{
	for (unsigned int i = 0; i < TH_FORKING; i++) {
		if (__atomic_load_n(&left_mappings[i].pid, __ATOMIC_SEQ_CST) != pid)
			continue;
		if (left_mappings[i].at)
			th_sys(__NR_munmap, left_mappings[i].at, left_mappings[i].bytes);
		left_mappings[i].at = NULL;
		__atomic_store_n(&left_mappings[i].pid, 0, __ATOMIC_SEQ_CST);
	}
}

/* In the parent; a child of vfork has ended or executed a program by now. */
void th_fork_after(const struct th_call *call)
{
	unsigned long long began = 0;
	unsigned long flags = take_fork(&began);

	if ((flags & TH_CLONE_VFORK) && (flags & TH_CLONE_VM) && !(flags & TH_CLONE_THREAD)) {
		__atomic_sub_fetch(&th_state->vforks, 1, __ATOMIC_SEQ_CST);
		if (call->ret > 0)
			give_back((int)call->ret);
	}
	th_tell_forked(call->ret, flags, began);
}
