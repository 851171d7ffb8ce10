"""What the student is asked for: the teacher's vectors, and the teacher's similarities between them."""

from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize


def vector_loss(student: Tensor, target: Tensor) -> Tensor:
    """1 - cos(s_i, t_i), the mean over the pairs of a batch; both [batch, dim].

    >>> import torch
    >>> vector_loss(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])).item()
    1.0
    """
    return (1 - cosine_similarity(student, target, dim=-1)).mean()


def similarity_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """(cos(s_i, s_j) - cos(t_i, t_j))^2, the mean over all i and j of a batch: relations between pairs are kept.

    Student [batch, dim] and teacher [batch, teacher dim] need not have the same dimension.

    >>> import torch
    >>> similarity_loss(torch.eye(2), torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])).item()
    0.5
    """
    student, teacher = normalize(student, dim=-1), normalize(teacher, dim=-1)
    return (student @ student.T - teacher @ teacher.T).square().mean()
