package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// pythonHere returns a Python for the package: the one of the variable PYTHON, or the system's.
func pythonHere(t *testing.T) string {
	t.Helper()
	name := os.Getenv("PYTHON")
	if name == "" {
		name = "python3"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no Python here: %v", err)
	}
	if exec.Command(path, "-c", "import sys; sys.exit(sys.version_info < (3, 9))").Run() != nil {
		t.Skipf("%s is older than Python 3.9, which devmap's package needs", path)
	}
	return path
}

// TestPython runs the Python package's tests that need no torch, with this build of the program.
func TestPython(t *testing.T) {
	python := pythonHere(t)
	program, err := exec.LookPath("devmap") // TestMain makes this test a program of that name
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Abs(filepath.Join("..", "..", "modelgraph", "python"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(python, "-W", "error", "-m", "unittest", "discover", "-s", filepath.Join(sources, "tests"))
	command.Env = append(os.Environ(), "PYTHONPATH="+sources, "DEVMAP_BINARY="+program, "PYTHONDONTWRITEBYTECODE=1", "DEVMAP_SLOW=20")
	if said, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
