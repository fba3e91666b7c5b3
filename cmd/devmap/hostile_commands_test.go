package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/emit"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// commandNames lists names of files that run as code if they are not quoted.
var commandNames = []string{"a b", "$(touch PWN)", "`touch PWN`", "x\ntouch PWN\n#", "'; touch PWN; '", `"; touch PWN; "`, "-rf", "\u202e; touch PWN"}

// TestPrintedCommands runs commands for hostile names that emit, watch and proposed changes print.
// A shell reads each name as one word.
func TestPrintedCommands(t *testing.T) {
	folder, bin := t.TempDir(), t.TempDir()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	t.Chdir(folder)
	for _, command := range []string{"swift", "devmap", "torchrun", "python3", "sh"} {
		write(t, filepath.Join(bin, command), "#!"+shell+"\nfor a in \"$@\"; do printf '<%s>' \"$a\"; done\n")
		if err := os.Chmod(filepath.Join(bin, command), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runs := func(command, want string) {
		t.Helper()
		if strings.ContainsFunc(command, func(char rune) bool { return unicode.IsControl(char) || unicode.Is(unicode.Bidi_Control, char) }) {
			t.Errorf("%q steers a terminal", command)
		}
		cmd := exec.CommandContext(t.Context(), shell, "-c", command)
		cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		read, err := cmd.CombinedOutput()
		if _, pwned := os.Stat("PWN"); pwned == nil {
			t.Fatalf("it ran a name: %s", command)
		}
		if err != nil || !strings.Contains(string(read), want) {
			t.Errorf("%v: %s has no %q in %q", err, command, want, read)
		}
	}
	commands := 0
	for _, target := range emit.Targets() {
		for _, name := range commandNames {
			command, isShell := emitted(t, target, name)
			want := name + ">"
			if target.OnlyFolder {
				command, _, _ = strings.Cut(command, ", or there ")
				want = name + "/run.sh>"
				if name[0] == '-' { // no flag
					want = "<./" + want
				}
			}
			if isShell {
				runs(command, want)
				commands++
			}
		}
	}
	if targets := 5; commands < targets*len(commandNames) {
		t.Errorf("%d commands of a shell were printed, of %d targets", commands, targets)
	}
	for _, name := range commandNames {
		var stdout, stderr bytes.Buffer
		run(t.Context(), []string{"watch", "plan.json" + name, name}, &stdout, &stderr)
		_, command, found := strings.Cut(stderr.String(), "as in ")
		command, _, closed := strings.Cut(command, " (devmap help watch)")
		if name[0] == '-' { // a flag of watch
			continue
		}
		if !found || !closed {
			t.Fatalf("no command in %s", stderr.String())
		}
		runs(command, "<plan.json"+name+"><--><"+name+">")
		change := &strategy.Change{Set: []costmodel.Setting{costmodel.Set("pin", name)}}
		runs("devmap "+ask.ChangeText(change), "<--pin><"+name+">")
		runs("devmap "+ask.Say(change.Set[0]), "<--pin><"+name+">")
	}
}

// TestNextCommands runs the "Next: " lines of plan and estimate for folders and files with hostile
// names. A shell reads each name as one word, and one command.
func TestNextCommands(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	folder, bin := t.TempDir(), t.TempDir()
	t.Chdir(folder)
	for _, command := range []string{"devmap", "hf", "swift", "sh"} {
		write(t, filepath.Join(bin, command), "#!"+shell+"\nfor a in \"$@\"; do printf '<%s>' \"$a\"; done\n")
		if err := os.Chmod(filepath.Join(bin, command), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lines := 0
	for _, name := range commandNames {
		name = "x" + name // no flag
		write(t, filepath.Join(name, "config.json"), damagedConfig)
		for _, args := range [][]string{
			{"plan", name, "--gpus", "2", "-o", name + ".json"},
			{"plan", name, "--gpus", "2", "--mode", "train", "--strategy", "pipeline", "--batch", "2", "--micro-batches", "2", "-o", name + ".json"},
			{"estimate", name, "--gpus", "2", "--mode", "train"},
		} {
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), args, &stdout, &stderr); status != 0 {
				t.Fatalf("%q: status %d: %s", args, status, stderr.String())
			}
			for line := range strings.Lines(stdout.String() + stderr.String()) {
				command, found := strings.CutPrefix(line, "Next: ")
				if !found {
					continue
				}
				lines++
				if strings.ContainsFunc(strings.TrimSuffix(command, "\n"), func(char rune) bool { return unicode.IsControl(char) || unicode.Is(unicode.Bidi_Control, char) }) {
					t.Errorf("%q steers a terminal", command)
				}
				cmd := exec.CommandContext(t.Context(), shell, "-c", command)
				cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
				read, err := cmd.CombinedOutput()
				if _, pwned := os.Stat("PWN"); pwned == nil {
					t.Fatalf("it ran a name: %s", command)
				}
				if err != nil || !strings.Contains(string(read), "<"+name) {
					t.Errorf("%v: %s has no %q in %q", err, command, name, read)
				}
			}
		}
	}
	if lines == 0 {
		t.Skip("no command says what is next")
	}
}

// emitted plans a target's example under a hostile name and emits it to a file of that name. It
// returns the printed command, and if that is for a shell.
func emitted(t *testing.T, target *emit.Target, name string) (command string, isShell bool) {
	t.Helper()
	arguments := strings.Fields(target.Example)
	isFlux := arguments[0] == "flux"
	if isFlux {
		arguments[0] = "flux" + name
		write(t, filepath.Join(arguments[0], "model_index.json"), `{"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"]}`)
		write(t, filepath.Join(arguments[0], "transformer", "config.json"), `{"_class_name": "FluxTransformer2DModel", "guidance_embeds": true}`)
	}
	if strings.HasSuffix(arguments[0], ".gguf") {
		tinyGGUF(t, ".")
	}
	plan := "plan of " + target.Name
	if _, err := os.Stat(plan); err != nil || isFlux {
		devmap(t, 0, append([]string{"plan", "-o", plan}, arguments...)...)
	}
	renamed := plan + name
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	document["model"].(map[string]any)["name"] = name //nolint:errcheck // every plan has one
	if text, err = json.Marshal(document); err != nil {
		t.Fatal(err)
	}
	write(t, renamed, string(text))
	if err := os.RemoveAll(name); err != nil { // another target's file or folder
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	output := name
	if name[0] == '-' { // no flag
		output = "./" + name
	}
	if status := run(t.Context(), []string{"emit", "--for", target.Name, "-o", output, renamed}, &stdout, &stderr); status != 0 {
		t.Fatalf("%s, %q: status %d: %s", target.Name, name, status, stderr.String())
	}
	for line := range strings.Lines(stderr.String()) {
		if after, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), target.Name+": "); found {
			command = after
		}
	}
	if _, after, found := strings.Cut(command, "checked: "); found {
		command = after
	}
	for _, first := range []string{"sh ", "swift ", "devmap ", "python3 ", "torchrun "} {
		isShell = isShell || strings.HasPrefix(command, first)
	}
	return command, isShell
}
