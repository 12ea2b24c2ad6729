/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads that state their own truth: each case does I/O in its working
 * directory and prints, as JSON lines, the facts that a recording must contain.
 * Counts are prime, so that a wrong one is not right by chance.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77

/* A case returns 0, or 77 if this kernel or file system lacks a required feature. */
struct workload {
	const char *name;
	int (*run)(void);
};

extern const struct workload rw_cases[], fd_cases[], copy_cases[], name_cases[], map_cases[],
	process_cases[], thread_cases[], special_cases[], uring_cases[], aio_cases[];

/* tests/adversary */
extern const struct workload data_cases[], handle_cases[], path_cases[], mapping_cases[],
	ring_cases[];

/* loss.c: started with arguments, see main */
int loss_random(long n, long pages);
int loss_processes(long n);
int loss_files(long n);
int loss_forever(void);

/* Print: this process (or `pid`) did `ops` operations of `bytes` in total within [start, end). */
void saw(const char *path, const char *op, const char *how, long start, long end, long bytes,
	 long ops);
void saw_by(pid_t pid, const char *path, const char *op, const char *how, long start, long end,
	    long bytes, long ops);
/* Print: the names table has this row. */
void named(const char *op, const char *path, const char *new_path);
/* Print: a fact about the file that had this path (deleted, created, same as another). */
void fact(const char *what, const char *path, const char *other);

int make(const char *path, size_t size); /* a file, its writes printed; read-write descriptor */
void must(int ok, const char *what);	 /* end the case if !ok */
void child(int (*run)(void));		 /* fork, run, wait; end the case if it fails */
void here(const char *text);		 /* comment line */

#endif
