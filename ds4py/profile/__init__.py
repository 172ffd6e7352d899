"""Measures verifies, drafts and plain steps on this machine, and derives what speculation is worth."""

from ds4py.profile.depth_costs import DepthCosts
from ds4py.profile.measure import Profile, measure

__all__ = ["DepthCosts", "Profile", "measure"]
