"""``specsim record train-draft``: a draft head trained on what the target itself writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from specsim.cli.language_models import Device, refuse_missing_libraries

_LIBRARIES = ("torch", "transformers", "safetensors", "gguf", "accelerate")


def train_draft(
    target: Annotated[Path, typer.Argument(help="Target: a Hugging Face directory or a .gguf file.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write the head to.")],
    templates: Annotated[
        Path | None, typer.Option(help="Templates of training prompts (YAML); the shipped ones if absent.")
    ] = None,
    num_prompts: Annotated[int, typer.Option(min=1, help="Training prompts from the templates.")] = 1024,
    num_completed: Annotated[
        int, typer.Option(min=0, help="Training prompts that the target writes from the openings.")
    ] = 2048,
    max_tokens: Annotated[int, typer.Option(min=4, help="Most tokens of a training text.")] = 128,
    temperature: Annotated[float, typer.Option(help="Temperature of texts and training.")] = 0.7,
    num_words: Annotated[int, typer.Option(min=1, help="Words that the head can say.")] = 8192,
    depth: Annotated[int, typer.Option(min=1, max=16, help="Drafts of a round that are trained.")] = 2,
    num_epochs: Annotated[int, typer.Option(min=1, help="Passes over the texts.")] = 4,
    learning_rate: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-3,
    generation_batch_size: Annotated[int, typer.Option(min=1, help="Texts written together.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Seed of prompts, texts and training.")] = 0,
    device: Annotated[Device, typer.Option(help="Where the models run.")] = Device.auto,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the arithmetic.")] = None,
) -> None:
    """Train a draft head for a target on the target's own text; `record --draft FOLDER` uses it.

    Texts are kept beside the output until the head is there, so that a run that was killed need not write
    them again.
    """
    from specsim.config import parse, validate
    from specsim.errors import ConfigError

    refuse_missing_libraries(_LIBRARIES, purpose="training")
    if not output.parent.is_dir():
        raise ConfigError(f"--output '{output}': no such folder: {output.parent}")
    from specsim.recording import load_language_model
    from specsim.recording.openings import complete_openings
    from specsim.recording.step_bench import use_threads
    from specsim.recording.templates import SHIPPED_TEMPLATES, load_templates
    from specsim.recording.train import TrainingSettings, train_head
    from specsim.recording.training_texts import write_texts

    flags = {
        "temperature": temperature,
        "num_words": num_words,
        "depth": depth,
        "num_epochs": num_epochs,
        "learning_rate": learning_rate,
        "seed": seed,
    }
    settings = validate(TrainingSettings, parse(json.dumps(flags), file="command line"))
    chosen = load_templates(templates or SHIPPED_TEMPLATES)
    prompts = chosen.expand(num_prompts, seed=seed)
    if num_completed and not chosen.openings:
        raise ConfigError(f"{templates}: no 'openings' to complete; add some, or give --num-completed 0")
    if threads is not None:
        use_threads(threads, device.value)
    model = load_language_model(target, device=device.value)
    parts = Path(f"{output}.texts")
    prompts += complete_openings(
        model,
        chosen.openings,
        num_completed,
        batch_size=generation_batch_size,
        seed=seed,
        parts=parts,
        on_prompt=lambda done: _say(f"{done} of {num_completed} prompts completed"),
    )
    texts = write_texts(
        model,
        prompts,
        temperature=temperature,
        max_tokens=max_tokens,
        batch_size=generation_batch_size,
        seed=seed,
        parts=parts,
        on_text=lambda done: _say(f"{done} of {len(prompts)} texts written"),
    )
    head = train_head(model, texts, settings, on_step=_on_step)
    head.save(output)
    for part in parts.iterdir():
        part.unlink()
    parts.rmdir()
    num_tokens = sum(len(text.ids) - text.num_prompt_tokens for text in texts)
    typer.echo(f"{output}: head of {num_words} words, trained on {len(texts)} texts of {num_tokens} tokens")


def _on_step(step: int, num_steps: int, loss: float, acceptance: float) -> None:
    if step % 20 == 0 or step == num_steps:
        _say(f"step {step} of {num_steps}: loss {loss:.3f}, acceptance on the training text {acceptance:.3f}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
