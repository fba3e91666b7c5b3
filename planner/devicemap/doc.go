// Package devicemap holds device maps, the predicted peak memory of each device, the plan file, and
// the check of any map, from devmap or not.
//
// The check shares only the definition of costs with the solvers. It simulates a step operation by
// operation, and never uses a solver's closed form.
package devicemap
