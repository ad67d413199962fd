"""The commands of `lumi`: thin, each imports what it needs when it runs."""
