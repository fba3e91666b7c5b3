package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/wheel"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestPythonWheel makes a wheel of this program and installs it with pip into a folder of its own.
// The command line starts, the package plans, and the package of another platform is refused.
func TestPythonWheel(t *testing.T) {
	python := pythonHere(t)
	if said, err := exec.Command(python, "-m", "pip", "--version").CombinedOutput(); err != nil {
		t.Skipf("%s has no pip: %s", python, said)
	}
	program := fixtures.Must(exec.LookPath("devmap"))(t)
	data := fixtures.Must(os.ReadFile(program))(t)
	tags := fixtures.Must(wheel.Platforms(data))(t)
	made := wheel.Wheel{
		Name: "devmap", Distribution: "devmap-gpu", Version: "1.2.3", Summary: "a test", Binary: program, Tags: tags,
		Sources: os.DirFS(filepath.Join("..", "..", "modelgraph", "python")), Time: time.Unix(1.7e9, 0),
	}
	folder, site := t.TempDir(), t.TempDir()
	install := func() (string, error) {
		path := fixtures.Must(made.Write(folder))(t)
		pip := exec.Command(python, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile", "--target", site, path)
		said, err := pip.CombinedOutput()
		return string(said), err
	}
	if said, err := install(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	run := func(name string, arguments ...string) string {
		command := exec.Command(name, arguments...)
		command.Env = append(os.Environ(), "PYTHONPATH="+site, "DEVMAP_BINARY=")
		said, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%s %q: %v\n%s", name, arguments, err, said)
		}
		return string(said)
	}
	if said := run(filepath.Join(site, "bin", "devmap"), "version"); !strings.HasPrefix(said, "devmap ") {
		t.Errorf("devmap version said %q", said)
	}
	if said := run(python, "-c", "import devmap; print(devmap.__version__, len(devmap.plan('gpt2', gpus=2).devices))"); said != "1.2.3 2\n" {
		t.Errorf("a plan from Python said %q", said)
	}
	made.Tags, made.Binary = []string{"macosx_99_0_arm64"}, filepath.Join("testdata", "script", "absurd_counts.txtar")
	if said, err := install(); err == nil || !strings.Contains(said, "is not a supported wheel on this platform") {
		t.Errorf("a wheel of another platform: %v\n%s", err, said)
	}
}
