// SPDX-License-Identifier: Apache-2.0
/*
 * The spool: one file of fixed-size records per kind and one heap of strings. Flushed about once a
 * second for the case that the recorder is killed. On a full disk records are lost and counted; the
 * command is never stopped. The space for the counts and for end.json is reserved at the start.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rec.h"

#define BUFFER (128 << 10)

static const char *const names[SPOOL_FILES] = {
	"episodes.bin", "extents.bin", "processes.bin", "execs.bin",
	"paths.bin",	"names.bin",   "losses.bin",	"heap.bin",
};

static struct {
	int fd;
	size_t used;
	unsigned int records; /* in the buffer; for the heap: strings */
	unsigned char *buffer;
} files[SPOOL_FILES];
static int folder = -1; /* held open: its name may later refer to another directory */
static uint64_t heap_size;
static unsigned long long lost_records;

/* Reserve space for the counts of all kinds; zeros are no loss. */
static int reserve_losses(int fd)
{
	static const struct th_spool_loss none[16];

	_Static_assert(TH_LOST_KINDS + 2 <= sizeof(none) / sizeof(*none), "a place for each kind");
	if (write(fd, none, sizeof(none)) != (ssize_t)sizeof(none))
		return -ENOSPC;
	return lseek(fd, 0, SEEK_SET) ? -errno : 0;
}

int spool_open(const char *dir)
{
	for (int i = 0; i < SPOOL_FILES; i++)
		files[i].fd = -1;
	folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	for (int i = 0; i < SPOOL_FILES; i++) {
		files[i].fd = openat(folder, names[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		files[i].buffer = malloc(BUFFER);
		if (files[i].fd < 0 || !files[i].buffer)
			return -(errno ? errno : ENOMEM);
	}
	int err = reserve_losses(files[SPOOL_LOSSES].fd);

	return err ? err : spool_write_json("end.json", "");
}

/* Write out the whole buffer; if a write fails, remove the part that was written. */
static void write_out(int i)
{
	size_t done = 0, used = files[i].used;
	unsigned int records = files[i].records;
	off_t start = lseek(files[i].fd, 0, SEEK_CUR);

	files[i].used = 0;
	files[i].records = 0;
	while (done < used) {
		ssize_t n = write(files[i].fd, files[i].buffer + done, used - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			lost_records += records;
			if (i == SPOOL_HEAP) {
				/* offsets in use must stay valid: leave a hole */
				lseek(files[i].fd, start + (off_t)used, SEEK_SET);
			} else if (!ftruncate(files[i].fd, start)) {
				lseek(files[i].fd, start, SEEK_SET);
			}
			return;
		}
		done += (size_t)n;
	}
}

void spool_flush(void)
{
	if (files[SPOOL_HEAP].used)
		write_out(SPOOL_HEAP); /* first: the records point into it */
	for (int i = 0; i < SPOOL_HEAP; i++)
		if (files[i].used)
			write_out(i);
}

/* Whether a record of this size would cause the file's buffer to be written. */
bool spool_full(enum spool_file file, size_t size)
{
	return files[file].used + size > BUFFER;
}

void spool_put(enum spool_file file, const void *record, size_t size)
{
	if (files[file].used + size > BUFFER) {
		if (file != SPOOL_HEAP && files[SPOOL_HEAP].used)
			write_out(SPOOL_HEAP);
		write_out(file);
	}
	memcpy(files[file].buffer + files[file].used, record, size);
	files[file].used += size;
	files[file].records++;
}

/* Put a string on the heap; returns its offset. At most BUFFER bytes at a time. */
uint64_t spool_text(const void *text, size_t len)
{
	uint64_t at = heap_size;

	if (len > BUFFER)
		len = BUFFER;
	spool_put(SPOOL_HEAP, text, len);
	heap_size += len;
	return at;
}

/* Read a string back from the heap; returns its length, 0 if it is not there. */
size_t spool_fetch(uint64_t off, char *out, size_t len)
{
	uint64_t written = heap_size - files[SPOOL_HEAP].used;

	if (off + len > heap_size)
		return 0;
	if (off >= written) {
		memcpy(out, files[SPOOL_HEAP].buffer + (off - written), len);
		return len;
	}
	return pread(files[SPOOL_HEAP].fd, out, len, (off_t)off) == (ssize_t)len ? len : 0;
}

void spool_close(void)
{
	spool_flush();
	for (int i = 0; i < SPOOL_FILES; i++) {
		if (files[i].fd >= 0)
			close(files[i].fd);
		free(files[i].buffer);
		files[i].fd = -1;
		files[i].buffer = NULL;
	}
	if (folder >= 0)
		close(folder);
	folder = -1;
}

unsigned long long spool_lost(void)
{
	return lost_records;
}

int spool_write_json(const char *name, const char *text)
{
	char whole[512];
	int fd;
	ssize_t n;

	snprintf(whole, sizeof(whole), "%-511s", text);
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	n = write(fd, whole, sizeof(whole) - 1);
	close(fd);
	return n == (ssize_t)sizeof(whole) - 1 ? 0 : -ENOSPC;
}
