"""A trained head as the recorder sees it: q at the path for rounds begun at every position."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from specsim.errors import ConfigError, DomainError
from specsim.recording.drafts import Columns, scalar_columns
from specsim.recording.eagle import EagleHead, target_features
from specsim.recording.generate import Continuation
from specsim.recording.models import LanguageModel
from specsim.recording.warp import Warp
from specsim.speculation.trace import DraftSampleMethod


@dataclass(frozen=True, slots=True)
class HeadDraft:
    """A head on the target's hidden states.

    Its first draft is a function of the path; the later ones go on from the round's start.
    """

    head: EagleHead
    target: LanguageModel
    warp: Warp
    num_drafts: int
    """Most drafts of a round, D."""
    sha256: str
    """Of the head's weights."""
    draft_sample_method: DraftSampleMethod = "probabilistic"

    @property
    def name(self) -> str:
        """The draft in words, for the header."""
        return f"trained head of one layer, {len(self.head.words)} words, on {self.target.name}"

    @property
    def slug(self) -> str:
        """The draft as part of a file name."""
        return "head"

    @property
    def temperature(self) -> float:
        """Temperature of the recorded distribution."""
        return self.warp.temperature

    @torch.no_grad()
    def columns(self, continuation: Continuation) -> Columns:
        """Scalars of the first draft, [N], and q along the path from every start, [N, D]."""
        num_prompt, num_tokens = len(continuation.prompt), len(continuation.token)
        device = self.target.device
        ids = torch.from_numpy(np.concatenate([continuation.prompt, continuation.token]))[None].to(device)
        features = target_features(self.target, ids[:, :-1])
        embedding = self.target.network.get_input_embeddings()
        embedded = embedding(functional.pad(ids[:, 1:], (0, self.num_drafts))).float()
        spoken = self.target.network.get_output_embeddings().weight[self.head.words.to(device)].float()
        place = {int(word): row for row, word in enumerate(self.head.words)}
        wanted = torch.tensor([place.get(int(token), -1) for token in continuation.token])
        shape = (num_tokens, self.num_drafts)
        q_path, top, entropy = (np.zeros(shape, dtype=np.float32) for _ in range(3))
        first = torch.zeros(num_tokens, len(self.head.words))
        # The start at output position s is row num_prompt + s - 2: the last token before s is not read yet.
        begin = max(2 - num_prompt, 0)
        rows = slice(num_prompt + begin - 2, num_prompt + num_tokens - 2)
        for ahead, stream in enumerate(self.head.unroll(features, embedded, self.num_drafts)):
            q = self.warp(self.head.spoken(stream[0, rows]) @ spoken.T).cpu()[: num_tokens - begin - ahead]
            on_path = wanted[begin + ahead :]
            starts = slice(begin, num_tokens - ahead)
            said = q.gather(1, on_path.clamp(min=0)[:, None])[:, 0]
            q_path[starts, ahead] = torch.where(on_path >= 0, said, 0.0).numpy()
            top[starts, ahead] = q.amax(-1).numpy()
            entropy[starts, ahead] = torch.special.entr(q).sum(-1).clamp(min=0.0).numpy()
            if ahead == 0:
                first[starts] = q
        p = continuation.probabilities
        widened = torch.zeros(num_tokens, p.shape[-1])
        widened[:, self.head.words] = first
        return {
            **scalar_columns(p, widened, continuation.token),
            "q_from_start": q_path,
            "top_probability_from_start": top,
            "entropy_from_start_nats": entropy,
        }


def load_head(
    folder: str | Path,
    target: LanguageModel,
    warp: Warp,
    *,
    num_drafts: int,
    draft_sample_method: DraftSampleMethod = "probabilistic",
) -> HeadDraft:
    """Load a trained head for the target that it was trained on.

    Raises
    ------
    ConfigError
        No head there, or one of another target.
    DomainError
        Fewer than one draft a round.
    """
    if num_drafts < 1:
        raise DomainError(f"a head drafts at least 1 token, not {num_drafts}")
    folder = Path(folder)
    head = EagleHead.load(folder).to(target.device)
    if head.shape.target_sha256 != target.sha256:
        raise ConfigError(f"{folder}: trained on another target than '{target.name}' (their SHA-256 differ)")
    digest = hashlib.sha256((folder / "head.safetensors").read_bytes()).hexdigest()
    return HeadDraft(head, target, warp, num_drafts, digest, draft_sample_method)
