"""The plan that `armful compare --example` prints."""

from pathlib import Path

EXAMPLE = Path(__file__).with_name("example_plan.toml").read_text(encoding="utf-8")
