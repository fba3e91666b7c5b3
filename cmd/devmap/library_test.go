package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

var programOfPage = regexp.MustCompile("(?s)```go\n(package main\n.*?)```\n(.*?)```text\n(.*?)```\n")

// TestFreshModule builds the program of docs/go.md in a module outside of the repository, without
// the network, and compares its output. UPDATE_GOLDEN=1 rewrites the shown output.
func TestFreshModule(t *testing.T) {
	t.Parallel()
	root := fixtures.Must(filepath.Abs(filepath.Join("..", "..")))(t)
	text := read(t, filepath.Join(root, "docs", "go.md"))
	parts := programOfPage.FindStringSubmatch(text)
	if parts == nil {
		t.Fatal("docs/go.md has no program with its output")
	}
	source, shown := parts[1], parts[3]
	if lines := strings.Count(source, "\n"); lines > 25 {
		t.Errorf("the program has %d lines, want 25 at most", lines)
	}
	dir := t.TempDir()
	module := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(read(t, filepath.Join(root, "go.mod")), "module fresh")
	module += "require github.com/devmap-dev/devmap v0.0.0\nreplace github.com/devmap-dev/devmap => " + root + "\n"
	for name, content := range map[string]string{"go.mod": module, "go.sum": read(t, filepath.Join(root, "go.sum")), "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case string(out) == shown:
	case os.Getenv("UPDATE_GOLDEN") == "1":
		whole := strings.Replace(text, parts[0], strings.Replace(parts[0], "```text\n"+shown, "```text\n"+string(out), 1), 1)
		if err := os.WriteFile(filepath.Join(root, "docs", "go.md"), []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("it prints\n%s\ndocs/go.md shows\n%s", out, shown)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data := fixtures.Must(os.ReadFile(path))(t)
	return string(data)
}
