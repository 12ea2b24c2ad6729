// SPDX-License-Identifier: Apache-2.0
/* Extended attributes: the value that a record stands for, set where it is not so already. */
#define _GNU_SOURCE
#include "tag.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <sys/xattr.h>

#define MAX_VALUE 4096

static int decode(const char *hex, unsigned char *out, size_t *length)
{
	*length = 0;
	for (hex += 2; hex[0] && hex[1]; hex += 2) {
		unsigned int byte;

		if (*length == MAX_VALUE || sscanf(hex, "%2x", &byte) != 1)
			return -1;
		out[(*length)++] = byte;
	}
	return *hex ? -1 : 0;
}

int class_name(const char *value, char *out, size_t size)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	const char *mark = strstr(value, "@host");
	struct utsname system;
	int n;

	if (mark && uname(&system) == 0) {
		system.nodename[strcspn(system.nodename, ".")] = 0;
		n = snprintf(out, size, "%.*s%s%s", (int)(mark - value), value, system.nodename,
			     mark + strlen("@host"));
	} else {
		n = snprintf(out, size, "%s", value);
	}
	return n > 0 && (size_t)n < size && out[0] != '-' && !out[strspn(out, plain)] ? 0 : -1;
}

/* A value in hexadecimal; or a plain name with @host in it, for a pool of Ceph. */
static int value_of(const struct record *r, unsigned char *out, size_t *length)
{
	if (!strncmp(r->value, "0x", 2))
		return decode(r->value, out, length);
	if (strncmp(r->name, "ceph.", 5) || class_name(r->value, (char *)out, MAX_CLASS) < 0)
		return -1;
	*length = strlen((char *)out);
	return 0;
}

void set_attribute(int fd, const struct record *r)
{
	unsigned char value[MAX_VALUE], now[MAX_VALUE];
	size_t length;

	if (!strncasecmp(r->name, "security.", 9) || !strncasecmp(r->name, "system.", 7)) {
		complain("refused an attribute", EPERM);
	} else if (value_of(r, value, &length) < 0) {
		complain("bad value in the table", EINVAL);
	} else {
		ssize_t had = fgetxattr(fd, r->name, now, sizeof(now));

		if (had == (ssize_t)length && !memcmp(now, value, length))
			return;
		if (fsetxattr(fd, r->name, value, length, 0) < 0)
			complain("cannot set an attribute", errno);
	}
}
