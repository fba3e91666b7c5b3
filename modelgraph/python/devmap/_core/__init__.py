"""The parts of the package. Its public names are those of devmap itself."""
