#!/usr/bin/env python3
"""Writes the software bill of materials (CycloneDX 1.5, JSON) of the genuma binary for one target.

usage: sbom.py TRIPLE [--time SECONDS] > genuma.cdx.json
It lists the crates that are linked into the binary or run in its build, with the checksums of Cargo.lock. The same sources and time
make the same bytes. Nothing is fetched if Cargo has the crates.
"""

import argparse
import datetime
import json
import pathlib
import re
import subprocess
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read_checksums():
    """SHA-256 of the archive of each crate in Cargo.lock, by name and version."""
    sums = {}
    for block in (ROOT / "Cargo.lock").read_text().split("[[package]]"):
        fields = dict(re.findall(r'^(name|version|checksum) = "(.*)"$', block, re.M))
        if "checksum" in fields:
            sums[fields["name"], fields["version"]] = fields["checksum"]
    return sums


def linked_packages(metadata):
    """Package IDs that genuma needs without its tests, with the IDs that each one needs."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(package["id"] for package in metadata["packages"] if package["name"] == "genuma")
    needs, waiting = {}, [root]
    while waiting:
        package = waiting.pop()
        if package in needs:
            continue
        deps = nodes[package]["deps"]
        needs[package] = sorted({dep["pkg"] for dep in deps if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])})
        waiting += needs[package]
    return root, needs


def component(package, sums):
    name, version = package["name"], package["version"]
    ref = f"pkg:cargo/{name}@{version}"
    found = {"type": "application" if name == "genuma" else "library", "bom-ref": ref, "name": name, "version": version, "purl": ref}
    if package.get("license"):
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if package.get("repository"):
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    if (name, version) in sums:
        found["hashes"] = [{"alg": "SHA-256", "content": sums[name, version]}]
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("triple")
    parser.add_argument("--time", type=int, default=0)
    args = parser.parse_args()
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", args.triple]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    root, needs = linked_packages(metadata)
    packages = {package["id"]: package for package in metadata["packages"]}
    sums = read_checksums()
    components = {id: component(packages[id], sums) for id in needs}
    by_ref = lambda found: found["bom-ref"]
    dependencies = [{"ref": by_ref(components[id]), "dependsOn": sorted(by_ref(components[need]) for need in needs[id])} for id in needs]
    content = {
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(args.time, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": components[root],
            "properties": [{"name": "cargo:target", "value": args.triple}],
        },
        "components": sorted((found for id, found in components.items() if id != root), key=by_ref),
        "dependencies": sorted(dependencies, key=lambda found: found["ref"]),
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1, **content}
    print(json.dumps(bom, indent=1))


main()
