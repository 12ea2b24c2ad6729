/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook core of libtracehint.so and what attaches to it. The library is preloaded; it
 * patches the system-call sites of the C library and the loader, so every call of interest
 * passes th_dispatch. Observers are told about calls; a recorder and a tagger are two
 * of them, each turned on by an environment variable of its own (observers.c has the table).
 *
 * Adding one: a struct th_observer in a file of its own, its line in observers.c, and, where it
 * lies in another folder, target_sources(tracehint PRIVATE ...) there.
 *
 * Rules for observers: raw system calls only (th_sys.h), no locks held over a system call, at
 * most 1 KiB of stack, no thread-local storage, nothing that can fail into the program.
 * They run inside signal handlers, threads, and children of vfork, which share all memory with
 * their parent (th_vforked). A child by fork finds the pages of th_map_wiped zeroed: that is how
 * it knows that it is another process.
 */
#ifndef TRACEHINT_HOOK_H
#define TRACEHINT_HOOK_H

#include "th_sys.h"

#define TH_CALLS 512 /* system call numbers that can be observed */

struct th_call {
	long nr;
	long arg[6];
	long ret;  /* valid in `after` */
	long note; /* from `before` to `after` of the recorder */
};

/* What a program is to us, read from its ELF header before exec. */
enum th_class {
	TH_CLASS_DYNAMIC, /* the library can be loaded */
	TH_CLASS_STATIC,
	TH_CLASS_GO,	 /* static, by Go: makes its system calls itself */
	TH_CLASS_MUSL,	 /* another C library */
	TH_CLASS_SETUID, /* the loader ignores preload there */
	TH_CLASS_ASAN,	 /* refuses to start after a preloaded library */
	TH_CLASS_BITS32,
	TH_CLASS_UNREADABLE, /* may be executed, not read: taken as dynamic */
	TH_CLASS_APART,	     /* our library is not there: another root, a container */
	TH_CLASS_FOREIGN,    /* runs as a user who may not open the recording */
	TH_CLASSES,
};

#define TH_CLONE_VM 0x100UL
#define TH_CLONE_VFORK 0x4000UL
#define TH_CLONE_THREAD 0x10000UL
#define TH_CLONE_NEWPID 0x20000000UL

struct th_program {
	int argc;
	char **argv;
	char **envp;
};

struct th_observer {
	const char *variable; /* on when this is in the environment; carried through exec */
	bool bare;	      /* also in static programs, which need no loader (hook/enter.c) */
	bool quick;	      /* its `after` of some calls is th_quick_after, where it is alone */
	/* Once per program; returns whether it is on. Its memory comes from th_map. */
	bool (*start)(const char *value, const struct th_program *program);
	/* In its place, where there is no memory for the library. */
	void (*missed)(const char *value);
	/* Numbers wanted in `before` and in `after`, each ended by TH_CALLS; NULL: none. */
	const unsigned short *before_calls, *calls;
	void (*before)(struct th_call *call);
	void (*after)(const struct th_call *call);
	/*
	 * `fd` was just opened by a creating call, is an empty regular file, and nobody has it yet.
	 * `path` is what the program gave, relative to `dirfd` where it does not begin with '/'.
	 * Also told when a file of O_TMPFILE gets its name by link (it may hold data by then).
	 */
	void (*created)(int dirfd, const char *path, int fd);
	/* Once, before the program begins: some calls of its C library do not arrive (hook/check.c). */
	void (*incomplete)(void);
	/*
	 * Around fork, vfork and clone, in the parent; `pid` is the child's, or a negative error.
	 * `began`: 0, and what the first one makes of it is there in the second one of this thread.
	 */
	void (*forking)(unsigned long clone_flags, unsigned long long *began);
	void (*forked)(long pid, unsigned long clone_flags, unsigned long long began);
	/*
	 * Another command for execve to start, whose words are in memory of th_map; NULL: none. It does
	 * not get `variable`. The call itself is made where the command cannot be started.
	 */
	char **(*replacing)(const struct th_call *call, size_t *bytes);
	/* Before execve or execveat (arguments as in the call), and after one that failed. */
	void (*executing)(const struct th_call *call, enum th_class class);
	void (*not_executed)(const struct th_call *call);
};

extern const struct th_observer *const th_observers[]; /* ended by NULL: observers.c */

/*
 * Of the recorder (record/quick.c), from entry.S: after read, write, pread64 or pwrite64 moved `len`
 * bytes, at `offset` where the call has one.
 */
void th_quick_after(long fd, unsigned long nr, long long offset, long len);

/*
 * Of the recorder (record/programs.c): what is known of the program at a path that was executed before.
 * `key`: 0 where nothing is remembered of it. TH_CLASSES: not known.
 */
unsigned long long th_program_key(const char *path);
enum th_class th_program_class(unsigned long long key);
void th_program_is(unsigned long long key, enum th_class class);

/* For observers. */
/* Whether n bytes there can be read: a program may give any address, and gets EFAULT. */
bool th_readable(const void *at, size_t n);
int th_pid(void);	       /* of this process, also in a child of vfork */
bool th_vforked(void);	       /* shares all memory with another process: do not touch its tables */
const char *th_own_path(void); /* of libtracehint.so */
const char *th_variable(char *const *envp, const char *name); /* its value, or NULL */
char *th_keep(const char *a, const char *b);	    /* both, one behind the other; NULL: no room */
void th_carry(const char *name, const char *value); /* through exec, beside `variable` */
void *th_map_wiped(size_t bytes); /* zeroed in every child by fork; NULL: not possible here */

#endif
