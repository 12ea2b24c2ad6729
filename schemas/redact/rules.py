"""The tables of redaction: words in the names of secrets, shapes of tokens, programs.

Three mechanisms use them. A value after a secret's name (STRONG, ENDINGS ...) is secret, however
the two are joined. A value with the shape of a token (SHAPES, and mixed letters and digits) is
secret anywhere. PROGRAMS lists options and arguments whose names do not reveal a secret.
scripts/gen_secrets.py generates docs/reference/secrets.md from this module.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tracehint.schemas.commandline.programs import SHELLS
from tracehint.schemas.commandline.shelltext import word_set

REDACTED = "<redacted>"

# --- names -------------------------------------------------------------------------------------
# A name with one of these words is a secret's, unless a later word excludes it (ABOUT).
STRONG = word_set(
    "password passwd passphrase passcode passwort pwd pw secret token jwt psk otp apikey "
    "secretkey accesskey authkey authtoken privatekey credential credentials cred creds keypass "
    "storepass passkey cookie sessionid pass sas securestring requirepass masterauth hexkey "
    "apitoken sharedkey passw upw opw userpw authz"
)
ENDINGS = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "pwd",
    "credentials",
    "requirepass",
)
NO_PASS = word_set("bypass compass highpass lowpass bandpass allpass twopass onepass encompass")
# In names of filters and of passes over data: `--band-pass`, `--two-pass`.
PASS_OF = word_set("low high band all by one two first second")
# Also a count or a kind: a number after these is no secret, nor is a plain word in a sentence.
MILD = word_set("pass cred creds")
# Generated values: a word after these is no secret (`--token gene`, `--token "##ing"`).
MADE = word_set("token sas cookie otp")
# `key` alone is ambiguous: after KEY_OF words it is secret, after NO_KEY_OF words it is not.
KEY_OF = word_set(
    "api access secret auth private account storage encryption encrypt signing sign master "
    "service license licence session subscription shared sas app client consumer deploy aes "
    "hmac crypt cipher vault webhook instrumentation wandb openai azure aws"
)
KEY_OF_ENDINGS = ("api", "auth", "secret", "access")  # CDSAPI_KEY
NO_KEY_OF = word_set(
    "sort group join primary foreign partition index hash map row column field public pub dict "
    "cache sample merge lookup range cell order by on ssh known host"
)
# After the word: the value describes the secret and is not the secret itself.
ABOUT = word_set(
    "file files filename path dir directory folder length len count counts number num size limit "
    "name names url uri endpoint ttl expiry expires format policy column columns col cols field "
    "fields index idx pos position separator sep delimiter delim regex pattern env var variable "
    "prompt stdin fd cmd command program helper manager provider server host port version mode "
    "method check algorithm algo bits rounds strength age duration lifetime timeout interval "
    "retries required enabled disabled only ring map list set space type types model dim batch "
    "budget freq vocab class level min max rate threshold dropout used per lines words source "
    "authentication auth sum through ion word usage info status rule attempts agent id ids "
    "arn sock socket eval"
)
ABOUT_KEY = word_set("spec pair pairs if")
ABOUT_BARE_KEY = word_set("value values space")
# Before the word: an option without a value (`--no-password`).
FLAGS = word_set(
    "no use ask with without show skip prompt has need needs is check print generate gen save "
    "reset disable enable allow require max min num n"
)
HEADERS = word_set("authorization proxy-authorization cookie set-cookie")
QUERY = word_set("sig signature x-amz-signature x-goog-signature")
# An option whose value is a command that prints a secret: `--password-command 'echo S'`.
PRINTING = word_set("command cmd program helper eval")

# --- calls in program text ----------------------------------------------------------------------
# Number of the quoted argument that is secret (-1: the last). In a call with a secret's name,
# such as set_api_key("S"), it is the last.
CALLS = {
    "login": 2, "signin": 2, "authenticate": 2, "auth": 2, "basicauth": 2, "httpbasicauth": 2,
    "httpdigestauth": 2, "httpproxyauth": 2, "basic_auth": 2, "password_auth": 2, "connect": 3,
    "mysqli": 3, "mysqli_connect": 3, "ftp": 3,
    "database": 3, "dbconnect": 3, "connection": 3, "networkcredential": 2, "pscredential": 2,
    "jwt.encode": -1, "jwt.sign": -1, "jwt.decode": -1, "hmac.new": 1,
}  # fmt: skip  # a table
# A call that reads a secret and contains none: getpass("Password: "), get_secret("lab/db").
READERS = word_set("get read ask input prompt find load fetch has is check verify access count")

# --- shapes -------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """`literals`, separated by |: without one of them the pattern is not tried. Group `keep`, if
    any, is not redacted. Quantifiers are bounded or possessive: linear time on any text."""

    what: str
    literals: str
    pattern: str


_BEFORE = r"(?<![A-Za-z0-9])"
_MIXED = r"(?=[A-Za-z0-9_-]{0,80}?[0-9])(?=[A-Za-z0-9_-]{0,80}?[A-Z])"
SHAPES: tuple[Shape, ...] = (
    Shape("private-key blocks", "PRIVATE KEY",
          r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY( BLOCK)?-----"
          r"(?:(?!-----).)*+(?:-----END [A-Z ]{0,40}PRIVATE KEY( BLOCK)?-----)?"),
    Shape("age", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{20,80}+"),
    Shape("AWS key identifiers", "AKIA|ASIA|AIDA|AROA",
          _BEFORE + r"(?:AKIA|ASIA|AIDA|AROA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    Shape("GitHub", "ghp_|gho_|ghs_|ghu_|ghr_", _BEFORE + r"gh[opsur]_[A-Za-z0-9]{20,255}+"),
    Shape("GitHub", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}+"),
    Shape("GitLab", "glpat-|gldt-|glcbt-|glrt-|glptt-|glagent-|glsoat-|glft-",
          _BEFORE + r"gl(?:pat|dt|cbt|rt|ptt|agent|soat|ft)-[A-Za-z0-9_.-]{16,255}+"),
    Shape("Slack", "xox", _BEFORE + r"xox[abeoprs](?:\.xox[abp])?-[A-Za-z0-9-]{10,255}+"),
    Shape("Slack", "xapp-", _BEFORE + r"xapp-[A-Za-z0-9-]{10,255}+"),
    Shape("Slack and Discord web hooks", "hooks.slack.com|/webhooks/",
          r"(?P<keep>https://(?:hooks\.slack\.com/(?:services|workflows)"
          r"|discord(?:app)?\.com/api/webhooks)/)[A-Za-z0-9_/-]{8,255}+"),
    Shape("Telegram", "/bot", r"(?P<keep>/bot)[0-9]{5,20}:[A-Za-z0-9_-]{20,80}+"),
    Shape("Stripe", "k_live_|k_test_", _BEFORE + r"[srp]k_(?:live|test)_[A-Za-z0-9]{10,255}+"),
    Shape("Stripe", "whsec_", _BEFORE + r"whsec_[A-Za-z0-9+/=]{16,255}+"),
    Shape("npm", "npm_", _BEFORE + r"npm_[A-Za-z0-9]{30,60}+"),
    Shape("PyPI", "pypi-", _BEFORE + r"pypi-" + _MIXED + r"[A-Za-z0-9_-]{14,400}+"),
    Shape("RubyGems", "rubygems_", _BEFORE + r"rubygems_[a-f0-9]{40,64}"),
    Shape("crates.io", "cio", _BEFORE + r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    Shape("Hugging Face", "hf_", _BEFORE + r"hf_[A-Za-z0-9]{25,60}+"),
    Shape("SendGrid", "SG.", _BEFORE + r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}+"),
    Shape("Docker", "dckr_", _BEFORE + r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,255}+"),
    Shape("Docker swarm", "SWMTKN-", r"SWMTKN-1-[a-z0-9-]{20,120}+"),
    Shape("Vault", "hvs.|hvb.|hvr.", _BEFORE + r"hv[sbr]\.[A-Za-z0-9_-]{20,400}+"),
    Shape("Google", "AIza", _BEFORE + r"AIza[0-9A-Za-z_-]{35}(?![A-Za-z0-9_-])"),
    Shape("Google", "ya29.", _BEFORE + r"ya29\.[0-9A-Za-z_-]{20,400}+"),
    Shape("Google", "GOCSPX-", _BEFORE + r"GOCSPX-[0-9A-Za-z_-]{20,64}+"),
    Shape("DigitalOcean", "dop_v1_|doo_v1_|dor_v1_", _BEFORE + r"do[opr]_v1_[a-f0-9]{32,64}+"),
    Shape("Databricks", "dapi", _BEFORE + r"dapi[a-f0-9]{32}(?:-[0-9])?(?![A-Za-z0-9])"),
    Shape("OpenAI and Anthropic", "sk-",
          _BEFORE + r"sk-(?:[a-z]{2,12}[0-9]{0,2}-){0,2}" + _MIXED + r"[A-Za-z0-9_-]{20,255}+"),
    Shape("Grafana", "glsa_", _BEFORE + r"glsa_[A-Za-z0-9_=]{30,255}+"),
    Shape("Sonar", "sqp_|squ_|sqa_", _BEFORE + r"sq[pua]_[a-f0-9]{40}"),
    Shape("Sentry", "sntrys_|sntryu_", _BEFORE + r"sntry[su]_[A-Za-z0-9_+/=-]{20,400}+"),
    Shape("Tailscale", "tskey-", _BEFORE + r"tskey-[a-z]{2,16}-[A-Za-z0-9-]{10,100}+"),
    Shape("Shopify", "shpat_|shpss_", _BEFORE + r"shp(?:at|ss)_[a-fA-F0-9]{32}"),
    Shape("NVIDIA", "nvapi-", _BEFORE + r"nvapi-[A-Za-z0-9_-]{40,100}+"),
    Shape("Groq", "gsk_", _BEFORE + r"gsk_[A-Za-z0-9]{30,80}+"),
    Shape("Atlassian", "ATATT3|ATCTT3", _BEFORE + r"AT[AC]TT3[A-Za-z0-9_=-]{40,400}+"),
    Shape("prefix.dev", "pfx_", _BEFORE + r"pfx_" + _MIXED + r"[A-Za-z0-9]{12,80}+"),
    Shape("conda channels", "/t/", r"(?P<keep>://[\w.:-]{1,200}/t/)[A-Za-z0-9_-]{8,80}+(?=/)"),
    Shape("JWT", "eyJ",
          _BEFORE + r"eyJ[A-Za-z0-9_-]{8,16384}+\.eyJ[A-Za-z0-9_-]{8,16384}+"
          r"(?:\.[A-Za-z0-9_-]{0,16384}+)?"),
)  # fmt: skip  # a table

# --- programs -----------------------------------------------------------------------------------
# `program` or `program subcommand`; `*` is every program. Places of secrets, separated by spaces:
#
#     -p+       only attached: -pSECRET
#     -P        the next word, or attached (-PSECRET; --long=SECRET)
#     -u:       USER:SECRET; also with % , / or = in place of the colon: the part after it is secret
#     word      a word without a dash: the next word
#     @2        the second argument that is no option (of a subcommand: after it)
#     @=        every argument NAME=SECRET
#     ~         at the end of an entry: only if the value is no plain word or number
_MYSQL = "-p+"
_STORE = "--value~ -v~ --body -b --string-value --from-literal= --data~ @= @3~"
PROGRAMS: dict[str, str] = {
    "mysql": _MYSQL, "mysqldump": _MYSQL, "mysqlimport": _MYSQL, "mysqlcheck": _MYSQL,
    "mysqlshow": _MYSQL, "mysqlslap": _MYSQL, "mariadb": _MYSQL, "mariadb-dump": _MYSQL,
    "mariadb-admin": "-p+ password", "mysqladmin": "-p+ password", "mariadb-import": _MYSQL,
    "mongo": "-p", "mongosh": "-p", "mongodump": "-p", "mongorestore": "-p",
    "mongoimport": "-p", "mongoexport": "-p", "mongostat": "-p",
    "redis-cli": "-a --pass auth AUTH", "keydb-cli": "-a --pass auth AUTH", "cqlsh": "-p",
    "sqlcmd": "-P", "bcp": "-P", "tsql": "-P", "freebcp": "-P", "isql": "-P @3", "iusql": "-P @3",
    "sqlplus": "@1/", "sqlldr": "@1/ userid/", "expdp": "@1/", "impdp": "@1/", "exp": "@1/",
    "beeline": "-p", "influx": "-t", "hdbsql": "-p", "exaplus": "-p", "vsql": "-w",
    "cypher-shell": "-p", "neo4j-admin": "set-initial-password", "db2": "using USING",
    "ldapsearch": "-w", "ldapmodify": "-w", "ldapadd": "-w", "ldapdelete": "-w",
    "ldapwhoami": "-w", "ldappasswd": "-w -s -a", "rabbitmqctl change_password": "@2",
    "rabbitmqctl add_user": "@2", "rabbitmqctl authenticate_user": "@2", "rabbitmqadmin": "-p",
    "mosquitto_pub": "-P", "mosquitto_sub": "-P", "mosquitto_passwd": "@3", "etcdctl": "--user:",
    "kadmin": "-w",
    "curl": "-u: --user: -U: --proxy-user: -b= --cookie= -E: --cert: --oauth2-bearer",
    "http": "-a: --auth:", "https": "-a: --auth:", "xh": "-a: --auth:",
    "lftp": "-u, --user, open,", "ncftpput": "-p", "ncftpget": "-p", "ncftp": "-p", "open": "-u,",
    "ascp": "-W --token", "youtube-dl": "-p", "yt-dlp": "-p", "smbclient": "-U% --user% @2~",
    "smbget": "-U%", "rpcclient": "-U%", "net": "-U%", "net use": "@3~", "radtest": "@2 @5",
    "winexe": "-U%", "sshpass": "-p",
    "swift": "-K --key", "b2": "authorize-account@2", "ossutil": "-k", "7z": "-p+", "7za": "-p+",
    "7zr": "-p+", "7zz": "-p+", "zip": "-P", "unzip": "-P", "zipcloak": "-P", "rar": "-hp+ -p+",
    "unrar": "-p+", "qpdf": "--encrypt", "pdftk": "user_pw owner_pw input_pw",
    "openssl": "-pass: -passin: -passout: -k -K -hmac -macopt:", "openssl passwd": "-salt @1",
    "keytool": "-new", "osslsigncode": "-pass", "ssh-keygen": "-N -P", "htpasswd": "@3",
    "useradd": "-p", "usermod": "-p", "mkpasswd": "@1", "ipmitool": "-P", "snmpwalk": "-c -A -X",
    "snmpget": "-c -A -X", "snmpset": "-c -A -X", "nmcli": "password", "wpa_passphrase": "@2",
    "xfreerdp": "/p: /p", "rdesktop": "-p", "iinit": "@1", "iadmin moduser": "password",
    "omero": "-w", "sendemail": "-xp", "sendEmail": "-xp", "swaks": "-ap", "p4": "-P",
    "hatch": "-a --auth", "twine": "-p", "poetry": "-p", "synapse": "-p", "flit": "-p",
    "poetry config": "@3~", "composer config": "@3~",
    "anaconda": "-t", "codecov": "-t", "doctl": "-t", "ngrok": "authtoken",
    "skopeo": "--creds: --src-creds: --dest-creds:", "veracrypt": "-p",
    "ccrypt": "-K", "mcrypt": "-k", "vault": "unseal",
    "vault write": "@=", "wandb login": "@1", "heroku config:set": "@=", "heroku": "--token",
    "rclone obscure": "@1", "rclone": "--pass",
    "rclone create": "secret_access_key pass password client_secret token key", "mc set": "@4",
    "mc add": "@3 @4~ @5", "mc user": "@4", "conda set": "@1",
    "aws": "--sse-c-key --sse-c-copy-source-key",
    "aws set": "aws_secret_access_key aws_session_token aws_access_key_id",
    "aws put-parameter": "--value", "kubectl": "--from-literal=", "oc": "--from-literal=",
    "npm": "//registry.npmjs.org/:_authToken _authToken _auth _password", "docker": "--token",
    "kubeadm": "--token", "k3s": "--token", "* login": "-p -P -w -t~ -k~ @1~ @2~",
    "* register": "-p~ -t~ --token", "* auth": "-p~ -t~", "* authtoken": "@1", "* unlock": "@1~",
    "* secret": _STORE, "* secrets": _STORE, "* kv": _STORE, "* keyvault": _STORE,
    "* create-secret": _STORE, "* put-secret-value": _STORE,
}  # fmt: skip  # a table

# Options of any program: after a user name, one of PASSWORD_OPTIONS likely has the password.
USER_OPTIONS = word_set("-u -U -user -username --user --username --login")
PASSWORD_OPTIONS = word_set("-p -P -w -W")
# Programs in which PASSWORD_OPTIONS have other meanings: partitions, ports, windows.
NO_PASSWORD = word_set(
    "squeue sacct srun sbatch salloc sinfo ssh scp docker podman psql pg_dump mysql"
)
# Words of commands that store values: after one of them, every value of a secret's name is secret.
SETTERS = word_set(
    "set config add modify moduser adduser add_user useradd create update put configure login "
    "account machine user"
)
# A subcommand or program named by a verb and a secret's name, such as `reset-admin-password`: its
# arguments that look like no word and no identifier are secret.
VERBS = SETTERS | word_set("activate change reset store edit init initial")
CREDENTIAL_ARGUMENTS = "-p~ -P~ -w~ @1~ @2~ @3~ @4~"
# Options for the value of a secret that another word names: `--name db-password --value SECRET`.
VALUES = word_set("-v --value --data --body --string-value --content")
# Short options of keys and tokens in many programs: a random value after them is secret.
KEYS = word_set("-k -K -t -a")
# Prefixes of option values that name a secret's place or kind: `-pass env:PW`.
PLACES = ("env:", "file:", "fd:", "arn:", "prompt:", "vault:")
# `setenv NAME SECRET`, `set -x NAME SECRET` (fish): the word after a secret's name is its value.
SHELL_SETTERS = word_set("setenv set")
# Programs only as the first word: in `mc alias set`, `aws configure set` the word is no program.
FIRST_ONLY = word_set("set open exp net http https")
# Programs whose words with blanks are command text, even if they begin with NAME=.
TEXT_TAKERS = SHELLS | word_set(
    "fish csh tcsh busybox su runuser ssh rsh pdsh clush parallel xargs bsub watch eval script "
    "expect lftp flock at batch sbatch srun salloc qsub condor_run"
)
# The word after one of these options names a user, a host ... and is no program.
NAME_OPTIONS = word_set("-u -U -g -G --user --group --name -h --host --hostname -d -D -J")
# Programs that read a secret from standard input, and a word that must be present ("": none).
STDIN_READERS: dict[str, str] = {
    "kinit": "", "sudo": "-S", "cryptsetup": "", "iinit": "", "myproxy-logon": "",
    "gh": "--with-token", "gpg": "--passphrase-fd", "gpg2": "--passphrase-fd", "openssl": "stdin",
    "sshfs": "password_stdin", "vault": "-", "ssh-add": "-", "su": "", "zfs": "load-key",
    "ansible-vault": "",
}  # fmt: skip  # a table
# Programs that print their arguments.
SPEAKERS = word_set("echo printf print yes builtin /bin/echo")


class SecretPlace(NamedTuple):
    """One entry of PROGRAMS. word: the option or word before the secret; empty: `place` counts.
    sign: the character before the secret inside the value."""

    word: str
    place: int = 0
    attached: bool = True
    separate: bool = True
    sign: str = ""
    strange: bool = False


@cache
def programs() -> dict[str, dict[str, tuple[SecretPlace, ...]]]:
    """Return program -> subcommand ("" for any) -> places of secrets."""
    found: dict[str, dict[str, tuple[SecretPlace, ...]]] = {}
    for key, text in PROGRAMS.items():
        program, _, sub = key.partition(" ")
        own = found.setdefault(program, {})
        for entry in text.split():
            word, at, place = entry.partition("@")
            where = word if at and word else sub  # `authorize-account@2`: of that subcommand
            own[where] = (*own.get(where, ()), _entry("@" + place if at else entry))
    return found


def places(text: str) -> tuple[SecretPlace, ...]:
    """Parse the entries of a text in the format of PROGRAMS."""
    return tuple(map(_entry, text.split()))


def _entry(text: str) -> SecretPlace:
    strange = text.endswith("~")
    text = text.removesuffix("~")
    if text == "@=":
        return SecretPlace("", sign="=", place=-1)
    if text[0] == "@":
        digits = text[1:].rstrip("/")
        return SecretPlace("", place=int(digits), sign=text[1 + len(digits) :], strange=strange)
    if text.endswith("+"):
        return SecretPlace(text[:-1], separate=False)
    if len(text) > 2 and text[-1] in ":%,/=":
        return SecretPlace(text[:-1], sign=text[-1])
    return SecretPlace(text, strange=strange)
