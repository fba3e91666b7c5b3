package emit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/emit"
)

// words are those of a command line, as a shell reads them.
func words(t *testing.T, folder, line string) []string {
	t.Helper()
	command := exec.Command("sh", "-c", "show() { for word; do printf '%s\\0' \"$word\"; done; }; show "+line)
	command.Dir = folder
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// TestServeFromFolders: serve.sh finds the model from any folder, also if its own has a name with blanks
// or is a link, and starts the server with the flags of the plan.
func TestServeFromFolders(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"models of mine", "jobs/my job", "bin"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("models of mine/tiny.gguf", "")
	put("bin/llama-server", "#!/bin/sh\n[ \"$1\" = -m ] && [ -f \"$2\" ] && shift 2 && echo \"$@\"\n")
	if err := os.Symlink(filepath.Join(root, "jobs", "my job"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	input, serve := golden(t, "llama.cpp"), target(t, "llama.cpp")
	t.Chdir(root)
	for _, output := range []string{"serve.sh", "jobs/my job/serve.sh", "link/other.sh"} {
		input.Plan.Model.Source, input.Output = "models of mine/tiny.gguf", output
		text := fixtures.Must(written(serve, input))(t)
		put(output, text)
		for _, from := range []string{root, "/", filepath.Join(root, "bin")} {
			command := exec.Command("sh", filepath.Join(root, output), "--port", "8081")
			command.Dir, command.Env = from, []string{"PATH=" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH"), "CDPATH=/tmp"}
			out, err := command.CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), "-c 131072 -np 1 ") || !strings.HasSuffix(string(out), " --port 8081\n") {
				t.Errorf("%s from %s: %v, %s", output, from, err, out)
			}
		}
	}
}

// TestLlamaForms: llama-swap's command and the container's are llama-server's own flags. Files are
// those of the plan.
func TestLlamaForms(t *testing.T) {
	input := golden(t, "llama.cpp-draft")
	input.Plan.Workload.MMProj = "../a b/$HOME.gguf"
	script := fixtures.Must(written(target(t, "llama.cpp"), input))(t)
	_, line, _ := strings.Cut(script, "exec llama-server ")
	want := words(t, t.TempDir(), strings.ReplaceAll(strings.TrimSuffix(line, " \"$@\"\n"), `"$HERE/"`, "./"))
	want[slices.Index(want, "--mmproj")+1] = "../a b/$HOME.gguf"

	text := fixtures.Must(written(target(t, "llama-swap"), input))(t)
	var swap struct {
		Models map[string]struct{ Cmd string }
	}
	if err := yaml.Unmarshal([]byte(text), &swap); err != nil {
		t.Fatal(err)
	}
	if got := words(t, t.TempDir(), strings.ReplaceAll(swap.Models["tiny"].Cmd, "${PORT}", "9")); !slices.Equal(got[3:], want) || got[2] != "9" {
		t.Errorf("llama-swap: %q, want %q", got, want)
	}

	text = fixtures.Must(written(target(t, "docker-compose"), input))(t)
	var compose struct {
		Services map[string]struct {
			Command []string
			Volumes []struct{ Source, Target string }
		}
	}
	if err := yaml.Unmarshal([]byte(text), &compose); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "$$HOME.gguf") || strings.Contains(strings.ReplaceAll(text, "$$", ""), "$") {
		t.Errorf("docker-compose reads a variable in %s", text)
	}
	service := compose.Services["llama-server"]
	got := service.Command[4:]
	for i, word := range got {
		for _, volume := range service.Volumes {
			if rest, is := strings.CutPrefix(word, volume.Target+"/"); is {
				got[i] = strings.ReplaceAll(volume.Source+"/"+rest, "$$", "$")
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docker-compose: %q, want %q", got, want)
	}
}

// TestOllama: what a Modelfile has no form for is refused.
func TestOllama(t *testing.T) {
	for want, change := range map[string]func(input *emit.Input){
		"experts on the host": func(input *emit.Input) { input.Plan.Workload.HostExperts = 1 },
		"a draft":             func(input *emit.Input) { input.Plan.Workload.Draft = "x.gguf" },
		"cache of type q5_1":  func(input *emit.Input) { input.Plan.Workload.KVType = "q5_1" },
		"quotes":              func(input *emit.Input) { input.Plan.Model.Source = `a".gguf` },
	} {
		input := golden(t, "llama.cpp")
		change(input)
		if text, err := written(target(t, "ollama"), input); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v with %q, want %s", err, text, want)
		}
	}
	input := golden(t, "llama.cpp")
	if text, err := written(target(t, "ollama"), input); err != nil || !strings.Contains(text, "\nFROM ./tiny.gguf\nPARAMETER num_ctx 131072\nPARAMETER num_batch 512\nPARAMETER num_gpu 5\n") {
		t.Errorf("%s, %v", text, err)
	}
}
