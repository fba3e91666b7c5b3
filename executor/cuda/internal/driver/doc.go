// Package driver is the CUDA driver API as this project uses it: gorgonia.org/cu for what that has,
// and small wrappers for what it lacks.
//
// Nothing links libcuda. Each entry point that the program may call is defined here as a jump
// through a table (tramp_amd64.S). [Open] fills the table from the driver that it finds. Before
// that every call returns CUDA_ERROR_NOT_INITIALIZED, except cuInit: cu calls it during
// initialization, and ends the process if it fails. So a binary with this package starts on a
// machine without a driver.
//
// Only cu's package-level functions are used, by goroutines that are locked to their thread with a
// primary context bound. The type cu.Ctx is not used: it would pass every call to another thread,
// which takes 30 µs instead of 60 ns and loses errors.
//
// Without the tag cuda, off Linux, without cgo or on other processors the package is empty.
package driver
