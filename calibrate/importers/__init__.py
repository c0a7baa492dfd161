"""Importers of other tools' trace files, one file each; importing this package enters them all."""

from __future__ import annotations

from calibrate.importers.aiconfigurator import AiconfiguratorGemm
from calibrate.importers.kineto import Kineto
from calibrate.importers.llama_bench import LlamaBench
from calibrate.importers.llmservingsim import LlmServingSimAttention, LlmServingSimSteps
from calibrate.importers.ml_energy import MlEnergy
from calibrate.importers.nsys import Nsys
from calibrate.importers.spec_bench import SpecBench
from calibrate.importers.spec_bench_answers import SpecBenchAnswers
from calibrate.importers.spec_forge import SpecForge
from calibrate.importers.vidur import VidurAttention, VidurLayers
from calibrate.importers.vidur_profiling import VidurProfiledAttention, VidurProfiledLayers
from calibrate.importers.vllm_latency import VllmLatency
from calibrate.importers.vllm_serve import VllmServe

__all__ = [
    "AiconfiguratorGemm",
    "Kineto",
    "LlamaBench",
    "LlmServingSimAttention",
    "LlmServingSimSteps",
    "MlEnergy",
    "Nsys",
    "SpecBench",
    "SpecBenchAnswers",
    "SpecForge",
    "VidurAttention",
    "VidurLayers",
    "VidurProfiledAttention",
    "VidurProfiledLayers",
    "VllmLatency",
    "VllmServe",
]
