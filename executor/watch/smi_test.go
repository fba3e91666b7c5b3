package watch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor/nvml"
	"github.com/devmap-dev/devmap/fixtures"
)

const twoGPUs = `1, GPU-bb, NVIDIA H200, 143771, 1024, Disabled, 580.1
0, GPU-aa, NVIDIA H200, 143771, 0, Enabled, 580.1
`

func TestParseGPUs(t *testing.T) {
	t.Parallel()
	gpus, used, driver, err := parseGPUs(twoGPUs)
	want := []GPU{{"GPU-aa", "NVIDIA H200", 143771 << 20, true}, {"GPU-bb", "NVIDIA H200", 143771 << 20, false}}
	if !slices.Equal(gpus, want) || !slices.Equal(used, []int64{0, 1 << 30}) || driver != "580.1" || err != nil {
		t.Errorf("%+v, %v, %q, %v", gpus, used, driver, err)
	}
	for text, why := range map[string]string{
		"0, GPU-aa, H200, 1\n":                           "4 columns, not 7",
		"x, GPU-aa, H200, 1, 0, Disabled, 5":             `"x" is no index`,
		"1, GPU-aa, H200, 1, 0, Disabled, 5":             "lists GPU 1 and not GPU 0",
		"0, GPU-aa, H200, [N/A], 0, Disabled, 5":         `"[N/A]" is no count of MiB`,
		"0, GPU-aa, H200, 1, -2, Disabled, 5":            `"-2" is no count`,
		"0, GPU-aa, H200, 9999999999999, 0, Disabled, 5": "is no count",
	} {
		if _, _, _, err := parseGPUs(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseProcesses(t *testing.T) {
	t.Parallel()
	whose, err := parseProcesses("GPU-aa, 12, 300\nGPU-aa, 13, [N/A]\n\nGPU-bb, 12, 5\n")
	if err != nil || !slices.Equal(whose["GPU-aa"], []nvml.Process{{ID: 12, Used: 300 << 20}, {ID: 13, Used: -1}}) || len(whose["GPU-bb"]) != 1 {
		t.Errorf("%v, %v", whose, err)
	}
	for _, text := range []string{"GPU-aa, 12", "GPU-aa, x, 1", "GPU-aa, -4, 1", "GPU-aa, 4, x"} {
		if _, err := parseProcesses(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// FuzzSMI: what nvidia-smi says is refused, or is bytes that can be added up.
func FuzzSMI(f *testing.F) {
	f.Add(twoGPUs)
	f.Add("0, 512")
	f.Add("GPU-aa, 12, 300\nGPU-aa, 13, [N/A]")
	f.Fuzz(func(t *testing.T, text string) {
		gpus, used, _, err := parseGPUs(text)
		if err == nil && len(gpus) != len(used) {
			t.Errorf("%d GPUs, %d readings", len(gpus), len(used))
		}
		for i := range used {
			if used[i] < 0 || gpus[i].Total < 0 {
				t.Errorf("%+v: %d", gpus[i], used[i])
			}
		}
		if index, bytes, err := parseUsed(text, 2); err == nil && (index < 0 || index > 1 || bytes < 0) {
			t.Errorf("%d: %d", index, bytes)
		}
		whose, err := parseProcesses(text)
		for _, processes := range whose {
			for _, process := range processes {
				if err == nil && (process.ID < 0 || process.Used < -1) {
					t.Errorf("%+v", process)
				}
			}
		}
	})
}

// script is a fake nvidia-smi. A process that another test starts meanwhile would inherit the open
// file, and the system does not run a file that is open for writing.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), smiProgram)
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSMI: figures follow what the program says, as long as it says something.
func TestSMI(t *testing.T) {
	t.Parallel()
	path := script(t, `case "$1" in
--query-gpu=index,uuid*) echo '0, GPU-aa, H200, 1000, 1, [N/A], 580.1' ;;
--query-compute-apps*) echo 'GPU-aa, 41, 3' ;;
*) echo '0, 7'; sleep 0.1; echo '0, 9'; sleep 0.1 ;;
esac
`)
	reader := fixtures.Must(openSMI(path, 10*time.Millisecond, time.Hour, smiPatient))(t)
	if source := reader.Source(); source.Name != "nvidia-smi, driver 580.1" || source.GranuleBytes != 1<<20 || source.Interval() != 10*time.Millisecond {
		t.Errorf("%+v", source)
	}
	used := make([]int64, 1)
	if err := reader.Used(used); err != nil || used[0] != 7<<20 && used[0] != 9<<20 {
		t.Errorf("%v, %v", used, err)
	}
	if processes, err := reader.Processes(0); err != nil || !slices.Equal(processes, []nvml.Process{{ID: 41, Used: 3 << 20}}) {
		t.Errorf("%v, %v", processes, err)
	}
	for reader.Used(used) == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := reader.Used(used); err == nil || err.Error() != "nvidia-smi ended" || used[0] != 9<<20 {
		t.Errorf("%v, %v", used, err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

// TestSMIBehindScript: what a script in nvidia-smi's place began, and leaves behind, is
// not waited for.
func TestSMIBehindScript(t *testing.T) {
	t.Parallel()
	path := script(t, `case "$1" in
--query-gpu=index,uuid*) echo '0, GPU-aa, H200, 1000, 1, [N/A], 580.1' ;;
--query-compute-apps*) ;;
*) (while echo '0, 7'; do sleep 0.1; done); exit ;;
esac
`)
	reader := fixtures.Must(openSMI(path, 10*time.Millisecond, time.Hour, smiPatient))(t)
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

func TestNoSMI(t *testing.T) {
	t.Parallel()
	if _, err := openSMI("nvidia-smi-that-is-nowhere", time.Second, time.Second, smiPatient); err == nil || !strings.Contains(err.Error(), "no nvidia-smi either") {
		t.Errorf("%v", err)
	}
	for text, why := range map[string]string{
		"echo 'NVIDIA-SMI has failed'; exit 9": "exit status 9: NVIDIA-SMI has failed",
		"true":                                 "nvidia-smi shows no GPU",
		"echo what":                            `nvidia-smi printed "what"`,
		"case \"$1\" in *uuid*) echo '0, GPU-aa, H200, 1000, 1, [N/A], 580.1' ;; *apps*) ;; *) echo '3, 4' ;; esac": `"3" is none of 1 GPUs`,
	} {
		if _, err := openSMI(script(t, text), time.Second, time.Second, smiPatient); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestStuckSMI: a program that tells nothing ends the waiting, although it does
// not end itself.
func TestStuckSMI(t *testing.T) {
	t.Parallel()
	const patient = 50 * time.Millisecond
	for what, text := range map[string]string{
		"GPUs":     "exec sleep 1000",
		"readings": "case \"$1\" in *uuid,n*) echo '0, GPU-aa, H200, 1000, 1, [N/A], 580.1' ;; *apps*) ;; *) exec sleep 1000 ;; esac",
	} {
		if _, err := openSMI(script(t, text), time.Second, time.Hour, patient); err == nil || !strings.Contains(err.Error(), "nvidia-smi has printed nothing for 50ms: it or the driver is stuck") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
