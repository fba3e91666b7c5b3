package hook

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor/watch"
)

// interpreter returns the Python of the variable PYTHON, or the system's.
func interpreter(t *testing.T) string {
	t.Helper()
	name := os.Getenv("PYTHON")
	if name == "" {
		name = "python3"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no Python here: %v", err)
	}
	if exec.Command(path, "-c", "import sys; sys.exit(sys.version_info < (3, 8))").Run() != nil {
		t.Skipf("%s is older than Python 3.8, which the hook leaves alone", path)
	}
	return path
}

// ran is the result of a script.
type ran struct {
	out, said string // stdout, stderr
	err       error
	processes []watch.Process
}

// run runs a script in Python with a hook, and with further folders in PYTHONPATH.
func run(t *testing.T, snapshot string, flags []string, script string, path ...string) ran {
	t.Helper()
	python := interpreter(t)
	hook, err := New(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	command := exec.Command(python, append(flags, "-c", script)...)
	command.Env, command.Stdout, command.Stderr = hook.Environ(clean(path)), &out, &said
	result := ran{err: command.Run()}
	result.out, result.said = out.String(), said.String()
	if result.processes, err = hook.Read(); err != nil {
		t.Error(err)
	}
	if err := hook.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(hook.folder); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", hook.folder, err)
	}
	return result
}

// clean returns an environment without variables of Python except PYTHONPATH.
func clean(path []string) []string {
	own := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "PYTHON") })
	return append(own, "PYTHONPATH="+strings.Join(path, string(os.PathListSeparator)), "CUDA_VISIBLE_DEVICES=1,0", "PYTHONDONTWRITEBYTECODE=1")
}

// fake returns the folder of the stub torch package.
func fake(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
