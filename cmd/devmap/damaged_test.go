package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// shortDamage is the number of damaged files in a test run. DAMAGED=5000 draws more, SEED others,
// and DAMAGED_CASE repeats one:
//
//	DAMAGED=5000 go test ./cmd/devmap -run TestDamaged -count=1
const shortDamage = 200

// damageLimit ends a command that hangs; all commands take much less.
const damageLimit = 10 * time.Second

// TestDamaged damages valid files of every kind that devmap reads, by bytes and by JSON values, and
// runs the commands that read them. For any file the status is one of the contract, there is no
// panic, and the error is one line that names the file. No part of an answer is on disk, and
// `devmap check` accepts every plan.
func TestDamaged(t *testing.T) {
	d := &damage{t: t, valid: t.TempDir(), seen: map[string]int{}}
	d.kinds = d.write()
	first, end := uint64(0), environment(t, "DAMAGED", shortDamage)
	if os.Getenv("DAMAGED_CASE") != "" {
		first = environment(t, "DAMAGED_CASE", 0)
		end = first + 1
	}
	seed := environment(t, "SEED", 1)
	work := filepath.Join(t.TempDir(), "case")
	for i := first; i < end; i++ {
		d.random, d.now = rand.New(rand.NewPCG(seed, i)), fmt.Sprintf("SEED=%d DAMAGED_CASE=%d", seed, i)
		d.one(work)
	}
	t.Logf("%d files: %v", end-first, d.seen)
	if end-first >= shortDamage && (d.seen["status 0"] == 0 || d.seen["status 1"] == 0 || d.seen["checked"] == 0) {
		t.Error("too little is read, refused or checked: the damage tests nothing")
	}
}

// damagedKind is a valid input: the files to damage, and the commands that read them. MODEL, PLAN
// and OUT in a command are paths; FILE is the damaged one.
type damagedKind struct {
	name     string
	files    []string // in the case's folder; the first is the command's argument
	commands []string
}

type damage struct {
	t      *testing.T
	valid  string
	kinds  []damagedKind
	random *rand.Rand
	now    string
	seen   map[string]int
}

const damagedConfig = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":16,"intermediate_size":16,"num_hidden_layers":2,"num_attention_heads":2,"vocab_size":32,"torch_dtype":"float32","max_position_embeddings":64,"rope_theta":10000.0,"tie_word_embeddings":true}`

// write makes one valid input of every kind.
func (d *damage) write() []damagedKind {
	d.put("config.json", damagedConfig)
	d.put("model.json", `{"format_version":"devmap.model/v1","name":"m","layers":[{"name":"embed","op":{"kind":"embedding","vocab":32,"dim":8},"params":[{"name":"weight","shape":[32,8],"dtype":"bf16"}]},`+
		`{"name":"h.0","inputs":["embed"],"unit":"h.0","declared":{"params_bytes":4096,"activation_bytes":1024,"workspace_bytes":0,"output_bytes":64,"forward_seconds":0.001,"backward_seconds":0.002}},`+
		`{"name":"head","op":{"kind":"head","vocab":32,"dim":8},"params":[{"name":"weight","shape":[32,8],"dtype":"bf16"}]}],"ties":[["embed.weight","head.weight"]]}`)
	header := `{"__metadata__":{"format":"pt"},"a.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b.bias":{"dtype":"BF16","shape":[4],"data_offsets":[16,24]}}`
	d.put("tensors/t.safetensors", string([]byte{byte(len(header)), byte(len(header) >> 8), 0, 0, 0, 0, 0, 0})+header+strings.Repeat("x", 24))
	d.put("folder/config.json", damagedConfig)
	d.folder()
	d.put("flux/model_index.json", `{"_class_name":"FluxPipeline","text_encoder_2":["transformers","T5EncoderModel"],"transformer":["diffusers","FluxTransformer2DModel"],"vae":["diffusers","AutoencoderKL"],"scheduler":["diffusers","X"]}`)
	d.put("flux/transformer/config.json", `{"_class_name":"FluxTransformer2DModel","guidance_embeds":true,"num_layers":2,"num_single_layers":2,"attention_head_dim":128,"num_attention_heads":24,"in_channels":64}`)
	d.put("flux/vae/config.json", `{"_class_name":"AutoencoderKL","block_out_channels":[32,64],"down_block_types":["DownEncoderBlock2D","DownEncoderBlock2D"],"up_block_types":["UpDecoderBlock2D","UpDecoderBlock2D"],"layers_per_block":1,"latent_channels":16,"sample_size":64}`)
	d.put("flux/text_encoder_2/config.json", `{"architectures":["T5EncoderModel"],"model_type":"t5","d_model":64,"d_ff":128,"d_kv":16,"num_heads":4,"num_layers":2,"vocab_size":128,"feed_forward_proj":"gated-gelu","torch_dtype":"bfloat16"}`)
	d.put("adapter/adapter_config.json", `{"peft_type":"LORA","base_model_name_or_path":"llama-3.2-1b","r":8,"lora_alpha":16,"target_modules":["q_proj","v_proj"],"task_type":"CAUSAL_LM"}`)
	d.put("topology.json", `{"format_version":"devmap.topology/v1","devices":[{"name":"a100-40gb","host":"x"},{"name":"b","host":"x","capacity_bytes":8589934592,"reserved_bytes":1048576}],"host_memory_bytes":68719476736}`)
	d.put("map.json", `{"model.embed_tokens":0,"model.layers.0":0,"model.layers.1":1,"model.norm":1,"model.rotary_emb":0,"lm_head":0}`)
	d.put("ds.json", `{"zero_optimization":{"stage":2,"offload_optimizer":{"device":"cpu"},"reduce_bucket_size":5e6,"overlap_comm":true},"bf16":{"enabled":true},"train_micro_batch_size_per_gpu":2,"gradient_accumulation_steps":"auto","optimizer":{"type":"AdamW","params":{"lr":1e-5}}}`)
	d.put("tune.yaml", "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\ntokenizer:\n  max_seq_len: 8\nbatch_size: 2\noptimizer:\n  _component_: torch.optim.AdamW\n  fused: True\nloss:\n  _component_: torchtune.modules.loss.CEWithChunkedOutputLoss\ngradient_accumulation_steps: 2\noptimizer_in_bwd: False\ndtype: bf16\n")
	d.put("args.json", `{"output_dir":"x","per_device_train_batch_size":2,"gradient_accumulation_steps":2,"bf16":true,"fsdp":"full_shard auto_wrap","fsdp_config":{"fsdp_version":2,"activation_checkpointing":true},"optim":"adamw_torch_fused"}`)
	d.put("lengths.txt", "3\n5\n8\n8\n1\n")
	d.put("schedule.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
	d.put("tokens.jsonl", "[1,2,3,4]\n[5,6,7,8]\n")
	config := d.path("config.json")
	devmap(d.t, 0, "plan", config, "--gpus", "2", "--seq", "4", "--runtime", "devmap", "--mode", "train", "--strategy", "pipeline", "--batch", "2", "--micro-batches", "2", "-o", d.path("pipe.json"))
	devmap(d.t, 0, "plan", config, "--gpus", "2", "--seq", "8", "-o", d.path("plan.json"))
	devmap(d.t, 0, "plan", config, "--gpus", "2", "--seq", "4", "--mode", "train", "--strategy", "zero3", "-o", d.path("shards.json"))
	devmap(d.t, 0, "plan", d.path("flux"), "--gpus", "1", "--height", "64", "--width", "64", "-o", d.path("image.json"))
	devmap(d.t, 0, "emit", d.path("pipe.json"), "--for", "program", "-o", d.path("program.json"))
	tinyGGUF(d.t, d.valid)
	devmap(d.t, 0, "plan", d.path("tiny.gguf"), "--gpus", "2", "--context", "4096", "--draft", d.path("tiny.gguf"), "-o", d.path("served.json"))
	model := []string{"inspect FILE --json", "plan FILE --gpus 2 --seq 8 --time-limit 1s -o OUT", "plan FILE --gpus 2 --mode load -o OUT", "estimate FILE --gpus 2 --seq 8 -o OUT", "check FILE map.json --gpus 2 --seq 8"}
	plan := []string{"check config.json FILE --json", "emit FILE --for accelerate -o OUT", "emit FILE --for ms-swift -o OUT", "emit FILE --for program -o OUT", "simulate FILE -o OUT", "run FILE --weights random -o OUT"}
	return []damagedKind{
		{"model.json", []string{"model.json"}, model},
		{"config", []string{"config.json"}, append(slices.Clone(model), "plan FILE --gpus 2 --seq 8 --mode train --strategy fsdp -o OUT")},
		{"safetensors", []string{"tensors/t.safetensors"}, []string{"inspect FILE --json", "plan FILE --gpus 1 --mode load -o OUT"}},
		{"folder", []string{"folder", "folder/config.json", "folder/model.safetensors.index.json", "folder/model-1.safetensors", "folder/model-2.safetensors"}, model[:4]},
		{"pipeline", []string{"flux", "flux/model_index.json", "flux/transformer/config.json", "flux/vae/config.json", "flux/text_encoder_2/config.json"}, []string{"inspect FILE", "plan FILE --gpus 2 --height 64 --width 64 -o OUT"}},
		{"adapter", []string{"adapter", "adapter/adapter_config.json"}, []string{"inspect FILE"}},
		{"topology", []string{"topology.json"}, []string{"plan config.json --topology FILE --seq 8 -o OUT", "estimate config.json --topology FILE --seq 8 -o OUT", "check config.json map.json --topology FILE --seq 8"}},
		{"map", []string{"map.json"}, []string{"check config.json FILE --gpus 2 --seq 8", "check config.json FILE --gpus 2 --seq 8 --json"}},
		{"DeepSpeed", []string{"ds.json"}, []string{"plan config.json --gpus 2 --seq 8 --mode train --ds-config FILE -o OUT", "estimate config.json --gpus 2 --seq 8 --mode train --ds-config FILE -o OUT"}},
		{"torchtune", []string{"tune.yaml"}, []string{"plan config.json --gpus 2 --preset FILE -o OUT", "estimate config.json --gpus 2 --preset FILE -o OUT"}},
		{"TrainingArguments", []string{"args.json"}, []string{"plan config.json --gpus 2 --seq 8 --preset FILE -o OUT"}},
		{"lengths", []string{"lengths.txt"}, []string{"plan config.json --gpus 2 --preset transformers --batch 2 --lengths FILE -o OUT"}},
		{"schedule", []string{"schedule.csv"}, []string{"simulate pipe.json --schedule-file FILE -o OUT"}},
		{"tokens", []string{"tokens.jsonl"}, []string{"run pipe.json --weights random --tokens FILE -o OUT"}},
		{"plan", []string{"plan.json"}, plan},
		{"pipeline plan", []string{"pipe.json"}, []string{plan[0], plan[3], "emit FILE --for torch-schedule -o OUT", plan[4], plan[5]}},
		{"sharded plan", []string{"shards.json"}, []string{plan[0], "emit FILE --for deepspeed -o OUT"}},
		{"diffusion plan", []string{"image.json"}, []string{"emit FILE --for diffusers -o OUT", "emit FILE --for xdit -o OUT", "simulate FILE"}},
		{"served plan", []string{"served.json"}, []string{"check tiny.gguf FILE --json", "emit FILE --for llama.cpp -o OUT", "emit FILE --for llama-swap -o OUT", "emit FILE --for docker-compose -o OUT", "emit FILE --for ollama -o OUT"}},
		{"program", []string{"program.json"}, []string{"simulate FILE -o OUT", "simulate FILE --trace OUT"}},
	}
}

// folder writes a checkpoint in two files with an index.
func (d *damage) folder() {
	shapes := [][2]string{{"model.embed_tokens.weight", "[32,16]"}, {"model.norm.weight", "[16]"}}
	for layer := range 2 {
		for _, name := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"} {
			shapes = append(shapes, [2]string{fmt.Sprintf("model.layers.%d.%s.weight", layer, name), "[16,16]"})
		}
		for _, name := range []string{"input_layernorm", "post_attention_layernorm"} {
			shapes = append(shapes, [2]string{fmt.Sprintf("model.layers.%d.%s.weight", layer, name), "[16]"})
		}
	}
	index := map[string]string{}
	for part := range 2 {
		file, header, at := fmt.Sprintf("model-%d.safetensors", part+1), []string{}, 0
		for i, tensor := range shapes {
			if i%2 != part {
				continue
			}
			size := map[string]int{"[32,16]": 2048, "[16,16]": 1024, "[16]": 64}[tensor[1]]
			header = append(header, fmt.Sprintf(`%q:{"dtype":"F32","shape":%s,"data_offsets":[%d,%d]}`, tensor[0], tensor[1], at, at+size))
			at, index[tensor[0]] = at+size, file
		}
		text := "{" + strings.Join(header, ",") + "}"
		d.put("folder/"+file, string([]byte{byte(len(text)), byte(len(text) >> 8), 0, 0, 0, 0, 0, 0})+text+strings.Repeat("\x00", at))
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 0}, "weight_map": index})
	if err != nil {
		d.t.Fatal(err)
	}
	d.put("folder/model.safetensors.index.json", string(text))
}

func (d *damage) path(name string) string { return filepath.Join(d.valid, filepath.FromSlash(name)) }

func (d *damage) put(name, text string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.path(name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// one damages a file in a copy of the inputs and runs a command on it.
func (d *damage) one(work string) {
	d.t.Helper()
	if err := errors.Join(os.RemoveAll(work), os.CopyFS(work, os.DirFS(d.valid))); err != nil {
		d.t.Fatal(err)
	}
	kind := d.kinds[d.random.IntN(len(d.kinds))]
	file := kind.files[d.random.IntN(len(kind.files))]
	if len(kind.files) > 1 && file == kind.files[0] { // the folder itself
		file = kind.files[1]
	}
	target := filepath.Join(work, filepath.FromSlash(file))
	before, err := os.ReadFile(target)
	if err != nil {
		d.t.Fatal(err)
	}
	after := d.damaged(before, strings.HasSuffix(file, ".json"))
	if err := os.WriteFile(target, after, 0o600); err != nil {
		d.t.Fatal(err)
	}
	command := kind.commands[d.random.IntN(len(kind.commands))]
	result := filepath.Join(work, "answer")
	replace := map[string]string{"FILE": filepath.Join(work, filepath.FromSlash(kind.files[0])), "OUT": result}
	var args []string
	for _, word := range strings.Fields(command) {
		if path, ok := replace[word]; ok {
			word = path
		} else if _, err := os.Stat(filepath.Join(work, word)); err == nil {
			word = filepath.Join(work, word)
		}
		args = append(args, word)
	}
	status, errs := d.run(args)
	d.seen[fmt.Sprintf("status %d", status)]++
	d.judge(kind, args, status, errs, filepath.Base(file), result)
}

// run runs a command in this process.
func (d *damage) run(args []string) (status int, errs string) {
	d.t.Helper()
	ctx, stop := context.WithTimeout(d.t.Context(), damageLimit)
	defer stop()
	late := time.AfterFunc(damageLimit-time.Second, func() {
		fmt.Fprintf(os.Stderr, "it hangs (%s): devmap %s\n", d.now, shellWords(args))
	})
	defer late.Stop()
	var document, problems bytes.Buffer
	func() {
		defer func() {
			if p := recover(); p != nil {
				status = -1
				d.fault(args, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		status = run(ctx, args, &document, &problems)
	}()
	d.fault(args, internal(strings.ReplaceAll(problems.String(), "NaN", "")))
	return status, problems.String()
}

func (d *damage) fault(args []string, err error) {
	d.t.Helper()
	if err != nil {
		d.t.Errorf("devmap %s\n  %v\n  (%s)", shellWords(args), err, d.now)
	}
}

// judge checks the answer to a damaged file by the contract.
func (d *damage) judge(kind damagedKind, args []string, status int, errs, file, result string) {
	d.t.Helper()
	if !slices.Contains([]int{out.ExitDone, out.ExitError, out.ExitUsage, out.ExitInfeasible, out.ExitCheck, -1}, status) {
		d.fault(args, fmt.Errorf("status %d: %s", status, tail(errs)))
	}
	said := 0
	for line := range strings.Lines(errs) {
		if strings.HasPrefix(line, "devmap: ") {
			said++
		}
	}
	if (status == out.ExitError || status == out.ExitUsage) && said != 1 {
		d.fault(args, fmt.Errorf("status %d and %d errors: %s", status, said, tail(errs)))
	}
	// The error for a folder without its config names only the folder.
	if named := strings.Contains(errs, file) || strings.Contains(errs, filepath.Base(kind.files[0])); status == out.ExitError && !named {
		d.fault(args, fmt.Errorf("the error names no file: %s", tail(errs)))
	}
	written, err := os.ReadFile(result)
	switch {
	case err != nil && !os.IsNotExist(err):
		d.t.Fatal(err)
	// The answer of estimate, simulate and run has the faults they find.
	case err == nil && status != out.ExitDone && !slices.Contains([]string{"estimate", "simulate", "run"}, args[0]):
		d.fault(args, fmt.Errorf("status %d, and %d bytes of an answer", status, len(written)))
	case err == nil && (args[0] == "plan" || args[0] == "run") && !json.Valid(written):
		d.fault(args, errors.New("the answer is no JSON"))
	}
	if status == out.ExitDone {
		d.check(kind, args, result)
	}
}

// check runs `devmap check` on the output for a damaged file, or on the plan that the command read.
func (d *damage) check(kind damagedKind, args []string, result string) {
	d.t.Helper()
	work := filepath.Dir(result)
	var again []string
	switch {
	case kind.name == "pipeline", kind.name == "diffusion plan": // check takes no pipelines
		return
	case args[0] == "plan":
		again = []string{"check", args[1], result, "--json"}
	case args[0] != "check" && kind.name == "served plan":
		again = []string{"check", filepath.Join(work, "tiny.gguf"), args[1], "--json"}
	case args[0] != "check" && strings.HasSuffix(kind.name, "plan"):
		again = []string{"check", filepath.Join(work, "config.json"), args[1], "--json"}
	default:
		return
	}
	d.seen["checked"]++
	status, errs := d.run(again)
	// Only check knows if a plan matches a model that the command did not read, and if the plan
	// still fits.
	if args[0] != "plan" && (status == out.ExitCheck || strings.Contains(errs, "the model")) {
		return
	}
	if status != out.ExitDone {
		d.fault(args, fmt.Errorf("it is done, and devmap check ends with %d: %s", status, tail(errs)))
	}
}
