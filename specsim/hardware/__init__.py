"""Devices and models as data; the cost of a step as a pure function of its shape."""

from __future__ import annotations

from specsim.hardware.accelerator import Accelerator, Memory, Placement, Price, accelerators
from specsim.hardware.compare import DeviceCost, compare
from specsim.hardware.energy import Clock, Power
from specsim.hardware.limit import Limit
from specsim.hardware.load import load_model, load_profile
from specsim.hardware.memory import MemoryPlan, Resident, check_fit, plan_memory
from specsim.hardware.model import ModelSpec
from specsim.hardware.profile import AcceleratorProfile
from specsim.hardware.roofline_profile import RooflineProfile
from specsim.hardware.step import CostModel, StepCosts, StepShape
from specsim.hardware.table import TableProfile
from specsim.hardware.unit import UnitProfile

__all__ = [
    "Accelerator",
    "AcceleratorProfile",
    "Clock",
    "CostModel",
    "DeviceCost",
    "Limit",
    "Memory",
    "MemoryPlan",
    "ModelSpec",
    "Placement",
    "Power",
    "Price",
    "Resident",
    "RooflineProfile",
    "StepCosts",
    "StepShape",
    "TableProfile",
    "UnitProfile",
    "accelerators",
    "check_fit",
    "compare",
    "load_model",
    "load_profile",
    "plan_memory",
]
