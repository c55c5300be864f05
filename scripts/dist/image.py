#!/usr/bin/env python3
"""Makes an image of one layer, as the OCI's image format 1.1 has it, with what `docker load` wants to see beside.

usage: image.py LAYER.tar --architecture amd64|arm64 --version V --source URL --time SECONDS > image.tar
The same layer makes the same bytes.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import sys
import tarfile


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("layer")
    parser.add_argument("--architecture", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--time", type=int, required=True)
    args = parser.parse_args()

    files = {}

    def blob(data, kind):
        digest = hashlib.sha256(data).hexdigest()
        files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    def text(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    with open(args.layer, "rb") as file:
        plain = file.read()
    layer = blob(gzip.compress(plain, 9, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")
    created = datetime.datetime.fromtimestamp(args.time, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "genuma",
        "org.opencontainers.image.version": args.version,
        "org.opencontainers.image.licenses": "MIT",
        "org.opencontainers.image.source": args.source,
        "org.opencontainers.image.created": created,
    }
    config = blob(
        text({
            "architecture": args.architecture,
            "os": "linux",
            "created": created,
            "config": {
                "Entrypoint": ["/usr/bin/genuma"],
                "Env": ["PATH=/usr/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
                "WorkingDir": "/data",
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
            "history": [{"created": created, "created_by": "scripts/dist/pack.sh"}],
        }),
        "application/vnd.oci.image.config.v1+json",
    )
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = blob(
        text({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer], "annotations": labels}), kind
    )
    manifest["annotations"] = {"org.opencontainers.image.ref.name": f"genuma:{args.version}"}
    manifest["platform"] = {"architecture": args.architecture, "os": "linux"}
    files["oci-layout"] = text({"imageLayoutVersion": "1.0.0"})
    files["index.json"] = text({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    })
    # What docker wants: the same blobs by their paths.
    path = lambda of: "blobs/sha256/" + of["digest"].split(":")[1]
    files["manifest.json"] = text([
        {"Config": path(config), "Layers": [path(layer)], "RepoTags": [f"genuma:{args.version}"]}
    ])

    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(files[name]), args.time, 0o644
            tar.addfile(entry, io.BytesIO(files[name]))


main()
