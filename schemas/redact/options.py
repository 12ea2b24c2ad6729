"""Programs whose options or arguments are secrets, as one table.

What stands for a secret, separated by spaces:

    -p+       only attached: -pSECRET
    -P        the next word, or attached (-PSECRET; --long=SECRET)
    -u:       USER:SECRET; also with % , / or = in place of the colon: what follows it is secret
    word      a word without a dash: the one after it
    @2        the second argument that is no option (of a subcommand: after it)
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tracehint.schemas.redact.names import word_set

_MYSQL = "-p+"
_ZIP = "-P"
_7Z = "-p+"
_OPENSSL = "-pass: -passin: -passout: -k -K"

# `program` or `program subcommand`
OPTIONS: dict[str, str] = {
    "mysql": _MYSQL, "mysqldump": _MYSQL, "mysqladmin": _MYSQL, "mysqlimport": _MYSQL,
    "mysqlcheck": _MYSQL, "mysqlshow": _MYSQL, "mysqlslap": _MYSQL, "mariadb": _MYSQL,
    "mariadb-dump": _MYSQL, "mariadb-admin": _MYSQL, "mariadb-import": _MYSQL,
    "mongo": "-p", "mongosh": "-p", "mongodump": "-p", "mongorestore": "-p", "mongoimport": "-p",
    "mongoexport": "-p", "redis-cli": "-a --pass", "cqlsh": "-p", "sqlcmd": "-P", "bcp": "-P",
    "isql": "-P", "sqlplus": "@1/", "sqlldr": "@1/ userid/", "beeline": "-p", "influx": "-t",
    "ldapsearch": "-w", "ldapmodify": "-w", "ldapadd": "-w", "ldapdelete": "-w",
    "ldappasswd": "-w -s -a", "rabbitmqctl change_password": "@2", "rabbitmqctl add_user": "@2",
    "rabbitmqadmin": "-p", "sqoop": "--password",
    "curl": "-u: --user: -U: --proxy-user: -b= --cookie= -E: --cert: --pass --proxy-pass "
            "--oauth2-bearer --tlspassword", "wget": "--password --http-password --ftp-password",
    "http": "-a: --auth:", "https": "-a: --auth:", "xh": "-a: --auth:",
    "aria2c": "--http-passwd --ftp-passwd", "lftp": "-u, --user, open,", "ncftpput": "-p",
    "ncftpget": "-p", "open": "-u,", "axel": "--password", "ascp": "-W",
    "smbclient": "-U% --user% --password", "smbget": "-U%", "rpcclient": "-U%", "net": "-U%",
    "sshpass": "-p", "svn": "--password", "swift": "-K --key",
    "7z": _7Z, "7za": _7Z, "7zr": _7Z, "zip": _ZIP, "unzip": _ZIP, "zipcloak": _ZIP,
    "rar": "-hp+ -p+", "unrar": "-p+", "qpdf": "--password --encrypt",
    "pdftk": "user_pw owner_pw input_pw",
    "pdftotext": "-upw -opw", "pdftoppm": "-upw -opw", "pdfimages": "-upw -opw",
    "openssl": _OPENSSL, "gpg": "--passphrase", "gpg2": "--passphrase",
    "keytool": "-storepass -keypass -srcstorepass -deststorepass -new",
    "jarsigner": "-storepass -keypass",
    "ssh-keygen": "-N -P", "htpasswd": "@3", "useradd": "-p", "usermod": "-p", "mkpasswd": "@1",
    "ipmitool": "-P", "snmpwalk": "-c -A -X", "snmpget": "-c -A -X", "nmcli": "password",
    "xfreerdp": "/p: /p", "rdesktop": "-p", "iinit": "@1",
    "docker login": "-p", "podman login": "-p", "buildah login": "-p", "skopeo login": "-p",
    "nerdctl login": "-p", "helm login": "-p", "oras login": "-p", "az login": "-p",
    "oc login": "-p", "singularity login": "-p", "apptainer login": "-p", "skopeo": "--creds: "
    "--src-creds: --dest-creds:", "crane login": "-p", "anaconda login": "--password",
    "twine": "-p", "synapse": "-p", "vault login": "@1", "wandb login": "@1", "heroku": "--token",
    "rclone obscure": "@1", "rclone": "--pass",
    "rclone create": "secret_access_key pass password client_secret token key",
    "mc set": "@4", "mc add": "@5", "conda set": "@1",
    "aws set": "aws_secret_access_key aws_session_token aws_access_key_id",
    "aws put-secret-value": "--secret-string", "aws create-secret": "--secret-string",
    "aws": "--sse-c-key --sse-c-copy-source-key --master-user-password", "gh set": "--body -b",
    "npm": "//registry.npmjs.org/:_authToken _authToken _auth _password",
}  # fmt: skip  # a table

# `setenv NAME SECRET`, `set -x NAME SECRET` (fish): what follows a secret's name is its value.
SETTERS = word_set("setenv set")
# The first word of a command only: `mc alias set`, `aws configure set` mean something else.
FIRST_ONLY = word_set("set")
# Their words with blanks are command text, also where they begin with NAME=.
TEXT_TAKERS = word_set(
    "sh bash dash zsh ksh fish csh tcsh ash busybox su runuser ssh rsh pdsh clush parallel xargs "
    "bsub watch eval script expect lftp flock at batch sbatch srun salloc qsub condor_run"
)
# The word after one of these options names a user, a host ... and is no program.
NAMING = word_set("-u -U -g -G --user --group --name -h --host --hostname -d -D -J")
# Who reads a secret from standard input: the program, and a word that must be there ("": none).
STDIN_READERS: dict[str, str] = {
    "chpasswd": "", "kinit": "", "passwd": "--stdin", "sudo": "-S", "cryptsetup": "", "iinit": "",
    "smbpasswd": "-s", "gh": "--with-token", "gpg": "--passphrase-fd", "gpg2": "--passphrase-fd",
    "openssl": "stdin", "sshfs": "password_stdin", "vault": "-", "ipasswd": "",
    "ssh-add": "-",
}  # fmt: skip  # a table


class Option(NamedTuple):
    """One entry of the table. `sign`: what comes before the secret inside the value."""

    word: str
    attached: bool
    separate: bool
    sign: str


class Program(NamedTuple):
    """What the table says about one program (or one subcommand)."""

    options: tuple[Option, ...]
    places: tuple[tuple[int, str], ...]  # (number of the argument, sign)


@cache
def programs() -> dict[str, dict[str, Program]]:
    """Program -> subcommand ("" for any) -> what is secret."""
    found: dict[str, dict[str, Program]] = {}
    for key, text in OPTIONS.items():
        program, _, sub = key.partition(" ")
        entries = text.split()
        places = tuple(_place(e) for e in entries if e[0] == "@")
        options = tuple(_option(e) for e in entries if e[0] != "@")
        found.setdefault(program, {})[sub] = Program(options, places)
    return found


def _place(entry: str) -> tuple[int, str]:
    digits = entry[1:].rstrip("/")
    return int(digits), entry[1 + len(digits) :]


def _option(entry: str) -> Option:
    if entry.endswith("+"):
        return Option(entry[:-1], attached=True, separate=False, sign="")
    if len(entry) > 2 and entry[-1] in ":%,/=":
        return Option(entry[:-1], attached=True, separate=True, sign=entry[-1])
    return Option(entry, attached=True, separate=True, sign="")
