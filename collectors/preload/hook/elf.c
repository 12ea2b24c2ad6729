// SPDX-License-Identifier: Apache-2.0
/* Classifies a program by the headers of its file; a script has the class of its interpreter. */
#include <elf.h>
#include <linux/fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include "core.h"

#define MAX_SCRIPTS 4
#define MAX_LINE 256
#define MAX_PARTS 16
#define MAX_TAGS 64
#define MAX_NAME 64
#define AT_EMPTY_PATH 0x1000
#define NT_GO_BUILDID 4

static bool read_at(int fd, void *to, size_t n, uint64_t at)
{
	return th_sys(__NR_pread64, fd, to, n, at) == (long)n;
}

static bool read_name(int fd, char *name, uint64_t at)
{
	long n = th_sys(__NR_pread64, fd, name, MAX_NAME - 1, at);

	if (n <= 0)
		return false;
	name[n] = '\0';
	return true;
}

static bool has_go_note(int fd, const Elf64_Phdr *part)
{
	uint64_t at = part->p_offset, end = at + part->p_filesz;
	Elf64_Nhdr note;
	char name[4];

	for (unsigned int i = 0; i < 16 && at + sizeof(note) < end; i++) {
		if (!read_at(fd, &note, sizeof(note), at))
			return false;
		if (note.n_type == NT_GO_BUILDID && note.n_namesz == 4 &&
		    read_at(fd, name, 4, at + sizeof(note)) && th_same(name, "Go\0", 4))
			return true;
		at += sizeof(note) + ((note.n_namesz + 3ULL) & ~3ULL) +
		      ((note.n_descsz + 3ULL) & ~3ULL);
	}
	return false;
}

static uint64_t in_file(const Elf64_Phdr *parts, unsigned int n, uint64_t address)
{
	for (unsigned int i = 0; i < n; i++)
		if (parts[i].p_type == PT_LOAD && address >= parts[i].p_vaddr &&
		    address < parts[i].p_vaddr + parts[i].p_filesz)
			return address - parts[i].p_vaddr + parts[i].p_offset;
	return 0;
}

/* Whether the program needs the shared run-time library of AddressSanitizer. */
static bool needs_asan(int fd, const Elf64_Phdr *parts, unsigned int n, const Elf64_Phdr *dynamic)
{
	Elf64_Dyn tag;
	uint64_t strings = 0, needed[MAX_TAGS];
	unsigned int count = 0;
	char name[MAX_NAME];

	for (unsigned int i = 0; i < MAX_TAGS; i++) {
		if (!read_at(fd, &tag, sizeof(tag), dynamic->p_offset + i * sizeof(tag)) ||
		    tag.d_tag == DT_NULL)
			break;
		if (tag.d_tag == DT_NEEDED)
			needed[count++] = tag.d_un.d_val;
		else if (tag.d_tag == DT_STRTAB)
			strings = in_file(parts, n, tag.d_un.d_ptr);
		if (strings && tag.d_tag != DT_NEEDED && count)
			break; /* DT_NEEDED entries are first */
	}
	for (unsigned int i = 0; strings && i < count; i++)
		if (read_name(fd, name, strings + needed[i]) && th_starts(name, "libasan.so"))
			return true;
	return false;
}

static enum th_class class_of_interpreter(int fd, const Elf64_Phdr *part)
{
	char name[MAX_NAME * 2];
	size_t n = part->p_filesz < sizeof(name) ? part->p_filesz : sizeof(name);

	if (!n || !read_at(fd, name, n, part->p_offset))
		return TH_CLASS_UNREADABLE;
	name[n - 1] = '\0';
	if (th_starts(th_base(name), "libtracehint.so")) /* a copy (enter.c) */
		return part->p_paddr == TH_CLASS_GO ? TH_CLASS_GO : TH_CLASS_STATIC;
	return th_starts(th_base(name), "ld-linux-x86-64.so") ? TH_CLASS_DYNAMIC : TH_CLASS_MUSL;
}

static enum th_class class_of_elf(int fd, const Elf64_Ehdr *head)
{
	Elf64_Phdr parts[MAX_PARTS];
	const Elf64_Phdr *interpreter = NULL, *dynamic = NULL;
	unsigned int n = head->e_phnum < MAX_PARTS ? head->e_phnum : MAX_PARTS;
	bool go = false;

	if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != EM_X86_64)
		return TH_CLASS_BITS32;
	if (head->e_phentsize != sizeof(*parts) ||
	    !read_at(fd, parts, n * sizeof(*parts), head->e_phoff))
		return TH_CLASS_UNREADABLE;
	for (unsigned int i = 0; i < n; i++) {
		if (parts[i].p_type == PT_INTERP)
			interpreter = &parts[i];
		else if (parts[i].p_type == PT_DYNAMIC)
			dynamic = &parts[i];
		else if (parts[i].p_type == PT_NOTE)
			go |= has_go_note(fd, &parts[i]);
	}
	if (!interpreter)
		return go ? TH_CLASS_GO : TH_CLASS_STATIC;
	enum th_class class = class_of_interpreter(fd, interpreter);

	if (class == TH_CLASS_DYNAMIC && dynamic && needs_asan(fd, parts, n, dynamic))
		return TH_CLASS_ASAN;
	return class == TH_CLASS_DYNAMIC && go ? TH_CLASS_GO : class;
}

/* Return the interpreter of "#! NAME arguments", terminated in place. */
static const char *script_interpreter(char *line)
{
	char *at = line + 2;

	while (*at == ' ' || *at == '\t')
		at++;
	char *end = at;

	while (*end && *end != ' ' && *end != '\t' && *end != '\n')
		end++;
	*end = '\0';
	return at;
}

static bool is_setuid(int fd)
{
	struct statx facts;
	char value[32];

	if (th_failed(th_sys(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_MODE, &facts)))
		return false;
	return (facts.stx_mode & (S_ISUID | S_ISGID)) ||
	       th_sys(__NR_fgetxattr, fd, "security.capability", value, sizeof(value)) > 0;
}

enum th_class th_classify(int dirfd, const char *path, int flags, bool *script)
{
	union {
		Elf64_Ehdr elf;
		char line[MAX_LINE];
	} head;

	for (unsigned int depth = 0; depth < MAX_SCRIPTS; depth++) {
		bool same = !*path && (flags & AT_EMPTY_PATH);
		int fd = same ? dirfd
			      : (int)th_sys(__NR_openat, dirfd, path,
					    O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);

		if (fd < 0)
			return TH_CLASS_UNREADABLE;
		long n = th_sys(__NR_pread64, fd, &head, sizeof(head) - 1, 0);
		enum th_class class = TH_CLASS_UNREADABLE;
		bool line = n > 2 && head.line[0] == '#' && head.line[1] == '!';

		if (n >= (long)sizeof(head.elf) && th_same(head.line, ELFMAG, SELFMAG))
			class = is_setuid(fd) ? TH_CLASS_SETUID : class_of_elf(fd, &head.elf);
		if (!same)
			th_sys(__NR_close, fd);
		if (!line)
			return class;
		if (script)
			*script = true;
		head.line[n] = '\0';
		path = script_interpreter(head.line);
		dirfd = TH_AT_FDCWD;
		flags = 0;
	}
	return TH_CLASS_UNREADABLE;
}

__attribute__((visibility("default"))) int tracehint_class(const char *path);

/* For the recorder and `tracehint doctor`, which load the library to call this. */
int tracehint_class(const char *path)
{
	return (int)th_classify(TH_AT_FDCWD, path, 0, NULL);
}
