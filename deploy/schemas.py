#!/usr/bin/env python3
"""Takes Kubernetes' JSON schemas out of the package kubernetes-validate, in a form that kubeconform reads.

    schemas.py WHEEL VERSION FOLDER        such as: kubernetes_validate-1.37.0-py3-none-any.whl v1.34.0 target/ci/schemas

The strict ones, which know no unknown fields. Their names are changed from addresses within a server to those of files.
"""
import json
import pathlib
import sys
import zipfile


def main(wheel, version, folder):
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    inside = f"kubernetes_validate/kubernetes-json-schema/{version}-local-strict/"
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(inside) and name.endswith(".json")]
        if not names:
            raise SystemExit(f"{wheel} has no schemas of {version}")
        for name in names:
            text = archive.read(name).decode().replace('"/api/_definitions.json#', '"_definitions.json#')
            schema = json.loads(text)
            schema.pop("$id", None)
            (out / name.removeprefix(inside)).write_text(json.dumps(schema))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
