package emit_test

import (
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"mvdan.cc/sh/v3/syntax"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

// readSchema reads one of the forms of files that have one, without descriptions: TrainJob and
// JobSet of Kubeflow Trainer 2.0.0 (its Go module), and AxolotlInputConfig of
// axolotl 0.19.0. Objects with known keys take no others.
func readSchema(name string) *jsonschema.Schema {
	file, err := os.Open(filepath.Join("testdata", "schemas", name+".json.gz"))
	if err != nil {
		panic(err)
	}
	defer file.Close() //nolint:errcheck // it is read
	text, err := gzip.NewReader(file)
	if err != nil {
		panic(err)
	}
	document, err := jsonschema.UnmarshalJSON(text)
	if err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name+".json", document); err != nil {
		panic(err)
	}
	return compiler.MustCompile(name + ".json")
}

// accepts reads a text as YAML under a schema.
func accepts(t *testing.T, form *jsonschema.Schema, text string) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return form.Validate(value)
}

// folders are the files of each target's job, by target and plan. Each plan is on one
// host, and on two.
func folders(t *testing.T, visit func(target *emit.Target, input *emit.Input, hosts int, files map[string]string)) {
	t.Helper()
	for _, target := range emit.Targets() {
		for _, name := range target.Golden {
			if target.Folder == nil {
				continue
			}
			for hosts := 1; hosts <= 2; hosts++ {
				input := golden(t, name)
				input.Plan.Model.Name = "Org/It's a `model` $(touch PWN): {x}\n"
				devices := input.Plan.Topology.Devices
				for i := range devices {
					devices[i].Host = fmt.Sprint("node", i*hosts/len(devices))
				}
				files, err := target.Folder(input)
				if err != nil {
					t.Errorf("%s, %s: %v", target.Name, name, err)
					continue
				}
				for file, needs := range map[string]string{"jobset.yaml": "- name: SCRIPT\n", "trainjob.yaml": "- name: SCRIPT\n"} {
					if strings.Contains(files[file], needs) != strings.Contains(files["run.sh"], "${SCRIPT:") {
						t.Errorf("%s: %s and run.sh differ on SCRIPT", target.Name, file)
					}
				}
				visit(target, input, hosts, files)
			}
		}
	}
}

// TestFolders: every shell script of a job parses, as POSIX where sh runs it, and says
// the hosts and GPUs of the plan; every job of Kubernetes follows its schema, and none
// with a misspelt key does.
func TestFolders(t *testing.T) {
	jobs := map[string]*jsonschema.Schema{"trainjob.yaml": readSchema("trainjob_v1alpha1"), "jobset.yaml": readSchema("jobset_v1alpha2")}
	const shared = "                    - name: shared\n                      mountPath: /dev/shm\n"
	misspelt := strings.NewReplacer("numNodes:", "numNode:", "completionMode:", "completionsMode:")
	count := 0
	folders(t, func(target *emit.Target, input *emit.Input, hosts int, files map[string]string) {
		each := len(input.Plan.Topology.Devices) / hosts
		for name, language := range map[string]syntax.LangVariant{"run.sh": syntax.LangPOSIX, "job.sbatch": syntax.LangBash} {
			read, err := syntax.NewParser(syntax.Variant(language), syntax.KeepComments(true)).Parse(strings.NewReader(files[name]), name)
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", target.Name, name, err, files[name])
				continue
			}
			syntax.Walk(read, func(node syntax.Node) bool {
				if call, is := node.(*syntax.CallExpr); is && len(call.Args) > 0 && call.Args[0].Lit() == "touch" {
					t.Errorf("%s, %s: the name runs", target.Name, name)
				}
				return true
			})
			count++
		}
		if want := fmt.Sprintf("export NNODES=%d NPROC_PER_NODE=%d\n", hosts, each); !strings.Contains(files["run.sh"], want) {
			t.Errorf("%s: no %q in\n%s", target.Name, want, files["run.sh"])
		}
		if want := fmt.Sprintf("#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=%d\n", hosts, each); !strings.Contains(files["job.sbatch"], want) {
			t.Errorf("%s: no %q in\n%s", target.Name, want, files["job.sbatch"])
		}
		if !strings.Contains(files["jobset.yaml"], shared) || !strings.HasSuffix(files["job.sbatch"], "/run.sh\" \"$@\"\n") {
			t.Errorf("%s: no shared memory, or no arguments:\n%s%s", target.Name, files["jobset.yaml"], files["job.sbatch"])
		}
		if !strings.Contains(files["run.sh"], "\nexport PYTHONPATH=\"$HERE") { // torchtitan imports its module from there
			t.Errorf("%s: Python does not find the folder:\n%s", target.Name, files["run.sh"])
		}
		_, patch, _ := strings.Cut(files["trainjob.yaml"], "\n  # runtimePatches:")
		var patches map[string][]map[string]any
		if err := yaml.Unmarshal([]byte("  runtimePatches:"+strings.ReplaceAll(patch, "\n  # ", "\n  ")), &patches); err != nil || len(patches["runtimePatches"]) != 1 {
			t.Errorf("%s: the comment of trainjob.yaml is no patch: %v", target.Name, err)
		}
		for name, form := range jobs {
			if err := accepts(t, form, files[name]); err != nil {
				t.Errorf("%s, %s: %v", target.Name, name, err)
			}
			if accepts(t, form, misspelt.Replace(files[name])) == nil {
				t.Errorf("%s: %s with a misspelt key is accepted", target.Name, name)
			}
		}
	})
	if count < 20 {
		t.Errorf("%d scripts", count)
	}
}

// TestFoldersRun starts run.sh of each job on its last host, with launchers that record
// their words: each gets the place of the host, by its arguments or by variables.
func TestFoldersRun(t *testing.T) {
	box := newSandbox(t)
	folders(t, func(target *emit.Target, _ *emit.Input, hosts int, files map[string]string) {
		folder := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		command := exec.Command(box.sh, filepath.Join(folder, "run.sh"), "--more")
		command.Dir = t.TempDir()
		command.Env = []string{"PATH=" + box.bin + ":/usr/bin:/bin", "LOG=" + filepath.Join(folder, "log"), "SCRIPT=train.py", "MASTER_ADDR=first", "NODE_RANK=1"}
		said, err := command.CombinedOutput()
		log, _ := os.ReadFile(filepath.Join(folder, "log"))
		words := strings.Split(string(log), "\x00")
		launcher := filepath.Base(words[0])
		place := map[string][]string{"torchrun": {"--nnodes", "first:29500"}, "tune": {"--nnodes", "first:29500"}, "accelerate": {"--machine_rank", "1", "first"}}[launcher]
		if err != nil || launcher == "." || words[len(words)-2] != "--more" {
			t.Errorf("%s, %d hosts: %v, %s%q", target.Name, hosts, err, said, words)
		}
		for i, word := range words[1:] { // a file of the folder is found from any directory
			if at := filepath.Base(word); files[at] != "" && filepath.Dir(word) != folder {
				t.Errorf("%s: word %d, %q, is not in %s", target.Name, i, word, folder)
			}
		}
		for _, word := range place {
			if slices.Contains(words, word) != (hosts == 2) {
				t.Errorf("%s, %d hosts: %q in %q", target.Name, hosts, word, words)
			}
		}
		for _, place := range []string{"TORCHRUN", "RECIPE", "MACHINE"} {
			if strings.Contains(strings.ReplaceAll(files["run.sh"], "FORCE_TORCHRUN=1 ", ""), place) || strings.Count(files["run.sh"], "FORCE_") != strings.Count(files["run.sh"], "FORCE_TORCHRUN=1 ") {
				t.Errorf("%s: %s in\n%s", target.Name, place, files["run.sh"])
			}
		}
	})
}

// axolotlSchema is the schema of axolotl's file, with the keys of its plugin for Liger
// (integrations/liger/args.py), which the plugin adds to it.
var axolotlSchema = sync.OnceValue(func() *jsonschema.Schema { return readSchema("axolotl_0.19.0") })

var ligerKeys = regexp.MustCompile(`(?m)^liger_(rope|rms_norm|glu_activation|fused_linear_cross_entropy): true\n`)

// followsAxolotl demands that a file of axolotl follows its schema, and that none with a
// misspelt key or a value of another type does: axolotl drops such a key in silence.
// TestJobSaysAll calls it with a file of each setting.
func followsAxolotl(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "LigerPlugin") {
		text = ligerKeys.ReplaceAllString(text, "")
	}
	form := axolotlSchema()
	if err := accepts(t, form, text); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	for _, broken := range []string{"gradient_acumulation_steps: 2\n", "sequence_len: long\n"} {
		if accepts(t, form, sequenceLength.ReplaceAllString(text, broken)) == nil {
			t.Errorf("%q is accepted in\n%s", broken, text)
		}
	}
}

var sequenceLength = regexp.MustCompile(`(?m)^sequence_len: .*\n`)

// TestUnequalHosts: a job of several hosts wants the same GPUs on each.
func TestUnequalHosts(t *testing.T) {
	for want, change := range map[string]func(devices []costmodel.Device){
		"has h200-141gb (140.40 GiB) on GPU 0 and a100-80gb": func(devices []costmodel.Device) { devices[5].Name = "a100-80gb" },
		"more than 4 of its 8 GPUs on host node0":            func(devices []costmodel.Device) { devices[4].Host = "node0" },
	} {
		input := golden(t, "job-titan")
		change(input.Plan.Topology.Devices)
		if _, err := target(t, "torchtitan").Folder(input); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

// TestHostsInOrder: each target whose command names hosts refuses GPUs that alternate between hosts.
func TestHostsInOrder(t *testing.T) {
	for _, target := range emit.Targets() {
		for _, name := range target.Golden {
			input := golden(t, name)
			if target.Folder == nil && target.Name != "verl" && target.Name != "deepspeed" {
				continue
			}
			first := input.Plan.Topology.Devices[0]
			input.Plan.Topology.Devices = []costmodel.Device{first, first, first, first}
			for i := range input.Plan.Topology.Devices {
				input.Plan.Topology.Devices[i].Host = fmt.Sprint("node", i%2)
			}
			if err := target.Refuse(input.Plan, ""); err == nil || !strings.Contains(err.Error(), "one host after another") {
				t.Errorf("%s: %v", target.Name, err)
			}
		}
	}
}

// TestLlamaFactoryHosts: the command for two hosts has the variables of LLaMA-Factory's launcher
// (llamafactory/launcher.py).
func TestLlamaFactoryHosts(t *testing.T) {
	input := golden(t, "job-llamafactory")
	devices := input.Plan.Topology.Devices
	for i := range devices {
		devices[i].Host = fmt.Sprint("node", 2*i/len(devices))
	}
	command, _ := target(t, "llamafactory").Usage(input, "x.yaml")
	for _, want := range []string{"NNODES=2", fmt.Sprint("NPROC_PER_NODE=", len(devices)/2), `NODE_RANK="$NODE_RANK"`, `MASTER_ADDR="$MASTER_ADDR"`, `MASTER_PORT="$MASTER_PORT"`} {
		if !slices.Contains(strings.Fields(command), want) {
			t.Errorf("no %s in %s", want, command)
		}
	}
}

// TestCutRefused: what the layout of an engine cannot say is an error.
func TestCutRefused(t *testing.T) {
	for want, change := range map[string]func(plan *devicemap.Plan){
		"dp 2 and tp 2 on stage 0, dp 1 and tp 4 on stage 1":      func(plan *devicemap.Plan) { plan.Stages[1].DP, plan.Stages[1].TP = 1, 4 },
		"recompute full on stage 0 and none on stage 1":           func(plan *devicemap.Plan) { plan.Stages[1].Recompute = "none" },
		"block 15 where block 14 is next":                         func(plan *devicemap.Plan) { plan.Stages[1].Units = plan.Stages[1].Units[1:] },
		"model.vision, which is no block":                         func(plan *devicemap.Plan) { plan.Stages[0].Units[0] = "model.vision" },
		"model.norm on stage 0":                                   func(plan *devicemap.Plan) { plan.Stages[0].Units = append(plan.Stages[0].Units, "model.norm") },
		"the embedding model.embed_tokens on stage 1":             func(plan *devicemap.Plan) { plan.Stages[1].Units = append(plan.Stages[1].Units, "model.embed_tokens") },
		"2 stages × dp 2 × tp 2 × cp 1, which is not its 12 GPUs": func(plan *devicemap.Plan) { plan.Workload.World = 12 },
		"the schedule gpipe, and Megatron runs":                   func(plan *devicemap.Plan) { plan.Workload.Schedule = costmodel.GPipe },
		"the optimizer sgd":                                       func(plan *devicemap.Plan) { plan.Workload.Optimizer = costmodel.SGD },
		"has the strategy fsdp under torch, which is not Mega":    func(plan *devicemap.Plan) { plan.Workload.Strategy = costmodel.FSDP },
	} {
		for _, name := range []string{"megatron", "megatron-bridge", "ms-swift-megatron", "verl"} {
			input := golden(t, "job-stages")
			change(input.Plan)
			if text, err := written(target(t, name), input); err == nil || !strings.Contains(err.Error(), want) || text != "" {
				t.Errorf("%s: %v, not %q", name, err, want)
			}
		}
	}
	for want, change := range map[string]func(input *emit.Input){
		"32 blocks in its stages, and the model has 40": func(input *emit.Input) {
			input.Config = []byte(strings.Replace(largeLlama, `"num_hidden_layers": 32`, `"num_hidden_layers": 40`, 1))
		},
		"a pipeline of a model whose head is its embedding": func(input *emit.Input) {
			input.Config = []byte(strings.Replace(largeLlama, `"vocab_size"`, `"tie_word_embeddings": true, "vocab_size"`, 1))
		},
		"the precision 16-true": func(input *emit.Input) { input.Plan.Workload.Precision = costmodel.FP16True },
		"has stage 1 on device 0: under interleaved its stages go round": func(input *emit.Input) {
			input.Plan.Stages[1].Device, input.Plan.Stages[2].Device = 0, 1
		},
	} {
		input := golden(t, "job-titan-stages")
		change(input)
		if text, err := written(target(t, "torchtitan"), input); err == nil || !strings.Contains(err.Error(), want) || text != "" {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

// TestDeviceMapHosts refuses a device map on the GPUs of two hosts, which one process
// cannot use.
func TestDeviceMapHosts(t *testing.T) {
	input := golden(t, "device-map")
	if _, err := written(target(t, "accelerate"), input); err != nil {
		t.Error(err)
	}
	devices := input.Plan.Topology.Devices
	devices[len(devices)-1].Host = "another"
	if _, err := written(target(t, "accelerate"), input); err == nil || !strings.Contains(err.Error(), "several hosts") {
		t.Errorf("two hosts: %v", err)
	}
}
