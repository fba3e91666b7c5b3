// Package highs solves linear and mixed-integer programs with HiGHS 1.15,
// Q. Huangfu and J. A. J. Hall, "Parallelizing the dual revised simplex
// method", Mathematical Programming Computation 10 (2018), compiled to
// WebAssembly and run in this process by wazero: no cgo, no other program.
//
// It is an oracle for tests and an engine that is asked for by name; no
// planner needs it. Only programs that import it carry its 1.2 MB. The module
// is compiled once a process, which takes about 2 s; it runs on one thread at a
// half to a fifth of native speed.
//
// highs.wasm.gz, names.json and LICENSE-highs.txt are written by
// internal/vendor from the npm package; see README.md.
package highs
