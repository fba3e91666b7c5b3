// Package out writes the command's output: results atomically, text without control characters from
// file names, errors with the contract's exit statuses, and the progress of a search.
package out
