package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
)

// shared are the flags of plan, check and inspect that say what the model is
// asked to do, and on what.
type shared struct {
	gpus, gpu, topology      string
	mode, strategy, runtime  string
	precision, optimizer     string
	recompute, objective     string
	offload, quantize        string
	batch, microBatches, seq int64
	targetSeq, newTokens     int64
	images                   int64
	contiguous               bool
	pins, together, reserve  []string
	json                     bool
}

func (s *shared) workload(f *pflag.FlagSet) {
	f.StringVar(&s.mode, "mode", "infer", "what to plan for: infer, train, load")
	f.Int64Var(&s.batch, "batch", 1, "sequences a step")
	f.Int64Var(&s.microBatches, "micro-batches", 1, "equal parts of the batch")
	f.Int64Var(&s.seq, "seq", 0, "tokens a sequence (2048, or the model's maximum if smaller)")
	f.Int64Var(&s.targetSeq, "target-seq", 0, "decoder tokens of an encoder–decoder (as --seq)")
	f.Int64Var(&s.newTokens, "new-tokens", 0, "tokens generated after the prompt (infer)")
	f.Int64Var(&s.images, "images", 0, "images a sequence")
	f.StringVar(&s.precision, "precision", "", "bf16-true, bf16-mixed, 16-mixed, 32-true (as the checkpoint or config says)")
	f.StringVar(&s.optimizer, "optimizer", "adamw", "adamw, adamw-foreach, adamw-8bit, sgd, sgd-momentum, adafactor, muon")
	f.StringVar(&s.recompute, "recompute", "none", "activations computed again in backward: none, full")
	f.StringVar(&s.strategy, "strategy", "device-map", "how the model is spread: device-map")
	f.StringVar(&s.runtime, "runtime", "accelerate", "whose tensors are counted: accelerate")
}

func (s *shared) devices(f *pflag.FlagSet) {
	f.StringVar(&s.gpus, "gpus", "", "how many GPUs, or their capacities: 4, or 80GiB,80GiB,24GiB")
	f.StringVar(&s.gpu, "gpu", catalogue.DefaultGPU, "GPU of the catalogue: "+strings.Join(catalogue.Names(), ", "))
	f.StringVar(&s.topology, "topology", "", "a topology file, instead of --gpus")
	f.StringArrayVar(&s.reserve, "reserve", nil, "bytes to leave free: one for all devices, or one each")
}

func (s *shared) placement(f *pflag.FlagSet) {
	f.StringVar(&s.objective, "objective", "memory", "what is minimised: memory")
	f.StringArrayVar(&s.pins, "pin", nil, "LAYER=DEVICE; the layer may end in *")
	f.StringArrayVar(&s.together, "together", nil, "A,B: layers that share a device")
	f.BoolVar(&s.contiguous, "contiguous", true, "one run of the chain a device")
	f.StringVar(&s.offload, "offload", "none", "units that may leave the GPUs: none")
}

// later are flags of the contract that this version takes only at their
// default.
var later = []struct{ name, def, what string }{
	{"schedule", "1f1b", "pipeline schedule"}, {"virtual-stages", "2", "runs a device (interleaved)"},
	{"shard-degree", "0", "devices a parameter is sharded over"}, {"tp", "1", "tensor parallel degree"},
	{"pp", "1", "pipeline parallel degree"}, {"dp", "1", "data parallel degree"}, {"cp", "1", "context parallel degree"},
	{"ep", "1", "expert parallel degree"}, {"sequence-parallel", "off", "sequence parallelism"},
	{"lora-rank", "0", "rank of LoRA adapters"}, {"lora-targets", "", "modules that get adapters"}, {"quantize", "", "nf4, int8"},
}

func (s *shared) later(f *pflag.FlagSet) {
	for _, l := range later {
		f.String(l.name, l.def, l.what+" (not built yet)")
		if err := f.MarkHidden(l.name); err != nil {
			panic(err) // the flag was made the line before
		}
	}
}

// refuse reports values that the contract has and this version has not.
func (s *shared) refuse(cmd *cobra.Command) error {
	for _, l := range later {
		if f := cmd.Flags().Lookup(l.name); f != nil && f.Changed && f.Value.String() != l.def {
			return usagef("--%s is not built yet", l.name)
		}
	}
	for _, v := range []struct{ flag, got, built string }{
		{"strategy", s.strategy, string(costmodel.DeviceMap)},
		{"runtime", s.runtime, string(costmodel.Accelerate)},
		{"objective", s.objective, "memory"}, {"offload", s.offload, "none"},
	} {
		if v.got != "" && v.got != v.built {
			return notBuilt(v.flag, v.got, v.built)
		}
	}
	switch {
	case cmd.Flags().Lookup("contiguous") != nil && !s.contiguous:
		return notBuilt("contiguous", "false", "true")
	case s.images != 0:
		return notBuilt("images", strconv.FormatInt(s.images, 10), "0: a vision tower holds its weights and does not run")
	case s.recompute == string(costmodel.RecomputeSelective):
		return notBuilt("recompute", s.recompute, "none, full")
	}
	return nil
}

// parse is the workload that the flags ask for.
func (s *shared) parse() (costmodel.Workload, error) {
	w := costmodel.Workload{
		Mode: costmodel.Mode(s.mode), Strategy: costmodel.DeviceMap, Runtime: costmodel.Accelerate,
		Batch: s.batch, MicroBatches: s.microBatches, Seq: s.seq, TargetSeq: s.targetSeq, NewTokens: s.newTokens,
		Optimizer: costmodel.Optimizer(s.optimizer), Recompute: costmodel.Recompute(s.recompute),
	}
	switch w.Mode {
	case costmodel.Infer, costmodel.Train, costmodel.Load:
	default:
		return w, usagef("--mode %q is unknown (known: infer, train, load)", s.mode)
	}
	switch w.Optimizer {
	case costmodel.AdamW, costmodel.AdamWForeach, costmodel.AdamW8bit, costmodel.SGD, costmodel.SGDMomentum, costmodel.Adafactor, costmodel.Muon:
	default:
		return w, usagef("--optimizer %q is unknown (known: adamw, adamw-foreach, adamw-8bit, sgd, sgd-momentum, adafactor, muon)", s.optimizer)
	}
	if w.Recompute != costmodel.RecomputeNone && w.Recompute != costmodel.RecomputeFull {
		return w, usagef("--recompute %q is unknown (known: none, full, selective)", s.recompute)
	}
	for _, v := range []struct {
		flag string
		n    int64
	}{{"batch", s.batch}, {"micro-batches", s.microBatches}} {
		if v.n < 1 {
			return w, usagef("--%s %d: it must be 1 or more", v.flag, v.n)
		}
	}
	if s.precision != "" {
		p, err := costmodel.ParsePrecision(s.precision)
		if err != nil {
			return w, usageError{err}
		}
		w.Precision = p
	}
	return w, nil
}

// constraints reads pins and together-groups.
func (s *shared) constraints(p *planner.Problem) error {
	for _, v := range s.pins {
		layer, device, ok := strings.Cut(v, "=")
		d, err := strconv.Atoi(device)
		if !ok || layer == "" || err != nil {
			return usagef("--pin %q is not LAYER=DEVICE with a device index", v)
		}
		p.Pins = append(p.Pins, planner.Pin{Pattern: layer, Device: d})
	}
	for _, v := range s.together {
		names := strings.Split(v, ",")
		if len(names) < 2 {
			return usagef("--together %q names one layer: it takes A,B", v)
		}
		p.Together = append(p.Together, names)
	}
	return nil
}
