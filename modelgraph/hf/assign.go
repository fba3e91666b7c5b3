package hf

// conversion turns checkpoint names into module names.
type conversion struct{}
