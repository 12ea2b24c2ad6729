/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Spool records that the loader creates, in addition to those of layout.h. */
#ifndef TRACEHINT_SPOOL_H
#define TRACEHINT_SPOOL_H

#include "layout.h"

/* File systems whose files hold no data: proc, sysfs, cgroup, cgroup2, debugfs, tracefs ... */
#define TH_NO_DATA                                                                                 \
	{                                                                                          \
		0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0x73636673,      \
			0xcafe4a11, 0x62656570, 0x1cd1, 0x6165676c, 0x19800202, 0x42494e4d,        \
			0xde5e81e4, 0xf97cff8c, 0x6e736673                                         \
	}

/* Offsets are into heap.bin. */
struct th_spool_exec {
	unsigned int epoch;
	unsigned int spare;
	unsigned long long argv_off;
	unsigned int argv_len;
	unsigned int env_len;
	unsigned long long env_off; /* NAME=value\0, task markers only */
};

struct th_spool_path {
	unsigned int id;
	unsigned int len;
	unsigned long long off;
};

struct th_spool_name {
	unsigned int op;
	unsigned int epoch;
	unsigned long long t_ns;
	unsigned long long off;
	unsigned long long new_off;
	unsigned int len;
	unsigned int new_len;
	unsigned long long ino; /* of the object after the call; 0: not known */
	unsigned long long dev; /* as in struct stat */
	unsigned long long size;
	unsigned int mode;
	unsigned int nlink;
};

struct th_spool_loss {
	unsigned int kind; /* enum th_loss, then TH_LOSS_* below */
	unsigned int epoch;
	unsigned long long count;
};

#define TH_LOSS_RECURSION 64
#define TH_LOSS_SPOOL_WRITE 65

#endif
