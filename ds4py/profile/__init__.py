"""What verifies, drafts and plain steps cost on this machine, and what speculation is worth at these costs."""

from ds4py.profile.depth_costs import DepthCosts
from ds4py.profile.measure import Profile, measure

__all__ = ["DepthCosts", "Profile", "measure"]
