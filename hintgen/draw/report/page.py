"""The page itself: template, style, libraries, script and data in one HTML file."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from typing import Any

from tracehint.hintgen.text.escape import html, json_in_script

ASSETS = resources.files("tracehint.hintgen.draw") / "assets"


def page(data: dict[str, Any]) -> str:
    """HTML text. Only the scripts of this tool run in it, and nothing is fetched: the
    content security policy names the hash of each script and allows no connection."""
    vendor = _script(_read("vendor/vendor.min.js"))
    names = sorted(p.name for p in (ASSETS / "js").iterdir() if p.name.endswith(".js"))
    own = "\n".join(_read(f"js/{name}") for name in names)
    script = _script(f'"use strict";\n(() => {{\n{own}\n}})();\n')
    hashes = " ".join(f"'sha256-{_hash(text)}'" for text in (vendor, script))
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "CSP": policy,
        "TITLE": html(f"{data['title'][:80]} - tracehint"),
        "CSS": _read("report.css"),
        "LICENCES": _licences(),
        "DATA": json_in_script(data),
        "VENDOR": vendor,
        "SCRIPT": script,
    }
    # One pass, so that a placeholder inside the data is data.
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda m: parts[m[1]], _read("report.html"))


def _read(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _licences() -> str:
    """The libraries' licences ask to go with every copy of them, and each page is one."""
    lines = _read("vendor/LICENSES.txt").splitlines()
    return "\n".join(html(line.replace("\t", "    ")) for line in lines)


def _script(text: str) -> str:
    """Script text that cannot end its element early; the meaning of the code stays."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
