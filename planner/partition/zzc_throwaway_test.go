package partition

import (
	"syscall"
	"time"
)

func cpu() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(0, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
