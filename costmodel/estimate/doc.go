// Package estimate turns a graph and a workload into a table of costs.
package estimate
