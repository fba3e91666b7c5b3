package planner

// What the test of all methods asks for.
var (
	Methods = methods
	Certify = certify
)
