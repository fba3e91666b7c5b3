package hook

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor/watch"
)

// TestPeaks: the peaks of a process, for each kind of end. The peak of 700 bytes is before the
// reset, and the script prints the figure after the reset. wait returns after the hook wrote the last
// figure.
func TestPeaks(t *testing.T) {
	t.Parallel()
	const script = `
import glob, os, signal, sys, time, torch
from torch.cuda import reset_peak_memory_stats
def wait():
    while not any('_peak_bytes": 50,' in open(name).read() for name in glob.glob(os.environ["DEVMAP_WATCH_OUT"] + "/*.json")): time.sleep(0.01)
torch._C.allocate(300); torch._C.allocate(400); torch._C.release(600)
print(reset_peak_memory_stats(0), torch.cuda.memory.max_memory_allocated())
torch._C.allocate(50, 1); sys.stdout.flush()
`
	for name, is := range map[string]struct {
		script, said string
		at           watch.Moment
		failed       int64
	}{
		"exit":          {"", "", watch.AtExit, 0},
		"exit status":   {"sys.exit(3)", "", watch.AtExit, 0},
		"error":         {"raise KeyError(7)", "KeyError: 7", watch.AtExit, 0},
		"_exit":         {"os._exit(status=0)", "", watch.AtExit, 0},
		"killed":        {"wait(); os.kill(os.getpid(), signal.SIGKILL)", "", watch.WhileRunning, 0},
		"terminated":    {"wait(); os.kill(os.getpid(), signal.SIGTERM)", "", watch.WhileRunning, 0},
		"another":       {"wait(); os.execv('/bin/true', ['true'])", "", watch.WhileRunning, 0},
		"out of memory": {"torch._C.allocate(2000)", "OutOfMemoryError", watch.AtOutOfMemory, 1},
		"of memory": {`
try: torch._C.allocate(2000)
except RuntimeError as err: raise ValueError("too large") from err`, "ValueError: too large", watch.AtOutOfMemory, 1},
		"smaller then": {`
try: torch._C.allocate(2000)
except torch.OutOfMemoryError: torch._C.allocate(100)`, "", watch.AtExit, 1},
		"killed over it": {`
try: torch._C.allocate(2000)
except torch.OutOfMemoryError: os.kill(os.getpid(), signal.SIGKILL)`, "", watch.WhileRunning, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := run(t, "", nil, script+is.script, fake(t))
			if ran.out != "None 100\n" || !strings.Contains(ran.said, is.said) || is.said == "" && ran.said != "" {
				t.Fatalf("%v: %q, %q", ran.err, ran.out, ran.said)
			}
			if len(ran.processes) != 1 {
				t.Fatalf("%+v", ran.processes)
			}
			process := ran.processes[0]
			if process.At != is.at || process.Torch != "0.0+fake" || process.Allocator != "native" || *process.Visible != "1,0" || process.StartSeconds == nil || *process.StartSeconds > process.WrittenSeconds {
				t.Errorf("%+v", process)
			}
			if len(process.GPUs) != 2 || process.GPUs[0].UUID != "GPU-00000000-0000-0000-0000-000000000000" || process.GPUs[0].AllocatedPeakBytes != 700 || process.GPUs[0].ReservedPeakBytes < 700 || process.GPUs[1].AllocatedPeakBytes != 50 || process.GPUs[0].OutOfMemory != is.failed {
				t.Errorf("%+v", process.GPUs)
			}
			if want := (watch.FailedAllocation{Index: 0, WantedBytes: 2000, FreeBytes: 900}); is.failed > 0 && (process.Failed == nil || *process.Failed != want) || is.failed == 0 && process.Failed != nil {
				t.Errorf("%+v", process.Failed)
			}
		})
	}
}

// TestChildren: each process of a tree writes a file of its own, for all ways to start it. A forked
// process that never used the GPU writes none.
func TestChildren(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tree.py")
	script := `
import multiprocessing, os, sys, torch
def child(size):
    torch._C.allocate(size)
    print(size, os.getpid(), flush=True)
def loads(): pass
if __name__ == "__main__":
    for how, size in (("fork", 10), ("spawn", 20), ("forkserver", 30)):
        process = multiprocessing.get_context(how).Process(target=child, args=(size,))
        process.start(); process.join()
    torch._C.allocate(40); print(40, os.getpid(), flush=True)
    process = multiprocessing.get_context("fork").Process(target=loads)
    process.start(); process.join()
`
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := run(t, "", nil, "import subprocess, sys; sys.exit(subprocess.call([sys.executable, "+pythonText(file)+"]))", fake(t))
	if ran.err != nil {
		t.Fatal(ran.err, ran.said)
	}
	peaks := make(map[int]int64) // by process
	for i := range ran.processes {
		if len(ran.processes[i].GPUs) > 0 {
			peaks[ran.processes[i].PID] = ran.processes[i].GPUs[0].AllocatedPeakBytes
		}
	}
	lines := strings.Fields(ran.out)
	if len(lines) != 8 || len(peaks) != 4 || len(ran.processes) != 4 {
		t.Fatalf("%q, %v", ran.out, ran.processes)
	}
	for i := 0; i < len(lines); i += 2 {
		pid, size := number(t, lines[i+1]), int64(number(t, lines[i]))
		if peaks[pid] != size {
			t.Errorf("process %d: %d, want %d", pid, peaks[pid], size)
		}
	}
}

// TestOwn: modules of the command with the same name run as without the hook.
func TestOwn(t *testing.T) {
	t.Parallel()
	own := t.TempDir()
	const script = "import sys; print([entry for entry in sys.path], getattr(sys.modules.get('sitecustomize'), '__file__', 'none')); import sitecustomize; print('there')"
	for _, is := range []struct{ site, user, want string }{
		{"", "", "ModuleNotFoundError: No module named 'sitecustomize'"},
		{"print('own')", "print('user')", "own"},
		{"raise ValueError('its fault')", "print('user')", "ValueError: its fault"},
		{"import torch; print(torch._C.allocate(7))", "", "there"},
	} {
		for name, text := range map[string]string{"sitecustomize.py": is.site, "usercustomize.py": is.user} {
			path := filepath.Join(own, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if text == "" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		var out, said bytes.Buffer
		command := exec.Command(interpreter(t), "-c", script)
		command.Env, command.Stdout, command.Stderr = clean([]string{own, fake(t)}), &out, &said
		_ = command.Run() // its output has the status
		ran := run(t, "", nil, script, own, fake(t))
		if ran.out != out.String() || ran.said != said.String() || !strings.Contains(ran.out+ran.said, is.want) {
			t.Errorf("%q:\n%s%s\nwithout the hook:\n%s%s", is.site, ran.out, ran.said, &out, &said)
		}
		if torch := strings.Contains(is.site, "torch"); torch != (len(ran.processes) == 1 && ran.processes[0].GPUs[0].AllocatedPeakBytes == 7) {
			t.Errorf("%q: %+v", is.site, ran.processes)
		}
	}
}

// TestImports: torch is imported as usual, by any finder.
func TestImports(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]struct {
		flags        []string
		script, want string
		peaks        int
	}{
		"never":      {nil, "import sys; print(type(sys.meta_path[0]).__name__, '_devmap_torchpeaks' in sys.modules, 'json' in sys.modules)", "Finder False False\n", 0},
		"looked for": {nil, "import importlib.util; print(importlib.util.find_spec('torch').name)", "torch\n", 0},
		"loader":     {nil, "import sys, torch; print(vars(torch.__spec__.loader).keys(), [finder for finder in sys.meta_path if type(finder).__name__ == 'Finder']); torch._C.allocate(1)", "dict_keys(['name', 'path']) []\n", 1},
		"isolated":   {[]string{"-I"}, "print(1)", "1\n", 0},
		"no site":    {[]string{"-S"}, "import torch; torch._C.allocate(1); print(1)", "1\n", 0},
		"failed once": {nil, `
import sys
sys.modules["torch._C"] = None
try: import torch
except ImportError: print("no")
del sys.modules["torch._C"]
import torch
torch._C.allocate(1)`, "no\n", 1},
		"past the finder": {nil, `
import sys
del sys.meta_path[0]
import torch
torch._C.allocate(1)`, "", 1},
		"a folder": {nil, `
import os, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    os.mkdir(os.path.join(folder, "torch"))
    sys.path[:] = [folder]
    import torch
    print(torch.__spec__.origin)`, "None\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := run(t, "", is.flags, is.script, fake(t))
			if ran.err != nil || ran.out != is.want || ran.said != "" || len(ran.processes) != is.peaks {
				t.Errorf("%v: %q, %q, %+v", ran.err, ran.out, ran.said, ran.processes)
			}
			for i := range ran.processes {
				if ran.processes[i].GPUs[0].AllocatedPeakBytes != 1 {
					t.Errorf("%+v", ran.processes[i])
				}
			}
		})
	}
}

// TestSnapshot: one file of torch's own per process. A note tells if this torch cannot write it.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const script = `
import os, torch
torch._C.allocate(1); print(torch.cuda.memory.recorded, os.getpid())
torch._C.allocate(5000)`
	ran := run(t, filepath.Join(folder, "memory.pickle"), nil, script, fake(t))
	pid := strings.Fields(ran.out)
	if len(pid) != 3 || pid[0]+pid[1] != "[('python',100000)]" {
		t.Fatalf("%v: %q, %q", ran.err, ran.out, ran.said)
	}
	for _, name := range []string{"memory." + pid[2] + ".pickle", "memory." + pid[2] + ".oom.pickle"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	if hook, err := New(filepath.Join(folder, "none", "memory.pickle")); err == nil || !strings.Contains(err.Error(), "there is no folder") {
		t.Errorf("%v, %v", hook, err)
	}
	if ran = run(t, filepath.Join(folder, "memory.pickle"), nil, "import torch; del torch.cuda.memory._record_memory_history; torch._C.allocate(1)", fake(t)); len(ran.processes) != 1 || !strings.HasPrefix(ran.processes[0].SnapshotError, "AttributeError: ") {
		t.Errorf("%+v", ran.processes)
	}
	ran = run(t, "", nil, "import torch; torch._C.allocate(1); del torch.cuda.memory.memory_stats_as_nested_dict", fake(t))
	if len(ran.processes) != 1 || ran.processes[0].StartSeconds == nil || len(ran.processes[0].GPUs) != 0 {
		t.Errorf("%+v", ran.processes)
	}
}

// TestTorch: PyTorch itself, if this Python has it, imports and compiles as usual.
func TestTorch(t *testing.T) {
	t.Parallel()
	if err := exec.Command(interpreter(t), "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)").Run(); err != nil {
		t.Skip("this Python has no torch")
	}
	ran := run(t, "", nil, `
import torch
print(torch.cuda.is_initialized(), torch.compile(lambda x: 2 * x, backend="eager", fullgraph=True)(torch.ones(1)).item())`)
	if ran.err != nil || ran.out != "False 2.0\n" || len(ran.processes) != 1 || len(ran.processes[0].GPUs) != 0 || !strings.HasPrefix(ran.processes[0].Torch, "2.") {
		t.Errorf("%v: %q, %q, %+v", ran.err, ran.out, ran.said, ran.processes)
	}
}
