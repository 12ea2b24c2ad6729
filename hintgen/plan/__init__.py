"""Plan a whole run: strategies, their simulation on a cluster, the choice, and what to do then."""
