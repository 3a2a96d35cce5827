"""Builds the package: makes what comes from the protos first, unless it is there as in a source distribution."""

import pathlib
import sys

from setuptools import setup

HERE = pathlib.Path(__file__).resolve().parent
if (HERE.parent.parent / "proto" / "strata").is_dir() and (HERE / "generate.py").exists():
    sys.path.insert(0, str(HERE))
    from generate import generate

    generate(HERE / "strata_documents")

setup(
    name="strata-documents",
    version="0.1.0",
    description="Client of Strata: versioned documents",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    python_requires=">=3.9",
    packages=["strata_documents"],
    package_data={"strata_documents": ["descriptors.bin", "py.typed"]},
    install_requires=["grpcio", "protobuf"],
)
