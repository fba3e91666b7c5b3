package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/emit"
)

// TestEmitExamples: the help of emit has an example for every engine, and each runs
// with a plan for that engine and writes what it says.
func TestEmitExamples(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "flux", "model_index.json"), `{"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"]}`)
	write(t, filepath.Join(folder, "flux", "transformer", "config.json"), `{"_class_name": "FluxTransformer2DModel", "guidance_embeds": true}`)
	tinyGGUF(t, folder)
	examples := strings.Split(newEmit().Example, "\n")
	if len(examples) != len(emit.Targets()) {
		t.Fatalf("%d examples for %d engines", len(examples), len(emit.Targets()))
	}
	for i, target := range emit.Targets() {
		example, run, _ := strings.Cut(strings.TrimSpace(examples[i]), " && ")
		if example != "devmap emit plan.json --for "+target.Name+" -o "+target.File || run != target.Run {
			t.Errorf("the example for %s is %q", target.Name, examples[i])
		}
		for _, command := range []string{"devmap plan " + target.Example + " -o plan.json", example} {
			run := exec.CommandContext(t.Context(), "sh", "-c", command)
			run.Dir = folder
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
		}
		name := target.File
		if target.OnlyFolder {
			name += "/run.sh"
		}
		if written, err := os.ReadFile(filepath.Join(folder, name)); err != nil || len(written) == 0 {
			t.Errorf("%s: %d bytes, %v", example, len(written), err)
		}
	}
}

// tinyGGUF puts a small GGUF file into a folder.
func tinyGGUF(t *testing.T, folder string) {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	data, err := os.ReadFile(filepath.Join(filepath.Dir(here), "..", "..", "fixtures", "gguf", "tiny.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "tiny.gguf"), string(data))
}

// TestEmitLists: help, completion and errors list every engine, and an alias is
// answered with the engine's name. Help is the registry's and these lines.
func TestEmitLists(t *testing.T) {
	var names, helps []string
	for _, target := range emit.Targets() {
		names = append(names, target.Name)
		if target.Help != "" {
			helps = append(helps, target.Help+"\n\n")
		}
	}
	list := strings.Join(names, ", ")
	says := func(want string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		run(t.Context(), args, &stdout, &stderr)
		if !strings.Contains(stdout.String()+stderr.String(), want) {
			t.Errorf("devmap %s: no %q in\n%s%s", strings.Join(args, " "), want, stdout.String(), stderr.String())
		}
	}
	says("Write a plan in the form that an engine reads.\n\n"+strings.Join(helps, "")+`Usage:
  devmap emit PLAN --for ENGINE [flags]

Examples:
`+newEmit().Example+`

Input:
      --for ENGINE               Engine that reads the file; the examples list all
      --model MODEL              Folder or file of the model [as in the plan]
      --transformers RELEASE     Release of Transformers, as 5.20 [the config's]

Output:
  -o, --output FILE              Write to FILE, atomically [standard output]
      --force                    Replace existing files
      --json                     Write the program as JSON (--for program)
`, "emit", "--help")
	says(strings.Join(names, "\n")+"\n", "__complete", "emit", "plan.json", "--for", "")
	says("--for is needed, as in: --for "+names[0]+" (known: "+list+")", "emit", "plan.json")
	says(`--for: unknown engine "nothing" (built: `+list+")\n", "emit", "plan.json", "--for", "nothing")
	for _, target := range emit.Targets() {
		for _, alias := range target.Aliases {
			says("did you mean "+target.Name+"?", "emit", "plan.json", "--for", alias)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
