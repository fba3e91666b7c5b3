// Package chain places a chain of items on devices in a fixed order. Every device
// takes a consecutive run, and the largest share, peak bytes over budget, is as
// small as it can be. Among the maps that reach that share it picks one with the
// least sum of squared shares, so that the devices below the bottleneck are even
// too. A share above 1 is an answer like any other: whether a map fits is the
// caller's question.
//
// There may also be groups outside the chain (tied parameters, say), each placed
// whole on any one device.
//
// # How
//
// One number describes all that a prefix of the devices can do under a limit:
// how far along the chain it can reach. The probe (probe.go) computes it
// greedily; see Nicol, "Rectilinear partitioning of irregular data parallel
// computations", JPDC 23 (1994). Bisection over probes (bisect.go) finds the
// least limit; a probe that fails names the next limit at which it could do
// better, which makes the end of the search a proof and not a tolerance; see
// Pinar and Aykanat, "Fast optimal load balancing algorithms for 1D
// partitioning", JPDC 64 (2004). Shares are compared exactly, in 128 bits.
//
// With groups the reach is kept per set of groups already placed. That covers
// all k^g assignments in k*3^g steps (windows.go), and above
// Settings.FreeGroups groups are fixed and improved one at a time, which may
// leave a gap (groups.go).
//
// The second objective is a dynamic program over the cuts that can occur in a
// map of the least largest share (squares.go).
//
// Where a peak may fall as a run grows, as that of a pipeline's stage does
// with a smaller message, both objectives are dynamic programs over the cuts,
// and the greedy search works on a floor of the peaks that never falls
// (stages.go, stage_cuts.go).
package chain
