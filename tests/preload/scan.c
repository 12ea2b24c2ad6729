// SPDX-License-Identifier: Apache-2.0
/* Print the system-call sites that the library finds in the code of a file: offset of `0f 05` in
 * the file and number (-1: unknown). Arguments: FILE, offset and size of its code. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "hook/sites.h"

int main(int argc, char **argv)
{
	static struct site sites[TH_MAX_SITES];
	long offset = argc == 4 ? atol(argv[2]) : 0, size = argc == 4 ? atol(argv[3]) : 0;
	int fd = argc == 4 ? open(argv[1], O_RDONLY) : -1;
	unsigned char *code = mmap(NULL, (size_t)(offset + size), PROT_READ, MAP_PRIVATE, fd, 0);

	if (fd < 0 || code == MAP_FAILED)
		return 1;
	struct text text = {code + offset, code + offset + size, 5};
	unsigned int n = find_sites(&text, sites, TH_MAX_SITES);

	for (unsigned int i = 0; i < n; i++)
		printf("%ld %d\n", (long)(site_mark(&sites[i]) - code), sites[i].nr);
	return 0;
}
