"""What P-tuning trains: input vectors, a recurrent network over them, and the embeddings that come out."""

import torch
from torch import Tensor, nn

LAYERS = 2


class TriggerEncoder(nn.Module):
    """The embeddings of n trigger tokens, each of which knows its neighbours (section 3.1 of the paper).

        e_1 .. e_n = W2 relu(W1 BiLSTM(v_1 .. v_n) + b1) + b2

    All of v [n, d], the two-layer BiLSTM, W and b are trained; d is the size of the language model's input
    embeddings, `vocabulary` [words, d]. The v are drawn at their scale. The triggers start around `start` [d], the
    embedding of the mask token as in AutoPrompt, at that same scale. `seed` decides all that is drawn.

    >>> vocabulary = torch.randn(100, 8)
    >>> TriggerEncoder(5, vocabulary, start=vocabulary[3])().shape
    torch.Size([5, 8])
    """

    def __init__(self, count: int, vocabulary: Tensor, start: Tensor, seed: int = 0) -> None:
        super().__init__()
        size, scale = vocabulary.shape[1], float(vocabulary.std())
        half = (size + 1) // 2  # of each direction
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.inputs = nn.Parameter(scale * torch.randn(count, size))
            self.recurrent = nn.LSTM(size, half, num_layers=LAYERS, bidirectional=True)
            self.hidden = nn.Linear(2 * half, size)
            self.output = nn.Linear(size, size)
        self._start_around(start.detach().cpu(), scale)
        self.to(vocabulary.device)

    def forward(self) -> Tensor:
        """The trigger embeddings: [n, d]."""
        states, _ = self.recurrent(self.inputs)
        embeddings: Tensor = self.output(torch.relu(self.hidden(states)))
        return embeddings

    @torch.no_grad()
    def _start_around(self, start: Tensor, scale: float) -> None:
        """Bring the first embeddings, which torch would draw at a scale of its own, to that of the language model."""
        self.output.bias.zero_()
        self.output.weight.mul_(scale / self().square().mean().sqrt())
        self.output.bias.copy_(start)
