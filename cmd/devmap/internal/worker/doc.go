// Package worker has a command's work done by a process of its own. A GPU's driver, or
// the system if memory is short, may end that process; the supervisor then reports it.
// The worker is the same program with the same arguments; two pipes join it with its
// supervisor. On one it says what it does. The other carries nothing: it is closed when
// the worker is to end, and closes on its own when the supervisor has ended.
package worker
