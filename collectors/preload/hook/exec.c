/*
 * Exec: passes the library and the observers' variables on to the next program, whatever
 * environment the caller made for it. A program that breaks below a preloaded library gets its
 * environment without it.
 */
#include <asm/errno.h>
#include <linux/fcntl.h>
#include "bare.h"

#define PRELOAD "LD_PRELOAD"
#define MAX_CARRIED 8
#define MAX_TEXT 12288
#define MAX_ENV 65536
#define PAGE 4096UL
#define NO_PAGE 1UL

static struct {
	const char *name;
	char *entry; /* NAME=value */
} carried[MAX_CARRIED];
static unsigned int carried_count;
/* Copies of the entries, the library's path ...: programs may overwrite the originals. */
static __attribute__((section(".texts"))) char texts[MAX_TEXT];
static size_t texts_used;
static const char *own_path = "";

const char *th_variable(char *const *envp, const char *name)
{
	size_t n = th_len(name);

	for (; envp && *envp; envp++)
		if (th_starts(*envp, name) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

const char *th_own_path(void)
{
	return own_path;
}

char *th_keep(const char *a, const char *b)
{
	size_t x = th_len(a), y = th_len(b);
	char *at = texts + texts_used;

	if (texts_used + x + y + 1 > MAX_TEXT)
		return NULL;
	th_copy(at, a, x);
	th_copy(at + x, b, y + 1);
	texts_used += x + y + 1;
	return at;
}

/* Find the entry of this library in LD_PRELOAD. */
static void find_own_path(const char *preload)
{
	for (const char *at = preload; at && *at;) {
		size_t n = 0;

		while (at[n] && at[n] != ':' && at[n] != ' ')
			n++;
		for (size_t i = n; i > 0; i--)
			if (at[i - 1] == '/' && th_starts(at + i, "libtracehint.so")) {
				char *path = th_keep(at, "");

				if (path) {
					path[n] = '\0';
					own_path = path;
				}
				return;
			}
		at += n + !!at[n];
	}
}

/* Pass a variable on to the next program. */
void th_carry(const char *name, const char *value)
{
	char *prefix = th_keep(name, "=");

	if (!prefix || carried_count == MAX_CARRIED)
		return;
	texts_used--; /* overwrite the NUL of the prefix */
	if (!th_keep(value, ""))
		return;
	carried[carried_count].name = name;
	carried[carried_count++].entry = prefix;
}

const char *th_carried(const char *name)
{
	for (unsigned int i = 0; i < carried_count; i++)
		if (th_equal(carried[i].name, name))
			return carried[i].entry + th_len(name) + 1;
	return NULL;
}

void th_exec_start(const struct th_program *program)
{
	find_own_path(th_variable(program->envp, PRELOAD));
	const char *list = th_variable(program->envp, TH_SITES);

	if (list)
		th_carry(TH_SITES, list);
	for (const struct th_observer *const *at = th_observers; *at; at++) {
		const char *value = th_variable(program->envp, (*at)->variable);

		if (value && *value)
			th_carry((*at)->variable, value);
	}
}

/* Whether the loader can find the library; else it writes an error to the program's output. */
static bool is_there(void)
{
	return !th_failed(th_sys(__NR_access, own_path, 4 /* R_OK */));
}

/* Missing if linked with other observers. */
#pragma weak th_program_key
#pragma weak th_program_class
#pragma weak th_program_is

/* Programs that were executed before are not read again. */
static enum th_class class_of_path(const char *path)
{
	unsigned long long key = th_program_key ? th_program_key(path) : 0;
	enum th_class class = key ? th_program_class(key) : TH_CLASSES;
	bool script = false;

	if (class != TH_CLASSES)
		return class;
	class = th_classify(TH_AT_FDCWD, path, 0, &script);
	if (key && !script && class != TH_CLASS_UNREADABLE)
		th_program_is(key, class);
	return class;
}

/* Tested by a copy, which fails where a load would raise a signal. If forbidden: always true. */
static bool is_mapped(unsigned long at)
{
	char byte;
	struct {
		void *at;
		size_t n;
	} to = {&byte, 1}, from = {(void *)at, 1};

	return th_sys(__NR_process_vm_readv, th_pid(), &to, 1, &from, 1, 0) != -EFAULT;
}

bool th_readable(const void *at, size_t n)
{
	unsigned long first = (unsigned long)at, last = first + n - 1;

	if (!n)
		return true;
	if (last < first)
		return false;
	for (unsigned long page = first & -PAGE; page <= last; page += PAGE)
		if (!is_mapped(page < first ? first : page))
			return false;
	return true;
}

/* `page`: a page that is known to be mapped; most strings of a program are on a few pages. */
static bool byte_readable(const void *byte, unsigned long *page)
{
	unsigned long at = (unsigned long)byte;

	if ((at & -PAGE) == *page)
		return true;
	if (!is_mapped(at))
		return false;
	*page = at & -PAGE;
	return true;
}

static bool text_readable(const char *text, unsigned long *page)
{
	for (; byte_readable(text, page); text++)
		if (!*text)
			return true;
	return false;
}

static bool list_readable(char *const *list, unsigned long *page)
{
	unsigned long own = NO_PAGE;

	if (!list)
		return true;
	for (; byte_readable(list, &own) && byte_readable((const char *)(list + 1) - 1, &own);
	     list++) {
		if (!*list)
			return true;
		if (!text_readable(*list, page))
			return false;
	}
	return false;
}

/* Whether the arguments of the call can be read; otherwise it fails with EFAULT. */
bool th_exec_readable(const struct th_call *call)
{
	bool at = call->nr == __NR_execveat;
	unsigned long page = NO_PAGE;

	return text_readable((const char *)call->arg[at], &page) &&
	       list_readable((char *const *)call->arg[at ? 2 : 1], &page) &&
	       list_readable((char *const *)call->arg[at ? 3 : 2], &page);
}

enum th_class th_exec_class(const struct th_call *call)
{
	if (*own_path && !is_there())
		return TH_CLASS_APART;
	if (call->nr == __NR_execve)
		return class_of_path((const char *)call->arg[0]);
	return th_classify((int)call->arg[0], (const char *)call->arg[1], (int)call->arg[4], NULL);
}

static bool refuses_preload(enum th_class class)
{
	return class == TH_CLASS_ASAN || class == TH_CLASS_MUSL || class == TH_CLASS_BITS32 ||
	       class == TH_CLASS_APART;
}

/* Return the position of the library's path in a value of LD_PRELOAD, or NULL. */
static const char *ours_in(const char *preload)
{
	size_t n = th_len(own_path);

	for (const char *at = preload; at && *at;) {
		if (th_starts(at, own_path) && (!at[n] || at[n] == ':' || at[n] == ' '))
			return at;
		while (*at && *at != ':' && *at != ' ')
			at++;
		at += !!*at;
	}
	return NULL;
}

static bool as_wanted(char *const *envp, bool enter)
{
	if (!!ours_in(th_variable(envp, PRELOAD)) != enter)
		return false;
	for (unsigned int i = 0; i < carried_count; i++) {
		const char *value = th_variable(envp, carried[i].name);

		if (!value || !th_equal(value, carried[i].entry + th_len(carried[i].name) + 1))
			return false;
	}
	return true;
}

static bool is_carried(const char *entry)
{
	for (unsigned int i = 0; i < carried_count; i++) {
		size_t n = th_len(carried[i].name);

		if (th_starts(entry, carried[i].name) && entry[n] == '=')
			return true;
	}
	return th_starts(entry, PRELOAD "=");
}

/* Write "LD_PRELOAD=" and the given value with or without the library's path; NULL: empty. */
static char *write_preload(char *to, const char *given, bool enter)
{
	const char *ours = given ? ours_in(given) : NULL;
	size_t skip = ours ? th_len(own_path) + !!ours[th_len(own_path)] : 0;
	char *at = to + sizeof(PRELOAD);

	th_copy(to, PRELOAD "=", sizeof(PRELOAD));
	for (const char *c = given; c && *c;) {
		if (c == ours) {
			c += skip;
			continue;
		}
		*at++ = *c++;
	}
	while (at > to + sizeof(PRELOAD) && at[-1] == ':')
		at--;
	if (enter) {
		if (at > to + sizeof(PRELOAD))
			*at++ = ':';
		th_copy(at, own_path, th_len(own_path));
		at += th_len(own_path);
	}
	*at = '\0';
	return at > to + sizeof(PRELOAD) ? to : NULL;
}

/* Return the environment for the next program in one mapping, or NULL; omits `without`. */
static char **make_environment(char *const *envp, bool enter, const char *without, size_t *bytes)
{
	const char *given = th_variable(envp, PRELOAD);
	size_t n = 0, at = 0;

	while (envp && envp[n] && n < MAX_ENV)
		n++;
	if (n == MAX_ENV)
		return NULL;
	size_t pointers = (n + carried_count + 2) * sizeof(char *);

	*bytes = pointers + (given ? th_len(given) : 0) + th_len(own_path) + 64;
	char **made = th_map(*bytes);

	if (!made)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!is_carried(envp[i]))
			made[at++] = envp[i];
	for (unsigned int i = 0; i < carried_count; i++)
		if (!without || !th_equal(carried[i].name, without))
			made[at++] = carried[i].entry;
	char *preload = write_preload((char *)made + pointers, given, enter);

	if (preload)
		made[at++] = preload;
	made[at] = NULL;
	return made;
}

static long make_call(const struct th_call *call, char *const *envp, enum th_class class)
{
	if (*own_path && (class == TH_CLASS_STATIC || class == TH_CLASS_GO))
		th_exec_entered(call, class, envp);
	if (call->nr == __NR_execve)
		return th_sys(__NR_execve, call->arg[0], call->arg[1], envp);
	return th_sys(__NR_execveat, call->arg[0], call->arg[1], call->arg[2], envp, call->arg[4]);
}

/* Returns only on failure. */
long th_exec(const struct th_call *call, enum th_class class)
{
	char *const *envp = (char *const *)call->arg[call->nr == __NR_execve ? 2 : 3];
	bool enter = !refuses_preload(class);
	size_t bytes = 0;

	if (!*own_path || class == TH_CLASS_SETUID || as_wanted(envp, enter))
		return make_call(call, envp, class);
	char **made = make_environment(envp, enter, NULL, &bytes);

	if (!made)
		return make_call(call, envp, class);
	th_leave(made, bytes);
	long ret = make_call(call, made, class);

	th_unleave(made);
	th_sys(__NR_munmap, made, bytes);
	return ret;
}

/* Execute another command, whose arguments occupy `bytes`. Returns only on failure. */
void th_exec_instead(const struct th_call *call, size_t bytes, const char *without)
{
	void *argv = (void *)call->arg[1];
	size_t size = 0;
	char **envp = make_environment((char *const *)call->arg[2], true, without, &size);

	if (envp) {
		th_leave(argv, bytes);
		th_leave(envp, size);
		th_sys(__NR_execve, call->arg[0], argv, envp);
		th_unleave(argv);
		th_unleave(envp);
		th_sys(__NR_munmap, envp, size);
	}
	th_sys(__NR_munmap, argv, bytes);
}
