"""The first screen: result, actions and their simulated gain, tables."""
