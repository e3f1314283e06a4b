"""`attndyn sweep`: a grid over studies and their settings, each cell an ordinary run that is never made twice."""
