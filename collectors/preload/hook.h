/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook core of libtracehint.so and the interface of its observers. The library is preloaded and
 * patches the system-call sites of the C library and the loader, so that every call of interest
 * passes through th_dispatch, which calls the observers. The recorder and the tagger are observers,
 * each enabled by its own environment variable (observers.c has the table).
 *
 * To add one: define a struct th_observer in its own file, add it to observers.c and, if the file
 * is located in another folder, call target_sources(tracehint PRIVATE ...) there.
 *
 * Rules for observers: raw system calls only (th_sys.h), no locks held during a system call, at
 * most 1 KiB of stack, no thread-local storage, no failure that affects the program.
 * They run inside signal handlers, threads, and children of vfork, which share all memory with
 * their parent (th_vforked). A child by fork finds the pages of th_map_wiped zeroed and so detects
 * that it is another process.
 */
#ifndef TRACEHINT_HOOK_H
#define TRACEHINT_HOOK_H

#include "th_sys.h"

#define TH_CALLS 512 /* system call numbers that can be observed */

struct th_call {
	long nr;
	long arg[6];
	long ret;  /* valid in `after` */
	long note; /* passed from `before` to `after` of the recorder */
};

/* The class of a program, read from its ELF header before exec. */
enum th_class {
	TH_CLASS_DYNAMIC, /* the library can be loaded */
	TH_CLASS_STATIC,
	TH_CLASS_GO,	 /* makes its system calls itself */
	TH_CLASS_MUSL,	 /* another C library */
	TH_CLASS_SETUID, /* the loader ignores LD_PRELOAD */
	TH_CLASS_ASAN,	 /* refuses to start after a preloaded library */
	TH_CLASS_BITS32,
	TH_CLASS_UNREADABLE, /* executable, not readable: treated as dynamic */
	TH_CLASS_APART,	     /* the library does not exist there: another root, a container */
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
	const char *variable; /* enabled if it is in the environment; passed on by exec */
	bool bare;	      /* also works in static programs, without a loader (hook/enter.c) */
	bool quick;	      /* th_quick_after replaces `after` of calls that only it wants */
	/* Called once per program; returns whether it is enabled. Its memory comes from th_map. */
	bool (*start)(const char *value, const struct th_program *program);
	/* Called instead of `start` if the library has no memory. */
	void (*missed)(const char *value);
	/* Call numbers for `before` and for `after`, each list ended by TH_CALLS; NULL: none. */
	const unsigned short *before_calls, *calls;
	void (*before)(struct th_call *call);
	void (*after)(const struct th_call *call);
	/*
	 * An open that may create files returned the empty regular file `fd`; the program does not
	 * have it yet. `path` is the argument of the call, relative to `dirfd` if it has no '/' in
	 * front. Also called when a file of O_TMPFILE is linked to a name (it may hold data then).
	 */
	void (*created)(int dirfd, const char *path, int fd);
	/* Once, before the program begins: some calls of its C library bypass the hook. */
	void (*incomplete)(void);
	/*
	 * Around fork, vfork and clone, in the parent; `pid` is the child's, or a negative error.
	 * `began` is 0 at first; `forked` of the same thread receives the value set by `forking`.
	 */
	void (*forking)(unsigned long clone_flags, unsigned long long *began);
	void (*forked)(long pid, unsigned long clone_flags, unsigned long long began);
	/*
	 * Returns the arguments of a command to execute instead, in memory of th_map; NULL: none.
	 * That command does not get `variable`. If it cannot be started, the original call is made.
	 */
	char **(*replacing)(const struct th_call *call, size_t *bytes);
	/* Before execve or execveat (arguments as in the call), and after a failed one. */
	void (*executing)(const struct th_call *call, enum th_class class);
	void (*not_executed)(const struct th_call *call);
};

extern const struct th_observer *const th_observers[]; /* ended by NULL: observers.c */

/*
 * Recorder (record/quick.c), called by entry.S after read, write, pread64 or pwrite64 transferred
 * `len` bytes; `offset` is valid if the call has one.
 */
void th_quick_after(long fd, unsigned long nr, long long offset, long len);

/*
 * Recorder (record/programs.c): the remembered class of the program at an executed path.
 * `key`: 0 if nothing can be remembered of it. TH_CLASSES: not known.
 */
unsigned long long th_program_key(const char *path);
enum th_class th_program_class(unsigned long long key);
void th_program_is(unsigned long long key, enum th_class class);

/* For observers: */
/* Whether n bytes at `at` can be read: a program may pass any address, and gets EFAULT. */
bool th_readable(const void *at, size_t n);
int th_pid(void);	       /* of this process, also in a child of vfork */
bool th_vforked(void);	       /* shares all memory with another process: do not touch its tables */
const char *th_own_path(void); /* of libtracehint.so */
const char *th_variable(char *const *envp, const char *name); /* its value, or NULL */
char *th_keep(const char *a, const char *b);	    /* a copy of a and b joined; NULL: no space */
void th_carry(const char *name, const char *value); /* through exec, like `variable` */
void *th_map_wiped(size_t bytes); /* zeroed in every child by fork; NULL: not available */

#endif
