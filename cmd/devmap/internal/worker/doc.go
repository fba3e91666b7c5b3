// Package worker runs a command's work in a separate process. A GPU's driver may end that process,
// or the system if memory is short; the supervisor then reports it. The worker is the same program
// with the same arguments. Two pipes connect it with its supervisor. On one it sends messages. The
// other carries no data: the supervisor closes it to end the worker, and it closes automatically if
// the supervisor ends.
package worker
