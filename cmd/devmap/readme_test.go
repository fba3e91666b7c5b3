package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// step is one command of a block of README.md, and the output it shows.
type step struct {
	command, output string
}

var fence = regexp.MustCompile("(?s)```(console|sh|text)\n(.*?)```\n")

// TestDocuments runs the devmap commands of README.md and FORMATS.md, in order,
// in a folder that looks like the repository's, and compares what a console
// block shows and the table of `make demo`. UPDATE_GOLDEN=1 rewrites what is
// shown.
func TestDocuments(t *testing.T) {
	for name, least := range map[string]int{"README.md": 15, "FORMATS.md": 4} {
		t.Run(name, func(t *testing.T) { testDocument(t, name, least) })
	}
}

// testDocument expects at least so many commands.
func testDocument(t *testing.T, name string, least int) {
	t.Helper()
	path := filepath.Join("..", "..", name)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := repository(t)
	ran := 0
	text := fence.ReplaceAllStringFunc(string(old), func(block string) string {
		parts := fence.FindStringSubmatch(block)
		kind, body := parts[1], parts[2]
		switch {
		case kind == "sh":
			ran += runPlain(t, dir, body)
		case kind == "console":
			steps := consoleSteps(body)
			ran += len(steps)
			body = runConsole(t, dir, steps)
		case strings.HasPrefix(body, "qwen2.5-3b"): // what make demo prints
			ran++
			out, err := shell(dir, demo)
			if err != nil {
				t.Errorf("%s: %v", demo, err)
			}
			body = out
		}
		if body == parts[2] {
			return block
		}
		if os.Getenv("UPDATE_GOLDEN") != "1" {
			t.Errorf("it shows\n%s\nit is (UPDATE_GOLDEN=1 rewrites it)\n%s", parts[2], body)
		}
		return "```" + kind + "\n" + body + "```\n"
	})
	if ran < least {
		t.Errorf("only %d commands were found", ran)
	}
	if os.Getenv("UPDATE_GOLDEN") == "1" && text != string(old) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// demo is the first command of the Makefile's demo, without its output file.
const demo = "bin/devmap plan fixtures/models/qwen2.5-3b --gpus 4 --gpu h200-141gb --mode train --batch 4 --seq 2048 -o demo.json"

// repository is a folder with the command in bin and the fixtures, where a
// block may write.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary, err := exec.LookPath("devmap") // TestMain put it there
	if err != nil {
		t.Fatal(err)
	}
	fixtures, err := filepath.Abs(filepath.Join("..", "..", "fixtures"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"bin/devmap": binary, "fixtures": fixtures} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shell runs a command line; its output is stdout and stderr as a terminal
// would show them. HOME is empty: no cache of the user's answers for a name.
func shell(dir, command string) (string, error) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "HF_HOME=", "HF_HUB_CACHE=", "MODELSCOPE_CACHE=", "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var ours = regexp.MustCompile(`^(bin/)?devmap |^cat > \S+ <<`)

// runPlain runs the devmap lines of a block without output; each must succeed.
func runPlain(t *testing.T, dir, body string) (ran int) {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(body, "\\\n", "")) {
		if !ours.MatchString(line) {
			continue
		}
		ran++
		if out, err := shell(dir, line); err != nil {
			t.Errorf("%s%v\n%s", line, err, out)
		}
	}
	return ran
}

// consoleSteps splits a block into its commands and what they show.
func consoleSteps(body string) []step {
	var steps []step
	end := "" // of the here-document that is being read
	for line := range strings.Lines(body) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case end != "":
			last := &steps[len(steps)-1]
			last.command += line
			if strings.TrimSpace(line) == end {
				end = ""
			}
		case isCommand:
			steps = append(steps, step{command: command})
			if _, word, ok := strings.Cut(command, "<<"); ok {
				end = strings.Trim(strings.TrimSpace(word), `'"`)
			}
		case len(steps) > 0:
			steps[len(steps)-1].output += line
		}
	}
	return steps
}

// runConsole is the block as it should be. A command that shows nothing must
// succeed; one that shows a refusal or faults fails as it should.
func runConsole(t *testing.T, dir string, steps []step) string {
	t.Helper()
	var block strings.Builder
	for _, s := range steps {
		block.WriteString("$ " + s.command)
		if !ours.MatchString(s.command) {
			block.WriteString(s.output)
			continue
		}
		out, err := shell(dir, s.command)
		if err != nil && (s.output == "" || out == "") {
			t.Errorf("%s%v\n%s", s.command, err, out)
		}
		block.WriteString(out)
	}
	return block.String()
}
