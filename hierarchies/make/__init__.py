"""Makes the files of `hierarchies/reference`; `scripts/make_hierarchies` runs it."""
