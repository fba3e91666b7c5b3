package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// processorTime reads the processor time of a running process from Linux's
// /proc (proc_pid_stat(5), fields 14 and 15, in hundredths of a second).
func processorTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const user, system = 14 - 3, 15 - 3 // the fields before are pid and name
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks int64
	for _, field := range []string{fields[user], fields[system]} {
		count, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += count
	}
	return time.Duration(ticks) * time.Second / 100, nil
}
