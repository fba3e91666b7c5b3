package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
)

func packerOf(folder string) *packer {
	made := &commitMade{version: "1.2.3", when: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
	return &packer{settings: &settings{archives: folder}, made: made}
}

// TestFormula checks that a formula names all archives that exist, with their sums, and no others.
func TestFormula(t *testing.T) {
	packer := packerOf(t.TempDir())
	if err := packer.formula(); err != nil {
		t.Fatal(err)
	}
	if found, _ := os.ReadDir(packer.archives); len(found) > 0 {
		t.Errorf("a formula without an archive: %v", found)
	}
	for _, name := range []string{"linux-amd64.tar.gz", "linux-amd64-cuda.tar.gz", "darwin-arm64.tar.gz"} {
		if err := os.WriteFile(filepath.Join(packer.archives, "devmap-1.2.3-"+name), []byte("packed"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := packer.formula(); err != nil {
		t.Fatal(err)
	}
	text := fixtures.Must(os.ReadFile(filepath.Join(packer.archives, "devmap.rb")))(t)
	// printf packed | sha256sum
	const sum = "\n      sha256 \"88cb8a087b6e8cebfc9ae5602f5a2159a6bcf923e7f2c56809bcda6cad1727a7\"\n"
	want := `  on_macos do
    on_arm do
      url "https://github.com/devmap-dev/devmap/releases/download/v1.2.3/devmap-1.2.3-darwin-arm64.tar.gz"` + sum + `    end
  end

  on_linux do
    on_intel do
      url "https://github.com/devmap-dev/devmap/releases/download/v1.2.3/devmap-1.2.3-linux-amd64.tar.gz"` + sum + `    end
  end
`
	if !strings.Contains(string(text), want) {
		t.Errorf("the formula is\n%s\nwithout\n%s", text, want)
	}
	if ruby, err := exec.LookPath("ruby"); err == nil {
		if said, err := exec.Command(ruby, "-c", filepath.Join(packer.archives, "devmap.rb")).CombinedOutput(); err != nil {
			t.Errorf("ruby -c: %v\n%s", err, said)
		}
	}
}

// TestBill checks the modules and the Go release from a program's build information.
func TestBill(t *testing.T) {
	bom := packerOf("").bill(&debug.BuildInfo{
		GoVersion: "go1.26.0", Main: debug.Module{Path: "example.com/program"},
		Deps: []*debug.Module{{Path: "example.com/library", Version: "v0.1.0"}},
	})
	text := fixtures.Must(json.Marshal(bom))(t)
	var got struct {
		Metadata struct {
			Timestamp string
			Component struct{ Name, Version, Purl string }
		}
		Components   []struct{ Name, Version, Purl string }
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := got
	want.Metadata.Timestamp = "2026-11-22T00:00:00Z"
	want.Metadata.Component = struct{ Name, Version, Purl string }{"example.com/program", "1.2.3", "pkg:golang/example.com/program@1.2.3"}
	want.Components = []struct{ Name, Version, Purl string }{
		{"std", "go1.26.0", "pkg:golang/std@go1.26.0"},
		{"example.com/library", "v0.1.0", "pkg:golang/example.com/library@v0.1.0"},
	}
	want.Dependencies = []struct {
		Ref       string
		DependsOn []string
	}{{want.Metadata.Component.Purl, []string{want.Components[0].Purl, want.Components[1].Purl}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDockerfile runs the steps of docker build as far as possible without Docker. Each RUN line
// runs in the repository, and each file that a stage copies from another one exists afterwards.
func TestDockerfile(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	data := fixtures.Must(os.ReadFile(filepath.Join(root, "Dockerfile")))(t)
	why := fixtures.Must(compilerHere())(t)
	out := t.TempDir()
	copied := 0
	for _, line := range strings.Split(string(data), "\n") {
		if why != "" && strings.Contains(line, "-cuda") {
			t.Logf("skipped, because %s: %s", why, line)
			continue
		}
		line = strings.ReplaceAll(line, "/out/", out+"/")
		if script, found := strings.CutPrefix(line, "RUN "); found {
			// -trimpath changes only paths. Without it, the build reuses the compiled packages of
			// other tests.
			shell := exec.Command("sh", "-ec", strings.ReplaceAll(script, " -trimpath", ""))
			shell.Dir = root
			if said, err := shell.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, said)
			}
		}
		if from := regexp.MustCompile(`^COPY --from=\S+ (\S+) \S+$`).FindStringSubmatch(line); from != nil {
			copied++
			if said, err := exec.Command(from[1], "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(said), "devmap ") {
				t.Errorf("%s: %v\n%s", line, err, said)
			}
		}
	}
	if copied == 0 {
		t.Error("the Dockerfile copies no program")
	}
}
