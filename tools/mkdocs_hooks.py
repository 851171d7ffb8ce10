"""The site has pages of folders beside `docs`: the experiments, and what describes the vocabulary."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
BESIDE = ("experiments/*.md", "experiments/results/*.svg", "vocabulary/README.md")


def on_files(files: Files, config: Any) -> Files:
    """Add the files below their own folder names."""
    for pattern in BESIDE:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between the folders are written for a reader of the repository; on the site `docs` is the root."""
    if page.file.src_uri.startswith(("experiments/", "vocabulary/")):
        return markdown.replace("](../docs/", "](../")
    return markdown.replace("](../experiments/", "](experiments/").replace("](../vocabulary/", "](vocabulary/")
