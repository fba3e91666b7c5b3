package hostmemory

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// files are a machine's, with what a test adds.
func files(added map[string]string) fstest.MapFS {
	root := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\n")}}
	for name, text := range added {
		root[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return root
}

func TestLimits(t *testing.T) {
	machine := FreeMemory{Place: "this machine's memory", Free: 8 << 20}
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []FreeMemory
	}{
		{"no groups", nil, []FreeMemory{machine}},
		{"version 2, a group and its parent", map[string]string{
			"proc/self/cgroup":                      "0::/job/step",
			"sys/fs/cgroup/job/step/memory.max":     "max",
			"sys/fs/cgroup/job/step/memory.current": "1000",
			"sys/fs/cgroup/job/memory.max":          "5000",
			"sys/fs/cgroup/job/memory.current":      "3000",
			"sys/fs/cgroup/job/memory.stat":         "anon 1500\ninactive_file 500\nactive_file 1000",
		}, []FreeMemory{machine, {Place: "the control group /sys/fs/cgroup/job", Free: 2500}}},
		{"version 2 in a container", map[string]string{
			"proc/self/cgroup":             "0::/../../host/path",
			"sys/fs/cgroup/memory.max":     "7000",
			"sys/fs/cgroup/memory.current": "6000",
		}, []FreeMemory{machine, {Place: "the control group /sys/fs/cgroup", Free: 1000}}},
		{"version 1", map[string]string{
			"proc/self/cgroup": "9:name=systemd:/\n5:cpu,memory:/docker/a\n0::/",
			"sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes": "4000",
			"sys/fs/cgroup/memory/docker/a/memory.usage_in_bytes": "5000",
			"sys/fs/cgroup/memory/docker/a/memory.stat":           "inactive_file 1\ntotal_inactive_file 200",
		}, []FreeMemory{machine, {Place: "the control group /sys/fs/cgroup/memory/docker/a", Free: -800}}},
	} {
		if diff := cmp.Diff(test.want, limitsIn(files(test.files))); diff != "" {
			t.Errorf("%s: -want +got\n%s", test.name, diff)
		}
	}
}
