package hostmemory

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits returns the memory limits of this process.
func Limits() []FreeMemory {
	return append(limitsIn(os.DirFS("/")), resourceLimits()...)
}

// limitsIn reads limits from files. The first is what the kernel can allocate without swapping
// (proc_meminfo(5), MemAvailable). The others are what is left to every control group from the
// process's own to the root. Cached pages of files count as free, as they can be evicted.
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

// groupLimits walks from a group up to the mount point of groups. Inside a container the group's
// path may be the host's. Folders that do not exist then have no limit, and the root's is the
// container's.
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

// resourceLimits returns the limits of setrlimit(2). Mappings of arenas count into both.
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

// number returns the number in a file, and false for "max".
func number(root fs.FS, file string) (int64, bool) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	value, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return value, err == nil
}

// Field returns the number after the first word of a line, in the file's unit.
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
