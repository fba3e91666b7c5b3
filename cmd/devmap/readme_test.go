package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// step is one command of a block, and the output shown for it.
type step struct {
	command, output string
}

var fence = regexp.MustCompile("(?s)```(console|sh|python)\n(.*?)```\n(?:\n```text\n(.*?)```\n)?")

// TestDocuments runs the commands of README.md and of every page in docs. Each page runs in order
// in a folder of its own that has only the fixtures. The output of a console block is compared with
// the block. The output of a Python block is compared with the text block after it. UPDATE_GOLDEN=1
// rewrites the shown output.
func TestDocuments(t *testing.T) {
	ran, all, seen := 0, pages(t), 0
	for _, name := range all {
		t.Run(name, func(t *testing.T) { ran, seen = ran+testPage(t, name), seen+1 })
	}
	if least := 80; ran < least && seen == len(all) {
		t.Errorf("%d commands were found in all pages, want at least %d", ran, least)
	}
}

// pages returns README.md and all pages of docs, as paths in the repository.
func pages(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md"}
	err := fs.WalkDir(os.DirFS(filepath.Join("..", "..")), "docs", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".md") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// testPage returns how many commands a page has.
func testPage(t *testing.T, name string) (ran int) {
	t.Helper()
	path := filepath.Join("..", "..", name)
	old := fixtures.Must(os.ReadFile(path))(t)
	dir := repository(t)
	text := fence.ReplaceAllStringFunc(string(old), func(block string) string {
		parts := fence.FindStringSubmatch(block)
		body, shown := parts[2], parts[2]
		switch parts[1] {
		case "sh":
			ran += runPlain(t, dir, body)
		case "console":
			steps := consoleSteps(body)
			ran += len(steps)
			body = runConsole(t, dir, steps)
		case "python":
			shown = parts[3]
			body = runPython(t, dir, parts[2], shown, strings.Contains(block, "```text\n"))
		}
		if body == shown {
			return block
		}
		if os.Getenv("UPDATE_GOLDEN") != "1" {
			t.Errorf("it shows\n%s\nit is (UPDATE_GOLDEN=1 rewrites it)\n%s", shown, body)
		}
		at := strings.LastIndex(block, "\n"+shown+"```") + 1
		return block[:at] + body + "```\n"
	})
	if os.Getenv("UPDATE_GOLDEN") == "1" && text != string(old) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ran
}

// runPython compiles a Python block, and runs it if it imports only devmap and the standard
// library. It returns the output that the page should show, or nothing if the page has no block for
// it.
func runPython(t *testing.T, dir, source, shown string, shows bool) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		return shown // Go's tests need no Python
	}
	arguments := []string{"-c", "import ast, sys; ast.parse(sys.argv[1])", source}
	runs := imported.MatchString(source) && !foreign.MatchString(source)
	if runs {
		arguments = []string{"-c", source}
	}
	cmd := exec.Command(python, arguments...)
	cmd.Dir = dir
	packages := fixtures.Must(filepath.Abs(filepath.Join("..", "..", "modelgraph", "python")))(t)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1", "DEVMAP_BINARY="+filepath.Join(dir, "bin", "devmap"), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("python3: %v\n%s\n%s", err, source, out)
	case runs && shows:
		return string(out)
	}
	return shown
}

var (
	imported = regexp.MustCompile(`(?m)^(?:import|from) devmap`)
	foreign  = regexp.MustCompile(`(?m)^\s*(?:import|from) (?:torch|transformers|lightning|accelerate|peft|diffusers|devmap\.callbacks)|MODEL`)
)

// repository returns a folder with the command in bin and the fixtures, where a block may write.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary, err := exec.LookPath("devmap") // TestMain put it there
	if err != nil {
		t.Fatal(err)
	}
	fixtures := fixtures.Must(filepath.Abs(filepath.Join("..", "..", "fixtures")))(t)
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

// shell runs a command line. It returns stdout and stderr as a terminal would show them. HOME is
// the given folder, so no cache of the user has a model.
func shell(dir, command string) (string, error) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	if strings.HasPrefix(command, "go test ") { // prints tables of measurements
		cmd.Dir = filepath.Join("..", "..")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	cmd.Env = append(os.Environ(), "HOME="+dir, "HF_HOME=", "HF_HUB_CACHE=", "MODELSCOPE_CACHE=", "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var ours = regexp.MustCompile(`^(?:bin/)?devmap |^cat > \S+ <<|^mkdir -p `)

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

// consoleSteps splits a block into its commands and their shown output.
func consoleSteps(body string) []step {
	var steps []step
	end := "" // the end of the current here-document
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

// refused matches the output of a command that fails as its page shows: an error, or the number of
// faults of a map or a program.
var refused = regexp.MustCompile(`(?m)^devmap: |^\d+ (?:faults?|errors?)$`)

// runConsole returns the block with the current output. A command without shown output must
// succeed. One that shows an error or faults must fail.
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
		if err != nil && (out == "" || !refused.MatchString(s.output)) {
			t.Errorf("%s%v\n%s", s.command, err, out)
		}
		block.WriteString(out)
	}
	return block.String()
}
