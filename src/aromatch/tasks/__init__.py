"""What the command line does, for programs too: from files to a model, and what to do with it.

Every command is one function that takes paths and settings and gives a report.
"""

from .asking import AskReport, Question, ask, replay
from .describing import InfoReport, info
from .evaluating import EvalReport, evaluate
from .explaining import ExplainReport, explain
from .exporting import ExportReport, export
from .judge import Judge
from .learning import Settings
from .model_file import Trained
from .reading import Items, read_items
from .searching import SearchReport, search
from .supervision import Supervision, read_supervision
from .training import Training, TrainReport, train
from .trial import TrialReport, load_shipped, run_trial

__all__ = [
    "AskReport",
    "EvalReport",
    "ExplainReport",
    "ExportReport",
    "InfoReport",
    "Items",
    "Judge",
    "Question",
    "SearchReport",
    "Settings",
    "Supervision",
    "TrainReport",
    "Trained",
    "Training",
    "TrialReport",
    "ask",
    "evaluate",
    "explain",
    "export",
    "info",
    "load_shipped",
    "read_items",
    "read_supervision",
    "replay",
    "run_trial",
    "search",
    "train",
]
