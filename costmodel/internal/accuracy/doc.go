// Package accuracy holds no code: its tests hold what the cost model predicts
// to what was measured on GPUs (fixtures/measured), row by row, and print both
// (make accuracy).
package accuracy
