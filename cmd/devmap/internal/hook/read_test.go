package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

func pythonText(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

func number(t *testing.T, text string) int {
	t.Helper()
	value := fixtures.Must(strconv.Atoi(text))(t)
	return value
}

// written is a file as torchpeaks.py writes it.
const written = `{"pid": 7, "parent": 6, "arguments": ["python", "train.py"], "at": "exit", "begun_seconds": 1.5, "written_seconds": 2.5, "torch": "2.11.0", "allocator": "native", "visible": null,
 "gpus": [{"index": 0, "uuid": "GPU-1", "allocated_peak_bytes": 90, "reserved_peak_bytes": 100, "allocated_bytes": 10, "reserved_bytes": 100, "out_of_memory": 0, "retries": 0}], "failed": null, "snapshot_error": ""}`

// TestParse: a correct file, and the errors for others.
func TestParse(t *testing.T) {
	t.Parallel()
	process, err := parse("7.json", []byte(written))
	if err != nil || process.PID != 7 || process.GPUs[0].AllocatedPeakBytes != 90 {
		t.Fatalf("%+v, %v", process, err)
	}
	for _, is := range [][3]string{
		{`"pid": 7`, `"pid": 0`, `7.json: pid: 0 is no process`},
		{`"exit"`, `"never"`, `at: "never" is not "exit"`},
		{`"retries": 0`, `"retries": -1`, `gpus[0]: -1 is less than nothing`},
		{`: 90`, `: 9`, `gpus[0]: no peak is 9 allocated`},
		{`: 90`, `: 9000000000000000000`, `gpus[0]: no peak is`},
		{`"index": 0`, `"index": -2`, `gpus[0].index: -2 is negative`},
		{`"failed": null`, `"failed": {"index": 0, "wanted_bytes": -7, "free_bytes": 0}`, `failed: -7 bytes on GPU 0`},
		{`"pid"`, `"pod"`, `unknown field "pod"`},
		{`"pid": 7`, `"pid": 7, "pid": 7`, `duplicate`},
	} {
		if _, err := parse("7.json", []byte(strings.Replace(written, is[0], is[1], 1))); err == nil || !strings.Contains(err.Error(), is[2]) {
			t.Errorf("%s: %v, want %s", is[1], err, is[2])
		}
	}
}

// TestRead: a file that no process wrote is reported, and the others are read.
func TestRead(t *testing.T) {
	t.Parallel()
	hook := fixtures.Must(New(""))(t)
	defer hook.Close() //nolint:errcheck // a temporary folder
	for name, text := range map[string]string{"7-1.json": written, "8-1.json": "{", "9-1.json.new": "{"} {
		if err := os.WriteFile(filepath.Join(hook.out(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	processes, err := hook.Read()
	if len(processes) != 1 || err == nil || !strings.Contains(err.Error(), "8-1.json") || strings.Contains(err.Error(), "9-1") {
		t.Errorf("%+v, %v", processes, err)
	}
}

// TestEnviron: the hook comes first in PYTHONPATH, once, with any earlier value.
func TestEnviron(t *testing.T) {
	t.Parallel()
	hook := &Hook{folder: "/folder", snapshot: "/snap"}
	for _, is := range [][2]string{
		{"", "/folder/python"}, {"PYTHONPATH=", "/folder/python"}, {"PYTHONPATH=/a:/b", "/folder/python:/a:/b"},
	} {
		got := strings.Join(hook.Environ([]string{"HOME=/h", is[0], "DEVMAP_WATCH_OUT=/another"}), " ")
		if !strings.Contains(got, " PYTHONPATH="+is[1]+" DEVMAP_WATCH_OUT=/folder/out DEVMAP_WATCH_SNAPSHOT=/snap") || strings.Count(got, "PYTHONPATH") != 1 || strings.Contains(got, "/another") {
			t.Errorf("%s: %s", is[0], got)
		}
	}
}

// FuzzParse: any file is read or refused, and the figures of a file that is read add up.
func FuzzParse(f *testing.F) {
	f.Add([]byte(written))
	f.Add([]byte(`{"pid": 1, "at": "running", "gpus": [{}, {"index": 1, "allocated_peak_bytes": 281474976710656}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		process, err := parse("f.json", data)
		if err != nil {
			return
		}
		var sum int64
		for i := range process.GPUs {
			sum += process.GPUs[i].AllocatedPeakBytes
			if process.GPUs[i].ReservedPeakBytes < 0 || sum < 0 {
				t.Fatalf("%+v", process.GPUs)
			}
		}
	})
}
