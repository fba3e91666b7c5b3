// Package planner places the units of a model on devices. It minimizes the largest share of a
// device's memory budget, and proves how far the answer is from the optimum.
//
// [Solve] takes a [Problem] (graph, workload or costs, devices, constraints) and returns a
// [Solution]: the map, its value, a lower bound for every map, and whether the two meet. [Plan] is
// the short form. A [Diffusion] pipeline has phases instead of a map.
//
// Units that share a parameter form a group, which may be on any device. The other units form a
// chain in module order, and each device takes one run of it. Among maps with the same largest
// share, [Solve] takes the one with the smallest sum of squared shares. No device then idles if it
// could relieve another.
//
// With Problem.Unconstrained any unit may be on any device. A local search starts from the
// contiguous optimum, and branch and bound follows; its bounds hold for any assignment. [Time] uses
// the local search only.
//
// Package devicemap checks every answer again. It shares only the definition of costs with the
// methods.
package planner
