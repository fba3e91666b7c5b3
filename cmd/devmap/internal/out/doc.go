// Package out is how the command speaks: results that appear whole or not at
// all, text in which no name of a file forges a line, errors with the exit
// statuses of the contract, and a search that shows itself.
package out
