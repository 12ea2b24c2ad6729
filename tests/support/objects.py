"""An S3-compatible server on this machine, for bundles at s3:// URLs."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

BUCKET = "runs"
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")


@dataclass(frozen=True)
class Store:
    """The server at `host` (NAME:PORT), and its bucket."""

    host: str

    def system(self) -> Any:
        """Return Arrow's file system on the server."""
        from pyarrow import fs

        return fs.S3FileSystem(
            access_key="test",
            secret_key="test",
            region="us-east-1",
            scheme="http",
            endpoint_override=self.host,
            allow_bucket_creation=True,
        )

    def put(self, bundle: Path, key: str) -> str:
        """Copy the bundle without symbolic links to the bucket; return its URL."""
        system = self.system()
        for file in bundle.rglob("*"):
            if file.is_file() and not file.is_symlink():
                with system.open_output_stream(f"{BUCKET}/{key}/{file.relative_to(bundle)}") as to:
                    to.write(file.read_bytes())
        return f"s3://{BUCKET}/{key}"

    def demand_credentials(self, after: float) -> None:
        """Reject requests without credentials after this number of requests."""
        ask = urllib.request.Request(
            f"http://{self.host}/moto-api/reset-auth",
            str(after).encode(),
            {"Content-Type": "text/plain"},
            method="POST",
        )
        urllib.request.urlopen(ask).close()


@contextmanager
def object_store() -> Iterator[Store]:
    """Start a fresh server and set the environment variables that lead to it."""
    pytest.importorskip("moto")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host = "{}:{}".format(*server.get_host_and_port())
        store = Store(host)
        store.system().create_dir(BUCKET)
        with pytest.MonkeyPatch.context() as patch:
            for name in KEYS:
                patch.delenv(name, raising=False)
            patch.setenv("AWS_ACCESS_KEY_ID", "test")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
            patch.setenv("AWS_ENDPOINT_URL_S3", f"http://{host}")
            patch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # else queries another host
            patch.setenv("AWS_CONFIG_FILE", "/dev/null")
            patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
            yield store
    finally:
        server.stop()
