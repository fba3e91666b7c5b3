package ask

import (
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/executor"
)

// Run has the flags of devmap run.
type Run struct {
	Weights, Tokens, Resume string
	Save, SaveState         string
	Seed, Steps, Cycles     int64
	Rate, Epsilon, Decay    float64
	Clip                    float64
	Backend                 string
	Transport, Fault, Keep  string
	Certify                 bool
	betas, devices          string
	stops, dumps            []string
}

// The values of --weights.
const (
	Checkpoint = "checkpoint"
	Random     = "random"
)

// The values of --backend.
const (
	Auto = "auto"
	CPU  = "cpu"
	CUDA = "cuda"
)

// The values of --keep.
const (
	None = "none"
	Host = "host"
)

// runFlags are the flags about a program's run.
var runFlags = []flag{
	{
		name: "weights", at: func(request *Request) any { return &request.Run.Weights }, on: onRun, defaultValue: Checkpoint,
		help: "Source of the weights: {values}", values: []string{Checkpoint, Random},
		meant: map[string]string{"dummy": Random, "init": Random, "rand": Random, "file": Checkpoint, "pretrained": Checkpoint},
		also:  []string{"load-format"},
	},
	{
		name: "seed", at: func(request *Request) any { return &request.Run.Seed }, on: onRun, defaultValue: "0",
		help: "Seed of random token ids and random weights [0]",
	},
	{
		name: "steps", at: func(request *Request) any { return &request.Run.Steps }, on: onRun | onPlan, defaultValue: "1", leftOut: "1", leftOutOn: map[command]string{onPlan: "the pipeline's own"},
		help:   "Steps to run, each with the next batch",
		helpOn: map[command]string{onPlan: "Denoising steps [the pipeline's]"}, idle: []*idleness{nothingRuns},
		also: []string{"max-steps", "max_steps", "iterations", "num-steps"},
	},
	{
		name: "tokens", at: func(request *Request) any { return &request.Run.Tokens }, on: onRun,
		help: "Token ids, one JSON array per line [random]",
		also: []string{"prompt", "input-ids", "input_ids", "dataset"},
	},
	{
		name: "lr", at: func(request *Request) any { return &request.Run.Rate }, on: onRun, defaultValue: "0.001",
		help: "Learning rate", idle: []*idleness{noStep}, also: []string{"learning-rate", "learning_rate"},
	},
	{
		name: "betas", at: func(request *Request) any { return &request.Run.betas }, on: onRun, defaultValue: "0.9,0.999",
		help: "AdamW betas", idle: []*idleness{noStep, noMoments},
	},
	{
		name: "eps", at: func(request *Request) any { return &request.Run.Epsilon }, on: onRun, defaultValue: "1e-08",
		help: "AdamW epsilon", idle: []*idleness{noStep, noMoments}, also: []string{"epsilon", "adam-epsilon", "adam_epsilon"},
	},
	{
		name: "weight-decay", at: func(request *Request) any { return &request.Run.Decay }, on: onRun, defaultValue: "0.01",
		help: "Weight decay", idle: []*idleness{noStep}, also: []string{"weight_decay", "wd"},
	},
	{
		name: "clip", at: func(request *Request) any { return &request.Run.Clip }, on: onRun, defaultValue: "0",
		help: "Clip gradients to this norm [0: off]", idle: []*idleness{noStep},
		also: []string{"max-grad-norm", "max_grad_norm", "clip-grad", "grad-clip", "gradient-clip-val"},
	},
	{
		name: "stop", at: func(request *Request) any { return &request.Run.stops }, on: onRun, each: true,
		help: "Token id that ends a generated sequence; repeatable",
		also: []string{"eos", "eos-token-id", "eos_token_id", "stop-token-ids"},
	},
	{
		name: "dump", at: func(request *Request) any { return &request.Run.dumps }, on: onRun, each: true,
		help: "Write logits, hidden or grads of step 1 as safetensors",
	},
	{
		name: "save", at: func(request *Request) any { return &request.Run.Save }, on: onRun,
		help: "Write the trained model to a new folder",
		also: []string{"output-dir", "output_dir"},
	},
	{
		name: "save-state", at: func(request *Request) any { return &request.Run.SaveState }, on: onRun,
		help: "Write everything that --resume needs to a new folder",
	},
	{
		name: "resume", at: func(request *Request) any { return &request.Run.Resume }, on: onRun,
		help: "Continue from the folder of a --save-state", also: []string{"resume-from-checkpoint", "resume_from_checkpoint"},
	},
	{
		name: "backend", at: func(request *Request) any { return &request.Run.Backend }, on: onRun, defaultValue: "auto",
		help:   "Backend that executes the plan: {values}",
		values: []string{Auto, CPU, CUDA}, meant: map[string]string{"reference": CPU, "gpu": CUDA, "nvidia": CUDA},
	},
	{
		name: "devices", at: func(request *Request) any { return &request.Run.devices }, on: onRun | onProbe,
		help:   "GPU of each plan device, such as 0,0,1,1 [as planned]",
		helpOn: map[command]string{onProbe: "GPU of each topology device, such as 0,0,1,1 [all]"},
	},
	{
		name: "transport", at: func(request *Request) any { return &request.Run.Transport }, on: onRun, defaultValue: string(executor.AutoTransport),
		help: "How GPUs exchange messages: {values}", values: []string{string(executor.AutoTransport), string(executor.PeerTransport), string(executor.HostTransport)},
		meant: map[string]string{"nvlink": "peer", "p2p": "peer", "pcie": "host", "cpu": "host", "staged": "host"},
	},
	{
		name: "cycles", at: func(request *Request) any { return &request.Run.Cycles }, on: onRun, defaultValue: "1", leftOut: "1",
		help: "Turns of each plan; plans A and B run as A B A B",
	},
	{
		name: "certify", at: func(request *Request) any { return &request.Run.Certify }, on: onRun, defaultValue: "false",
		help: "Verify that all GPU memory is released (5 cycles)",
	},
	{
		name: "keep", at: func(request *Request) any { return &request.Run.Keep }, on: onRun, defaultValue: None,
		help: "State kept between a plan's turns: {values}", values: []string{None, Host},
		meant: map[string]string{"cpu": Host, "ram": Host, "pinned": Host},
	},
	{
		name: "fault", at: func(request *Request) any { return &request.Run.Fault }, on: onRun,
		help: "Inject a fault (for testing); devmap help run lists them",
	},
}

// Betas returns AdamW's betas.
func (run *Run) Betas() (first, second float64, err error) {
	text := run.betas
	before, after, _ := strings.Cut(text, ",")
	first, err = strconv.ParseFloat(strings.TrimSpace(before), 64)
	if err == nil {
		second, err = strconv.ParseFloat(strings.TrimSpace(after), 64)
	}
	if err != nil {
		return 0, 0, out.Usagef("--betas %q: want two numbers, as in --betas 0.9,0.999", text)
	}
	return first, second, nil
}

// Stops returns the token ids of --stop.
func (run *Run) Stops() ([]int32, error) {
	var ids []int32
	for _, text := range run.stops {
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil || id < 0 {
			return nil, out.Usagef("--stop %q: want a token id; of several each has its own --stop", text)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

// Dumps returns the files of --dump, by kind.
func (run *Run) Dumps() (map[string]string, error) {
	files := map[string]string{}
	for _, text := range run.dumps {
		kind, file, _ := strings.Cut(text, "=")
		switch {
		case kind != "logits" && kind != "hidden" && kind != "grads":
			return nil, out.Usagef("--dump %q: want KIND=FILE, with logits, hidden or grads", text)
		case file == "":
			return nil, out.Usagef("--dump %q: no file: want --dump %s=FILE", text, kind)
		case files[kind] != "":
			return nil, out.Usagef("--dump %s is given twice, for %q and %q", kind, files[kind], file)
		}
		files[kind] = file
	}
	return files, nil
}

// Watch has the flags of devmap watch.
type Watch struct {
	PID                      int64 // 0: none
	Strict, NoHook, Baseline bool
	Snapshot, Merge, Log     string
	RankFromEnv              bool
}

// watchFlags are the flags about a watched process.
var watchFlags = []flag{
	{
		name: "pid", at: func(request *Request) any { return &request.Watch.PID }, on: onWatch,
		help: "Watch a running process and its children", also: []string{"p", "process"},
	},
	{
		name: "baseline", at: func(request *Request) any { return &request.Watch.Baseline }, on: onWatch, defaultValue: "false",
		help: "Check that COMMAND releases all GPU memory",
	},
	{
		name: "strict", at: func(request *Request) any { return &request.Watch.Strict }, on: onWatch, defaultValue: "false",
		help: "Exit with status 4 if the verdict is fail",
	},
	{
		name: "rank-from-env", at: func(request *Request) any { return &request.Watch.RankFromEnv }, on: onWatch, defaultValue: "false",
		help: "Write this rank's report into the folder of -o",
	},
	{
		name: "merge", at: func(request *Request) any { return &request.Watch.Merge }, on: onWatch,
		help: "Compare the reports of all ranks in a folder",
	},
	{
		name: "log", at: func(request *Request) any { return &request.Watch.Log }, on: onWatch,
		help: "Compare the start-up log of vLLM or SGLang with PLAN",
	},
	{
		name: "no-hook", at: func(request *Request) any { return &request.Watch.NoHook }, on: onWatch, defaultValue: "false",
		help: "Do not ask PyTorch for its peaks; use NVML only",
	},
	{
		name: "snapshot", at: func(request *Request) any { return &request.Watch.Snapshot }, on: onWatch,
		help: "Write PyTorch memory snapshots, one FILE per process", also: []string{"memory-snapshot"},
	},
}
