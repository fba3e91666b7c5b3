// Package accuracy has no code: its tests compare predictions with measurements on GPUs
// (fixtures/measured), row by row, and print both (make accuracy).
package accuracy
