// SPDX-License-Identifier: Apache-2.0
/*
 * `names TABLE`: for each NUL-ended path on standard input, print the name of a file created by it,
 * if the path determines it (tag/name.c), as a line of hexadecimal digits; empty otherwise.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tag/hinter.h"

int main(int argc, char **argv)
{
	static char given[2 * TAG_MAX_NAME], out[TAG_MAX_NAME];
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	struct tag_table table;
	struct stat st;
	size_t n = 0;

	if (fd < 0 || fstat(fd, &st))
		return 2;
	const void *base = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (base == MAP_FAILED || !tag_use(&table, base, st.st_size))
		return 2;
	for (int c; (c = getchar()) != EOF && n < sizeof(given);) {
		given[n++] = (char)c;
		if (c)
			continue;
		uint32_t length = tag_name_given(&table, AT_FDCWD, given, out);

		for (uint32_t i = 0; i < length; i++)
			printf("%02x", (unsigned char)out[i]);
		printf("\n");
		n = 0;
	}
	return 0;
}
