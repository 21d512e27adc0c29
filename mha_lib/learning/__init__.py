"""Models that learn, what their heads come to do, and what happens without them.

Training in NumPy (`MultiHeadAttention`, `TokenModel`, `fit`), the trained models of the book
(`run_three_jobs` and its like), scores of heads beside chance, and pruning; and `Encoder`, which
others have trained.
"""

from mha_lib.learning.encoder import Encoder, Pieces, gelu, layer_norm
from mha_lib.learning.experiments import (
    CLAIMS,
    Run,
    Snapshot,
    mean_rows,
    run_induction,
    run_marked_and_mean,
    run_three_jobs,
    snapshot,
    snapshot_steps,
)
from mha_lib.learning.frontier import best_row, job_errors
from mha_lib.learning.importance import (
    gradient_by_job,
    gradient_importance,
    path_importance,
    spearman,
)
from mha_lib.learning.layer import MultiHeadAttention
from mha_lib.learning.models import TokenModel, VectorModel
from mha_lib.learning.positions import rotary_angles, rotate
from mha_lib.learning.pruning import (
    PruningStudy,
    greedy_order,
    losses_without,
    order_by,
    pruning_curve,
    study_pruning,
    subset_curves,
)
from mha_lib.learning.relations import looked_at, wilson_interval, word_attention
from mha_lib.learning.roles import (
    attention_mass,
    chance_mass,
    chance_scores,
    head_roles,
    head_scores,
    induction_targets,
    marked_token,
    normalised_entropy,
    previous_token,
)
from mha_lib.learning.tasks import (
    MarkedAndMean,
    RepeatedSequence,
    ThreeJobs,
    TokenBatch,
    VectorBatch,
)
from mha_lib.learning.train import (
    Adam,
    History,
    Recipe,
    accuracy,
    clip_gradients,
    cross_entropy,
    fit,
    squared_error,
)

__all__ = [
    "CLAIMS",
    "Adam",
    "Encoder",
    "History",
    "MarkedAndMean",
    "MultiHeadAttention",
    "Pieces",
    "PruningStudy",
    "Recipe",
    "RepeatedSequence",
    "Run",
    "Snapshot",
    "ThreeJobs",
    "TokenBatch",
    "TokenModel",
    "VectorBatch",
    "VectorModel",
    "accuracy",
    "attention_mass",
    "best_row",
    "chance_mass",
    "chance_scores",
    "clip_gradients",
    "cross_entropy",
    "fit",
    "gelu",
    "gradient_by_job",
    "gradient_importance",
    "greedy_order",
    "head_roles",
    "head_scores",
    "induction_targets",
    "job_errors",
    "layer_norm",
    "looked_at",
    "losses_without",
    "marked_token",
    "mean_rows",
    "normalised_entropy",
    "order_by",
    "path_importance",
    "previous_token",
    "pruning_curve",
    "rotary_angles",
    "rotate",
    "run_induction",
    "run_marked_and_mean",
    "run_three_jobs",
    "snapshot",
    "snapshot_steps",
    "spearman",
    "squared_error",
    "study_pruning",
    "subset_curves",
    "wilson_interval",
    "word_attention",
]
