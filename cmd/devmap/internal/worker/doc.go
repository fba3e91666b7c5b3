// Package worker has a command's work done by a process of its own, so that what
// ends that process (a GPU's driver, the system where memory is short) does not
// end what tells of it. The worker is the same program with the same arguments; two
// pipes join it with its supervisor. On one it says what it does. The other carries
// nothing: it is closed when the worker is to end, and closes by itself where the
// supervisor is no more.
package worker
