package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel/catalogue"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// shared are the flags of plan, check and inspect that say what the model is
// asked to do, and on what.
type shared struct {
	gpus, gpu, topology      string
	mode, strategy, runtime  string
	precision, optimizer     string
	recompute, objective     string
	offload                  string
	batch, microBatches, seq int64
	targetSeq, newTokens     int64
	images, imageSize        int64
	schedule, quantize       string
	loss, attention          string
	virtualStages            int64
	shardDegree, loraRank    int64
	loraTargets              []string
	loraPrecision            string
	lossOnly, views, ema     bool
	contiguous               bool
	pins, together, reserve  []string
	json                     bool
}

func (s *shared) workload(f *pflag.FlagSet) {
	f.StringVar(&s.mode, "mode", "infer", "what to plan for: "+values("mode"))
	f.Int64Var(&s.batch, "batch", 1, "sequences a step")
	f.Int64Var(&s.microBatches, "micro-batches", 1, "equal parts of the batch")
	f.Int64Var(&s.seq, "seq", 0, "tokens a sequence (2048, or the model's maximum if smaller)")
	f.Int64Var(&s.targetSeq, "target-seq", 0, "decoder tokens of an encoder–decoder (as --seq)")
	f.Int64Var(&s.newTokens, "new-tokens", 0, "tokens generated after the prompt (infer)")
	f.Int64Var(&s.images, "images", 0, "images a sequence (tiles, where a model cuts them up); their tokens are part of --seq")
	f.Int64Var(&s.imageSize, "image-size", 0, "side of the images in pixels, where the model takes any (1 megapixel)")
	f.StringVar(&s.precision, "precision", "", values("precision")+" (as the checkpoint or config says; under zero1–3 bf16-mixed or 16-mixed)")
	f.StringVar(&s.optimizer, "optimizer", "adamw", values("optimizer"))
	f.StringVar(&s.recompute, "recompute", "none", "activations computed again in backward: "+values("recompute"))
	f.StringVar(&s.strategy, "strategy", "device-map", "how the model is spread: "+values("strategy"))
	f.StringVar(&s.runtime, "runtime", "", "whose tensors are counted: "+values("runtime")+" (accelerate for device-map, deepspeed for zero1–3, else torch)")
	f.StringVar(&s.schedule, "schedule", "", "of a pipeline: "+values("schedule")+" (1f1b)")
	f.Int64Var(&s.virtualStages, "virtual-stages", 0, "runs a GPU, interleaved (2)")
	f.Int64Var(&s.shardDegree, "shard-degree", 0, "GPUs that a parameter is cut over (all; hsdp: half)")
	f.Int64Var(&s.loraRank, "lora-rank", 0, "rank of LoRA adapters; the model is frozen (none)")
	f.StringSliceVar(&s.loraTargets, "lora-targets", nil, "modules that get adapters, by the end of their names: q_proj,v_proj")
	f.StringVar(&s.loraPrecision, "lora-precision", "", "type of the adapters' weights: "+values("lora-precision")+" (fp32, as PEFT makes them; the base's under fsdp, hsdp and zero1–3)")
	f.StringVar(&s.quantize, "quantize", "off", "storage of the frozen linear layers: "+values("quantize"))
	f.StringVar(&s.loss, "loss", "eager", "how the loss is computed: "+values("loss"))
	f.StringVar(&s.attention, "attention", "sdpa", "attention kernel: "+values("attention"))
	f.BoolVar(&s.lossOnly, "loss-only", false, "the caller keeps the loss alone, not the logits (always so under torch's engines)")
	f.BoolVar(&s.views, "gradient-as-bucket-view", false, "DDP's gradients are views of its buckets")
	f.BoolVar(&s.ema, "ema", false, "a moving average of the trained weights stays on the GPU")
}

func (s *shared) devices(f *pflag.FlagSet) {
	f.StringVar(&s.gpus, "gpus", "", "how many GPUs, or their capacities: 4, or 80GiB,80GiB,24GiB, or 4x24GB")
	f.StringVar(&s.gpu, "gpu", catalogue.DefaultGPU, "GPU of the catalogue: "+strings.Join(catalogue.Names(), ", "))
	f.StringVar(&s.topology, "topology", "", "a topology file, instead of --gpus")
	f.StringArrayVar(&s.reserve, "reserve", nil, "bytes to leave free: one for all devices, or one each; given again, they add up")
}

func (s *shared) placement(f *pflag.FlagSet) {
	f.StringVar(&s.objective, "objective", "memory", "what is minimised: "+values("objective"))
	f.StringArrayVar(&s.pins, "pin", nil, "LAYER=DEVICE; the layer may end in *")
	f.StringArrayVar(&s.together, "together", nil, "A,B: layers that share a device")
	f.BoolVar(&s.contiguous, "contiguous", true, "one run of the chain a device; false: any unit on any device (device-map)")
	f.StringVar(&s.offload, "offload", "none", "units that may leave the GPUs: "+values("offload"))
}

// later are flags of the contract that this version takes only at their
// default. Those with named values are checked as choices.
var later = []struct{ name, def, what string }{
	{"tp", "1", "tensor parallel degree"},
	{"pp", "1", "pipeline parallel degree"},
	{"dp", "1", "data parallel degree"},
	{"cp", "1", "context parallel degree"},
	{"ep", "1", "expert parallel degree"},
	{"sequence-parallel", "off", "sequence parallelism"},
}

func (s *shared) later(f *pflag.FlagSet) {
	for _, l := range later {
		f.String(l.name, l.def, l.what+" (not built yet)")
		if err := f.MarkHidden(l.name); err != nil {
			panic(err) // the flag was made the line before
		}
	}
	f.Lookup("sequence-parallel").NoOptDefVal = "on"
}

// zeros refuses the numbers that count something and were given as nothing:
// left out, they have a default, which 0 would stand for without a word.
func zeros(cmd *cobra.Command) error {
	for _, name := range []string{"seq", "target-seq", "image-size", "virtual-stages", "shard-degree"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && (f.Value.String() == "0" || strings.HasPrefix(f.Value.String(), "-")) {
			return out.Usagef("--%s: %s is not 1 or more (left out: %s)", name, f.Value, leftOut[name])
		}
	}
	return nil
}

// leftOut is what leaving a number out means.
var leftOut = map[string]string{
	"seq": "2048, or the model's maximum if smaller", "target-seq": "as --seq", "image-size": "1 megapixel, or the model's own",
	"virtual-stages": "2", "shard-degree": "all GPUs; hsdp: half of them",
}

// refuse reports values that are unknown, and values that the contract has and
// this version has not.
func (s *shared) refuse(cmd *cobra.Command) error {
	if err := cmp.Or(checkChoices(cmd), s.named(cmd), zeros(cmd)); err != nil {
		return err
	}
	for _, l := range later {
		if f := cmd.Flags().Lookup(l.name); f != nil && f.Changed && f.Value.String() != l.def {
			built := "only " + l.def
			if l.def == "" || l.def == "0" {
				built = "none"
			}
			return notBuilt(l.name, f.Value.String(), built)
		}
	}
	return s.refuseAnywhere(cmd)
}
