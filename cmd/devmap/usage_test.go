package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/fixtures"
)

// helpOf returns the text of devmap help for a command.
func helpOf(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	var text bytes.Buffer
	cmd.SetOut(&text)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestHelp: texts of help fit 80 columns and all lines 100. Every visible flag is in a group,
// begins its line as typed, and has at most 60 characters of explanation.
func TestHelp(t *testing.T) {
	root := newRoot(worker.Self{})
	for _, cmd := range append(root.Commands(), root) {
		help := helpOf(t, cmd)
		text, _, _ := strings.Cut(help, "\nUsage:\n")
		for width, part := range map[int]string{80: text, 100: help} {
			for _, line := range strings.Split(part, "\n") {
				if len([]rune(line)) > width {
					t.Errorf("%s: %d columns, not %d: %s", cmd.Name(), len([]rune(line)), width, line)
				}
			}
		}
		if strings.Contains(help, "\nOther:\n   ") {
			t.Errorf("%s: a flag is in no group: %s", cmd.Name(), help)
		}
		if !cmd.Runnable() {
			continue
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Hidden || flag.Name == "help" {
				return
			}
			if len([]rune(flag.Usage)) > 60 || flag.Usage == "" {
				t.Errorf("%s: --%s: %d characters of help: %s", cmd.Name(), flag.Name, len([]rune(flag.Usage)), flag.Usage)
			}
			if !regexp.MustCompile(`(?m)^  (    |-\w, )--` + flag.Name + `( \S+)?\s+\S`).MatchString(help) {
				t.Errorf("%s: --%s is not in its help", cmd.Name(), flag.Name)
			}
		})
	}
}

// TestHelpNames: the topics and texts name every value of their flags.
func TestHelpNames(t *testing.T) {
	root := newRoot(worker.Self{})
	for topic, name := range map[string]string{
		"precision": "precision", "strategies": "strategy", "optimizers": "optimizer", "offload": "offload", "plan": "objective", "presets": "preset",
	} {
		cmd, _, err := root.Find([]string{topic})
		if err != nil {
			t.Fatal(err)
		}
		help := helpOf(t, cmd)
		for _, value := range ask.Values(name) {
			if !strings.Contains(help, value) {
				t.Errorf("devmap help %s does not name --%s %s", topic, name, value)
			}
		}
	}
}

// failing lists calls that fail, each in another way.
var failing = `
check toy.json nope.json
check toy.json .
emit nope.json --for accelerate
emit plan.json --for acelerate
emit plan.json --for accelerate -o nofolder/file
emit ddp.json --for accelerate -o out.json
simulate nope.json
simulate ddp.json
run nope.json
run plan.json --fault x
run plan.json --tokens nope
run plan.json --resume nope
watch nope.json -- true
watch -- nosuchcommand
watch a b
plan nope.json --gpus 2
plan toy.json
plan toy.json --gpus 2 --ds-config nope.json
plan toy.json --topology nope.json
plan toy.json --topology toy.json
plan toy.json --gpus 2 --reserve 200GiB
plan toy.json --gpus 0
plan toy.json --gpus 1GiB,x
plan toy.json --gpus 2 --strategy ddp --runtime accelerate
plan toy.json --gpus 2 --strategy pipeline --runtime accelerate
plan toy.json --gpus 2 --runtime megatron
plan toy.json --gpus 2 --pin x=1
plan toy.json --gpus 2 --pin h.0=7
plan toy.json --gpus 2 --batch x
plan toy.json --gpus 2 --time-limit 3
plan toy.json --gpus 2 --precision bf16
plan toy.json --gpus 2 --nosuch
plan toy.json --gpus 2 -o nofolder/file
plan toy.json --gpus 1MiB
estimate toy.json --gpus 2 --strategy ddp --runtime accelerate
inspect nope
version x
nosuch
`

// goisms matches texts only for Go programmers: system calls, printed slices and nil.
var goisms = regexp.MustCompile(`(stat|lstat|open|readlink|mkdir) \S*nope|writing "|devices\[\d+\]:|\[[a-z][a-z ]* [a-z]+\]|<nil>|%!|strconv|goroutine|pflag|0x[0-9a-f]{6}|&\{|map\[`)

// TestFailures: errors have no Go values and no system calls.
func TestFailures(t *testing.T) {
	toy := fixtures.Must(filepath.Abs(filepath.Join("testdata", "toy.json")))(t)
	t.Chdir(t.TempDir())
	data := fixtures.Must(os.ReadFile(toy))(t)
	if err := os.WriteFile("toy.json", data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"plan toy.json --gpus 2 --mode load -q -o plan.json", "plan toy.json --gpus 2 --mode train --strategy ddp -q -o ddp.json"} {
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), strings.Fields(words), &stdout, &stderr); status != 0 || stderr.Len() > 0 || stdout.Len() > 0 {
			t.Fatalf("devmap %s: %d, %s%s", words, status, &stdout, &stderr)
		}
	}
	for words := range strings.Lines(strings.TrimSpace(failing)) {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), strings.Fields(words), &stdout, &stderr)
		errors := stderr.String()
		if i := strings.Index(errors, "devmap: "); status == 0 || i < 0 {
			t.Errorf("devmap %s: status %d: %s", words, status, errors)
		}
		if found := goisms.FindString(errors); found != "" {
			t.Errorf("devmap %s: %q in %s", words, found, errors)
		}
	}
}
