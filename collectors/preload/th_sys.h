/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw system calls and a few string functions, for code that runs inside other programs'
 * calls: no C library, no errno, no thread-local storage. Results are those of the kernel:
 * negative error numbers.
 */
#ifndef TRACEHINT_TH_SYS_H
#define TRACEHINT_TH_SYS_H

#include <asm/unistd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TH_AT_FDCWD (-100)

/* Data that few programs use, placed after the data that all programs touch (data.ld). */
#define TH_LARGE __attribute__((section(".large")))

static inline __attribute__((always_inline)) long th_sys6(long nr, long a, long b, long c, long d,
							  long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory", "cc");
	return ret;
}

#define TH_PICK(_0, _1, _2, _3, _4, _5, _6, name, ...) name
#define TH_SYS0(n) th_sys6(n, 0, 0, 0, 0, 0, 0)
#define TH_SYS1(n, a) th_sys6(n, (long)(a), 0, 0, 0, 0, 0)
#define TH_SYS2(n, a, b) th_sys6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define TH_SYS3(n, a, b, c) th_sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define TH_SYS4(n, a, b, c, d) th_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define TH_SYS5(n, a, b, c, d, e)                                                                  \
	th_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define TH_SYS6(n, a, b, c, d, e, f)                                                               \
	th_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* th_sys(__NR_close, fd): pointers need no cast */
#define th_sys(...)                                                                                \
	TH_PICK(__VA_ARGS__, TH_SYS6, TH_SYS5, TH_SYS4, TH_SYS3, TH_SYS2, TH_SYS1, TH_SYS0)        \
	(__VA_ARGS__)

static inline bool th_failed(long ret)
{
	return (unsigned long)ret >= (unsigned long)-4095;
}

static inline size_t th_len(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static inline void th_copy(void *to, const void *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static inline void th_zero(void *to, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory");
}

static inline bool th_same(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (; n >= 8; n -= 8, x += 8, y += 8) {
		uint64_t left, right;

		__builtin_memcpy(&left, x, 8);
		__builtin_memcpy(&right, y, 8);
		if (left != right)
			return false;
	}
	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i])
			return false;
	return true;
}

static inline bool th_equal(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	return *a == *b;
}

static inline bool th_starts(const char *s, const char *with)
{
	for (; *with; s++, with++)
		if (*s != *with)
			return false;
	return true;
}

/* Write a number in decimal digits, at most 10; return the end. */
static inline char *th_put_number(char *to, unsigned int number)
{
	char digits[10];
	unsigned int n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*to++ = digits[--n];
	*to = '\0';
	return to;
}

#define TH_FD_NAME 32 /* size of "/proc/self/fd/N" */

static inline char *th_fd_name(char *to, int fd)
{
	th_copy(to, "/proc/self/fd/", 14);
	th_put_number(to + 14, (unsigned int)fd);
	return to;
}

/* The last component of a path. */
static inline const char *th_base(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

/* Anonymous memory, or NULL. */
static inline void *th_map(size_t bytes)
{
	long at = th_sys(__NR_mmap, 0, bytes, 3 /* read, write */, 0x22 /* private, anonymous */,
			 -1, 0);

	return th_failed(at) ? NULL : (void *)at;
}

#endif
