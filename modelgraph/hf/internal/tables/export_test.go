package tables

// Names for the tests of package tables_test, which read configs with package hf.
var (
	NumbersIn     = numbersIn
	Stem          = stem
	Operation     = operation
	DeclaredCosts = declaredCosts
	TypeTable     = &typeTable
)
