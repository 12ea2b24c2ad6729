// SPDX-License-Identifier: Apache-2.0
/* The command line. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include "rec.h"

const char options_usage[] =
	"usage: tracehint-rec -o DIR [options] -- COMMAND [ARGUMENT]...\n"
	"       tracehint-rec -o DIR [options] --pid PID | --cgroup DIR\n"
	"       tracehint-rec -o DIR [options] --listen FD --lock FD\n"
	"       tracehint-rec --check | --version\n"
	"  -o DIR              existing empty directory for the spool\n"
	"  --ring BYTES        life-cycle ring, a power of two (default 8388608)\n"
	"  --extents BYTES     extents ring, a power of two (default 8388608)\n"
	"  --processes N       processes followed at the same time (default 4096)\n"
	"  --linger MS         follow processes that outlive the command (default 1000)\n"
	"  --pid PID           follow a running process and its descendants\n"
	"  --cgroup DIR        follow the processes of a cgroup v2 directory\n"
	"  --duration MS       time to follow (default: until the processes have ended)\n"
	"  --listen FD         follow the processes that connect to this socket (see join.c)\n"
	"  --lock FD           file that these processes lock\n"
	"  --ready FD          write one byte when recording starts; for a command its pid, "
	"then\n"
	"                      its exit status and signal\n"
	"  --environment FD    file with the command's environment, each string ended by a zero "
	"byte\n"
	"  --idle MS           end after this time without a followed process (default: never)\n"
	"  --no-direct         read kernel memory as on Linux before 6.2\n";

/* Number of options that select running processes to follow. */
int options_follow(const struct options *o)
{
	return (o->pid > 0) + (o->cgroup != NULL) + (o->listen >= 0);
}

int options_parse(int argc, char **argv, struct options *o)
{
	enum {
		RING = 256,
		EXTENTS,
		PROCESSES,
		LINGER,
		CHECK,
		VERSION,
		NO_DIRECT,
		PID,
		CGROUP,
		DURATION,
		LISTEN,
		LOCK,
		READY,
		ENVIRONMENT,
		IDLE
	};
	static const struct option table[] = {
		{"ring", required_argument, NULL, RING},
		{"extents", required_argument, NULL, EXTENTS},
		{"processes", required_argument, NULL, PROCESSES},
		{"linger", required_argument, NULL, LINGER},
		{"check", no_argument, NULL, CHECK},
		{"version", no_argument, NULL, VERSION},
		{"no-direct", no_argument, NULL, NO_DIRECT},
		{"pid", required_argument, NULL, PID},
		{"cgroup", required_argument, NULL, CGROUP},
		{"duration", required_argument, NULL, DURATION},
		{"listen", required_argument, NULL, LISTEN},
		{"lock", required_argument, NULL, LOCK},
		{"ready", required_argument, NULL, READY},
		{"environment", required_argument, NULL, ENVIRONMENT},
		{"idle", required_argument, NULL, IDLE},
		{},
	};
	int c;

	while ((c = getopt_long(argc, argv, "+o:", table, NULL)) != -1) {
		unsigned int n = optarg ? (unsigned int)strtoul(optarg, NULL, 10) : 0;

		switch (c) {
		case 'o':
			o->spool = optarg;
			break;
		case RING:
			o->ring = n;
			break;
		case EXTENTS:
			o->extents_ring = n;
			break;
		case PROCESSES:
			o->slots = n + 1;
			break;
		case LINGER:
			o->linger_ms = n;
			break;
		case CHECK:
			o->check = true;
			break;
		case VERSION:
			o->version = true;
			break;
		case NO_DIRECT:
			o->no_direct = true;
			break;
		case PID:
			o->pid = (int)n;
			break;
		case CGROUP:
			o->cgroup = optarg;
			break;
		case DURATION:
			o->duration_ms = n;
			break;
		case LISTEN:
			o->listen = (int)n;
			break;
		case LOCK:
			o->lock = (int)n;
			break;
		case READY:
			o->ready = (int)n;
			break;
		case ENVIRONMENT:
			o->environment = (int)n;
			break;
		case IDLE:
			o->idle_ms = n;
			break;
		default:
			return -EINVAL;
		}
	}
	o->command = argv + optind;
	if (o->check || o->version)
		return 0;
	if ((*o->command != NULL) + options_follow(o) != 1 || (o->listen >= 0 && o->lock < 0))
		return -EINVAL;
	return o->spool && o->slots > 1 && o->slots < 65536 ? 0 : -EINVAL;
}
