import subprocess
import sys
from pathlib import Path

from relvec import PairIndex, RelBERT
from relvec.index.storage import read_meta

SCRIPT = Path(__file__).parents[2] / "vocabulary" / "relabel.py"


def test_a_renamed_relation_leaves_vectors_and_other_relations_alone(tiny_folder: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    pairs = [("cup", "tea"), ("Paris", "France"), ("baker", "bread"), ("dog", "dogs")]
    model = RelBERT.from_pretrained(tiny_folder)
    before = PairIndex.of(model, pairs, relations=["holds", "capital", "old", ""]).save(index)
    subprocess.run([sys.executable, SCRIPT, index, "old=makes", "holds="], check=True)
    after = read_meta(index)
    assert after.check_files(index, every=True) == 2
    assert after.vectors_sha256 == before.vectors_sha256
    found = PairIndex.load(index).pairs
    assert (found.pairs(), found.all_relations()) == (pairs, ["", "capital", "makes", ""])
