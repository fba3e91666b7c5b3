// Package planner places the units of a model on devices so that the largest
// share of any device's budget is as small as it can be, and proves how close
// to the optimum the answer is.
//
// [Solve] takes a [Problem] (graph, workload or costs, devices, constraints) and
// returns a [Solution]: the map, its value, a lower bound that no map can be below, and
// whether the two meet. [Plan] is the short form. A [Diffusion] pipeline is solved
// in the same way: its answer has phases in the place of a map. The units that share a parameter are one group, which
// may sit on any device; the others form a chain in module order, and
// each device takes one stretch of it. Among maps of the same largest share the one
// with the smallest sum of squared shares is taken, so that no device idles
// while another could be relieved.
//
// With Problem.Unconstrained any unit may be on any device: a local search from the
// contiguous optimum and a branch and bound, with bounds that hold for any
// assignment. So it is with [Time], without the branch and bound.
//
// Every answer is checked again by package devicemap, which shares the
// definition of costs and nothing else.
package planner
