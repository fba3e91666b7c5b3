package emit_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/emit"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// hostile are names that are code to a shell or to Python, end a line, look like a
// flag, or steer a terminal. None has a slash: files are called so.
var hostile = []string{
	"a b", "it's; touch PWN; '", `"; touch PWN; "`, "$(touch PWN)", "`touch PWN`", "x\ntouch PWN\n#", "-rf", "--help=x",
	"\u202e$(touch PWN)\u2066", "x\x1b[31m\u009b1m\r", `x"); open("PWN", "w"); ("`, `"""` + "\nopen('PWN', 'w')\n" + `r"""`, `\`, `x\"`, "a&&touch PWN", "a|touch PWN #",
	"@JOB@ @CONFIG@", "%s%n", "\xff", "import os.py", "class.py", "*", "~", "x\u2028touch PWN", "ends\n",
}

// language is what a target's file and its usage are written in. Usage that is
// half prose is cut at what comes before its command.
type language struct{ file, usage, before string }

var languages = map[string]language{
	"accelerate":        {"json", "python", ""},
	"accelerate-config": {"yaml", "sh", ""}, "axolotl": {"yaml", "sh", ""}, "llamafactory": {"yaml", "sh", ""},
	"lightning": {"yaml", "sh", ""}, "torchtune": {"yaml", "sh", ""}, "torchtitan": {"python", "sh", ""},
	"llama.cpp": {"sh", "sh", ""}, "vllm": {"sh", "sh", ""}, "sglang": {"sh", "sh", ""}, "llama-swap": {"yaml", "sh", ""}, "docker-compose": {"yaml", "sh", ""}, "ollama": {"", "sh", ""}, "megatron": {"sh", "sh", ""}, "ms-swift-megatron": {"sh", "sh", ""}, "verl": {"sh", "sh", ""}, "megatron-bridge": {"yaml", "sh", ""}, "transformers": {"yaml", "sh", ""}, "trl": {"yaml", "sh", ""},
	"deepspeed":      {"json", "python", "SCRIPT, which calls "},
	"diffusers":      {"python", "python", ""},
	"ms-swift":       {"json", "sh", ""},
	"openpi":         {"sh", "sh", ""},
	"program":        {"", "sh", "checked: "},
	"torch-check":    {"python", "sh", ""},
	"torch-schedule": {"", "python", ""},
	"xdit":           {"sh", "sh", ""},
}

// ownNames are targets whose files have the program's own names of modules.
var ownNames = map[string]bool{"torchtune": true, "torchtitan": true, "megatron": true, "megatron-bridge": true, "ms-swift-megatron": true, "verl": true, "llama.cpp": true, "vllm": true, "sglang": true, "llama-swap": true, "docker-compose": true, "ollama": true}

// oneLine are targets that refuse names of files with control characters or quotes, which their files
// have no form for.
var oneLine = map[string]string{"llama-swap": "${", "docker-compose": "", "ollama": `"`}

// TestHostileNames sends such names through every target: a shell and Python read
// what it writes and says, and none of it runs.
func TestHostileNames(t *testing.T) {
	t.Setenv("MODEL", "checkpoint") // of vllm.sh and sglang.sh
	box := newSandbox(t)
	for _, target := range emit.Targets() {
		spoken, known := languages[target.Name]
		if !known {
			t.Errorf("%s: languages says nothing of its file and usage", target.Name)
			continue
		}
		for _, plan := range target.Golden {
			for _, name := range hostile {
				input := golden(t, plan)
				rename(t, input, name)
				if target.Name == "axolotl" {
					input.Plan.Workload.Precision = costmodel.BF16Mixed // its adapters run under autocast
				}
				if ownNames[target.Name] { // others are refused
					known := golden(t, plan).Plan
					input.Plan.Stages, input.Plan.DeviceMap, input.Plan.Workload.LoRARank, input.Plan.Workload.LoRATargets = known.Stages, known.DeviceMap, known.Workload.LoRARank, known.Workload.LoRATargets
				}
				for _, input.JSON = range []bool{false, true} {
					if input.JSON && target.JSON == "" {
						continue
					}
					text, err := written(target, input)
					refused := interface{ Refused() }(nil)
					if forbidden, is := oneLine[target.Name]; is && errors.As(err, &refused) && (!utf8.ValidString(name) || strings.ContainsFunc(name, quote.Steers) || forbidden != "" && strings.Contains(name, forbidden)) {
						continue
					}
					if err != nil {
						t.Fatalf("%s, %s, %q: %v", target.Name, plan, name, err)
					}
					file := spoken.file
					if input.JSON {
						file = "json"
					}
					box.reads(file, text, target.Name+"'s file of "+plan)
					box.put(name, text)
					usage, note := target.Usage(input, name)
					_, command, found := strings.Cut(usage, spoken.before)
					if !found {
						t.Errorf("%s: no %q in %q", target.Name, spoken.before, usage)
					}
					box.reads(spoken.usage, command, target.Name+"'s usage of "+plan)
					if line := strings.TrimSuffix(name, "\n") == name; line && strings.ContainsFunc(usage+note, quote.Steers) {
						t.Errorf("%s, %q: usage %q or note %q steers a terminal", target.Name, name, usage, note)
					}
					if spoken.usage == "sh" && !box.saw(name) && (!target.OnlyFolder || !box.saw(name+"/run.sh")) {
						t.Errorf("%s: no command has the file %q: %s", target.Name, name, usage)
					}
				}
			}
		}
	}
	box.python()
}

// TestPythonModule: a file that no import statement can name is run by its path.
func TestPythonModule(t *testing.T) {
	input := golden(t, "diffusion")
	for file, want := range map[string]string{
		"generate.py":   `from generate import pipe, arguments; pipe("a prompt", **arguments)`,
		"my file.py":    `import runpy; made = runpy.run_path("my file.py"); made["pipe"]("a prompt", **made["arguments"])`,
		"out/flux.py":   `import runpy; made = runpy.run_path("out/flux.py"); made["pipe"]("a prompt", **made["arguments"])`,
		"class.py":      `import runpy; made = runpy.run_path("class.py"); made["pipe"]("a prompt", **made["arguments"])`,
		"generate.text": `import runpy; made = runpy.run_path("generate.text"); made["pipe"]("a prompt", **made["arguments"])`,
	} {
		if usage, _ := target(t, "diffusers").Usage(input, file); usage != want {
			t.Errorf("%s: %s, want %s", file, usage, want)
		}
	}
}

// rename puts a name wherever a plan, its config and its program have one.
func rename(tb testing.TB, input *emit.Input, name string) {
	tb.Helper()
	plan := input.Plan
	plan.Model.Name, plan.Model.Source = name, name
	plan.Objective.Bound, plan.Warnings = name, []string{name}
	for i := range plan.Topology.Devices {
		plan.Topology.Devices[i].Name, plan.Topology.Devices[i].Host = name, name
	}
	for i := range plan.DeviceMap {
		plan.DeviceMap[i].Key += strings.ToValidUTF8(name, "")
	}
	for i := range plan.Stages {
		for j := range plan.Stages[i].Units {
			plan.Stages[i].Units[j] += strings.ToValidUTF8(name, "")
		}
	}
	if plan.Workload.Mode == costmodel.Train && !plan.Workload.Strategy.Traits().Staged {
		plan.Workload.LoRARank, plan.Workload.LoRATargets = 4, []string{strings.ToValidUTF8(name, ""), "q_proj"}
	}
	if input.Program != nil {
		input.Program.Model = strings.ToValidUTF8(name, "")
	}
	valid := strings.ToValidUTF8(name, "")
	plan.Model.Name, plan.Warnings = valid, []string{valid} // JSON's encoder refuses others
	var config map[string]any
	if err := json.Unmarshal(input.Config, &config); err != nil {
		tb.Fatal(err)
	}
	config["_name_or_path"] = valid
	var err error
	if input.Config, err = json.Marshal(config); err != nil {
		tb.Fatal(err)
	}
	for i := range plan.Topology.Devices {
		plan.Topology.Devices[i].Name = valid
	}
}

// sandbox is a folder in which a shell runs commands that are all replaced by one
// that keeps its arguments. PWN is the canary.
type sandbox struct {
	tb                  testing.TB
	folder, bin         string
	sh, interpreter     string
	python3, whose, log []string
}

func newSandbox(tb testing.TB) *sandbox {
	tb.Helper()
	box := &sandbox{tb: tb, folder: tb.TempDir(), bin: tb.TempDir()}
	var err error
	if box.sh, err = exec.LookPath("sh"); err != nil {
		tb.Skip("there is no sh")
	}
	box.interpreter, _ = exec.LookPath("python3")
	record := "#!" + box.sh + "\nfor a in \"$0\" \"$@\"; do printf '%s\\0' \"$a\"; done >>\"$LOG\"\n"
	for _, command := range []string{"swift", "devmap", "torchrun", "python3", "uv", "sh", "accelerate", "axolotl", "llamafactory-cli", "trl", "tune", "megatron", "llama-server", "vllm", "python", "llama-swap", "docker", "ollama"} {
		if err := os.WriteFile(filepath.Join(box.bin, command), []byte(record), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	return box
}

// put leaves a file under a hostile name.
func (box *sandbox) put(name, text string) {
	box.tb.Helper()
	if err := os.WriteFile(filepath.Join(box.folder, name), []byte(text), 0o600); err != nil {
		box.tb.Fatal(err)
	}
}

// reads has a language's own reader read a text: a shell runs it.
func (box *sandbox) reads(language, text, whose string) {
	box.tb.Helper()
	switch language {
	case "json":
		if !json.Valid([]byte(text)) {
			box.tb.Errorf("%s is no JSON: %s", whose, text)
		}
	case "yaml":
		var read map[string]any
		if err := yaml.Unmarshal([]byte(text), &read); err != nil || read["PWN"] != nil || strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), quote.Steers) {
			box.tb.Errorf("%s: %v: %q", whose, err, text)
		}
	case "python":
		if strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), quote.Steers) {
			box.tb.Errorf("%s steers a terminal: %q", whose, text)
		}
		box.python3, box.whose = append(box.python3, text), append(box.whose, whose)
	case "sh":
		box.run(text, whose)
	}
}

func (box *sandbox) run(text, whose string) {
	box.tb.Helper()
	log := filepath.Join(box.bin, "log")
	os.Remove(log) //nolint:errcheck // the first run has none
	cmd := exec.Command(box.sh, "-c", text, "script", "CONFIG")
	cmd.Dir = box.folder
	cmd.Env = append(os.Environ(), "PATH="+box.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "LOG="+log)
	said, err := cmd.CombinedOutput()
	if _, pwned := os.Stat(filepath.Join(box.folder, "PWN")); pwned == nil {
		box.tb.Fatalf("%s ran a name of the plan: %q", whose, text)
	}
	if err != nil && !strings.HasPrefix(text, "--") { // xDiT's arguments are no command
		box.tb.Errorf("%s: %v: %s: %q", whose, err, said, text)
	}
	recorded, _ := os.ReadFile(log)
	box.log = strings.Split(string(recorded), "\x00")
}

// saw reports that the last command had a file among its arguments, or what is in
// it, as xDiT's has.
func (box *sandbox) saw(file string) bool {
	for _, argument := range box.log {
		if strings.TrimPrefix(argument, "./") == file || argument == "--num_inference_steps" {
			return true
		}
	}
	return false
}

// python parses every text in Python.
func (box *sandbox) python() {
	box.tb.Helper()
	if box.interpreter == "" {
		box.tb.Log("there is no python3: what is Python's is not parsed")
		return
	}
	texts, err := json.Marshal(box.python3)
	if err != nil {
		box.tb.Fatal(err)
	}
	// Calls of a name of the plan would be calls of open.
	const program = `import ast, json, sys
for at, text in enumerate(json.load(sys.stdin)):
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        sys.exit(f"{at} {error}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "open" and [arg.value for arg in node.args][:1] == ["PWN"]:
            sys.exit(f"{at} opens PWN")
`
	cmd := exec.Command(box.interpreter, "-c", program)
	cmd.Stdin = strings.NewReader(string(texts))
	if said, err := cmd.CombinedOutput(); err != nil {
		box.tb.Errorf("%v: %s", err, said)
		for at, text := range box.python3 {
			if strings.HasPrefix(string(said), jsonNumber(at)+" ") {
				box.tb.Errorf("%s: %q", box.whose[at], text)
			}
		}
	}
}

func jsonNumber(number int) string {
	text, _ := json.Marshal(number)
	return string(text)
}
