"""The probe: what a store and its nodes cost, measured from the nodes themselves."""
