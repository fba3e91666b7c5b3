// Package accuracy has no code: its tests compare what the cost model predicts with what was
// measured on GPUs (fixtures/measured), row by row, and print both (make accuracy).
package accuracy
