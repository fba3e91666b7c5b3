package hostmemory

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits are the limits of this process.
func Limits() []FreeMemory {
	return append(limitsIn(os.DirFS("/")), resourceLimits()...)
}

// limitsIn are those that files report: what the kernel can allocate without
// swapping (proc_meminfo(5), MemAvailable), and what every control group from
// the process's own to the root has left. Pages of files that a group has read
// count as its own, and make way.
func limitsIn(root fs.FS) []FreeMemory {
	var all []FreeMemory
	if free, ok := Field(root, "proc/meminfo", "MemAvailable:"); ok {
		all = append(all, FreeMemory{Place: "this machine's memory", Free: free << 10})
	}
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[1] == "": // version 2
			all = append(all, groupLimits(root, "sys/fs/cgroup", parts[2], "memory.max", "memory.current", "inactive_file")...)
		case strings.Contains(","+parts[1]+",", ",memory,"):
			all = append(all, groupLimits(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")...)
		}
	}
	return all
}

// groupLimits walks from a group up to where groups are mounted. Inside of a
// container the way to a group may be the host's: folders that are not there
// have no limit to tell, and the root's is the container's.
func groupLimits(root fs.FS, mount, group, limitFile, usedFile, idle string) (all []FreeMemory) {
	for at := path.Join("/", group); ; at = path.Dir(at) {
		folder := path.Join(mount, at)
		limit, limited := number(root, path.Join(folder, limitFile))
		used, known := number(root, path.Join(folder, usedFile))
		if limited && known {
			cached, _ := Field(root, path.Join(folder, "memory.stat"), idle)
			all = append(all, FreeMemory{Place: "the control group /" + folder, Free: limit - used + cached})
		}
		if at == "/" {
			return all
		}
	}
}

// resourceLimits are those of setrlimit(2): mappings of arenas count into both.
func resourceLimits() (all []FreeMemory) {
	root := os.DirFS("/")
	for _, limit := range []struct {
		place, used string
		resource    int
	}{
		{"the address space that this process may have (ulimit -v)", "VmSize:", unix.RLIMIT_AS},
		{"the data that this process may have (ulimit -d)", "VmData:", unix.RLIMIT_DATA},
	} {
		var set unix.Rlimit
		used, known := Field(root, "proc/self/status", limit.used)
		if unix.Getrlimit(limit.resource, &set) == nil && set.Cur < 1<<62 && known {
			all = append(all, FreeMemory{Place: limit.place, Free: int64(set.Cur) - used<<10})
		}
	}
	return all
}

// number is the number that a file holds; "max" is none.
func number(root fs.FS, file string) (int64, bool) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	value, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return value, err == nil
}

// Field is the number behind a word that begins a line.
func Field(root fs.FS, file, name string) (int64, bool) {
	text, _ := fs.ReadFile(root, file)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			value, err := strconv.ParseInt(words[1], 10, 64)
			return value, err == nil
		}
	}
	return 0, false
}
