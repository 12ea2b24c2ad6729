/* SPDX-License-Identifier: Apache-2.0 */
/* Made by scripts/gen_interpreters.py from schemas/commandline/programs.py. */
#ifndef TRACEHINT_INTERPRETERS_H
#define TRACEHINT_INTERPRETERS_H

#define LONGEST 255

static const char shells[] = " ash bash dash ksh mksh rbash sh zsh ";

static const struct interpreter {
	const char *name, *values, *texts, *scripts;
} interpreters[] = {
	{"python", " -W -X -Q ", " -c ", " -m "},
	{"pypy", " -W -X ", " -c ", " -m "},
	{"perl", " -I -M ", " -e -E ", ""},
	{"ruby", " -I -r ", " -e ", ""},
	{"Rscript", "", " -e ", ""},
	{"java", " -cp -classpath --class-path -p --module-path ", "", " -jar -m "},
	{"node", " -r ", " -e -p ", ""},
	{"julia", " -p -t -J ", " -e ", ""},
	{"lua", "", " -e ", ""},
	{"php", "", " -r ", " -f "},
	{"octave", "", " --eval ", ""},
	{"tclsh", "", "", ""},
};

#endif
