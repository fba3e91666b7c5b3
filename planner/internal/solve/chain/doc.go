// Package chain places a chain of items on devices in a fixed order. Every device takes a
// consecutive run. The package minimizes the largest share, which is peak bytes divided by the
// budget. Ties go to a map with the least sum of squared shares, so that devices below the
// bottleneck are balanced too. A share above 1 is a valid answer: the caller decides whether a map
// fits.
//
// There may also be groups outside the chain, such as tied parameters. Each group is on any one
// device.
//
// # How
//
// One number describes what a prefix of the devices can do under a limit: how far along the chain
// it reaches. The probe (probe.go) computes it greedily; see Nicol, "Rectilinear partitioning of
// irregular data parallel computations", JPDC 23 (1994). Bisection over probes (bisect.go) finds
// the least limit. A failed probe returns the next limit at which it could do better, so the search
// ends with a proof and needs no tolerance. See Pinar and Aykanat, "Fast optimal load balancing
// algorithms for 1D partitioning", JPDC 64 (2004). Shares are compared exactly, in 128 bits.
//
// With groups, the search keeps a reach for each set of groups placed so far. That covers all k^g
// assignments in k*3^g steps (windows.go). Above Settings.FreeGroups, groups are fixed and improved
// one at a time, which may leave a gap (groups.go).
//
// The second objective is a dynamic program over the cuts that can occur in a map with the least
// largest share (squares.go).
//
// A peak may fall as a run grows, for example that of a pipeline's stage with a smaller message.
// Both objectives are then dynamic programs over the cuts. The greedy search works on a floor of
// the peaks that never falls (stages.go, stage_cuts.go).
package chain
