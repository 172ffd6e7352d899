"""From verified tokens to text: options, stop strings, pieces, streams and statistics of a generation."""

from ds4py.generation.options import GenerationOptions
from ds4py.generation.output import OutputProcessor
from ds4py.generation.piece import Piece
from ds4py.generation.stats import Stats
from ds4py.generation.stopping import StopStrings
from ds4py.generation.stream import ChatPiece, ChatStream, Usage

__all__ = ["ChatPiece", "ChatStream", "GenerationOptions", "OutputProcessor", "Piece", "Stats", "StopStrings", "Usage"]
