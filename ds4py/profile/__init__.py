"""What verifies, drafts and plain steps cost on this machine, and what speculation is worth at these costs."""

from ds4py.profile.measure import Profile, measure
from ds4py.profile.outlook import Depth

__all__ = ["Depth", "Profile", "measure"]
