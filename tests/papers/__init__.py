"""The papers' experiments, measured again on Adult: claim, their figure, ours, and whether the claim holds."""
