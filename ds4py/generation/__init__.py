"""Turns verified tokens into text: options, stop strings, pieces, streams and statistics of a generation."""

from ds4py.generation.answer import ChatPiece, PlainReply, Reply, Usage
from ds4py.generation.cancelling import Cancel
from ds4py.generation.generator import start_generation
from ds4py.generation.options import GenerationOptions, check_options
from ds4py.generation.output_processor import OutputProcessor
from ds4py.generation.piece import Piece
from ds4py.generation.stats import Stats
from ds4py.generation.stop_strings import StopStrings
from ds4py.generation.stream import ChatStream

__all__ = [
    "Cancel",
    "ChatPiece",
    "ChatStream",
    "GenerationOptions",
    "OutputProcessor",
    "Piece",
    "PlainReply",
    "Reply",
    "Stats",
    "StopStrings",
    "Usage",
    "check_options",
    "start_generation",
]
