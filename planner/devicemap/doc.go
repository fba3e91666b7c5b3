// Package devicemap is the answer of a planner as data: which device holds
// which unit, what each device will hold at its peak, the plan file, and the
// check of any map, ours or another's.
//
// The check shares the definition of costs with the solvers and nothing else:
// it goes through the plain walk, never through a solver's closed form.
package devicemap
