// SPDX-License-Identifier: Apache-2.0
/* Extended attributes: decode, read, compare and set values. */
#define _GNU_SOURCE
#include "tag.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <sys/xattr.h>

int decode_hex(const char *hex, unsigned char *out, size_t *length)
{
	*length = 0;
	for (; hex[0] && hex[1]; hex += 2) {
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

int value_of(const char *name, const char *text, struct value *v)
{
	v->set = true;
	if (strcmp(name, MFS_CLASS) && !strncmp(text, "0x", 2)) {
		if (decode_hex(text + 2, v->bytes, &v->length) < 0)
			return -1;
	} else {
		if (strcmp(name, MFS_CLASS) && strncmp(name, "ceph.", 5))
			return -1;
		if (class_name(text, (char *)v->bytes, MAX_CLASS) < 0)
			return -1;
		v->length = strlen((char *)v->bytes);
	}
	v->bytes[v->length] = 0;
	return 0;
}

/* Remove the pool that Ceph adds to a layout; here it is a separate attribute. */
static void strip_pool(const char *name, struct value *v)
{
	size_t n = strlen(name);
	char *pool;

	if (strncmp(name, "ceph.", 5) || n < 7 || strcmp(name + n - 7, ".layout"))
		return;
	pool = strstr((char *)v->bytes, " pool=");
	if (pool) {
		*pool = 0;
		v->length = strlen((char *)v->bytes);
	}
}

int value_now(int fd, const char *name, struct value *v)
{
	v->set = false;
	v->length = 0;
	v->bytes[0] = 0;
	if (!strcmp(name, MFS_CLASS)) {
		errno = class_get(fd, (char *)v->bytes, MAX_CLASS);
		v->length = strlen((char *)v->bytes);
		v->set = v->length > 0;
		return errno ? -1 : 0;
	}
	ssize_t n = fgetxattr(fd, name, v->bytes, MAX_VALUE);
	if (n < 0)
		return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -1;
	v->set = true;
	v->length = (size_t)n;
	v->bytes[n] = 0;
	strip_pool(name, v);
	return 0;
}

int value_put(int fd, const char *name, const struct value *v)
{
	if (strcmp(name, MFS_CLASS))
		return fsetxattr(fd, name, v->bytes, v->length, 0);
	errno = class_put(fd, (const char *)v->bytes);
	return errno ? -1 : 0;
}

bool value_same(const struct value *a, const struct value *b)
{
	return a->set == b->set && a->length == b->length && !memcmp(a->bytes, b->bytes, a->length);
}

void set_attribute(int fd, const struct record *r)
{
	struct value value, now;

	if (!strncasecmp(r->name, "security.", 9) || !strncasecmp(r->name, "system.", 7))
		complain("refused an attribute", EPERM);
	else if (value_of(r->name, r->value, &value) < 0)
		complain("bad value in the table", EINVAL);
	else if (value_now(fd, r->name, &now) == 0 && value_same(&now, &value))
		return;
	else if (value_put(fd, r->name, &value) < 0)
		complain("cannot set an attribute", errno);
}
