package ask

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
)

// Topics returns the help pages that are not about a command: devmap help NAME.
func Topics() []*cobra.Command {
	pages := []struct{ name, short, text string }{
		{"precision", "Values of --precision, and what engines call them", precisionTopic},
		{"presets", "Values of --preset, and what bf16: true means", ""},
		{"strategies", "Strategies, engines and pipeline schedules", strategiesTopic()},
		{"optimizers", "Values of --optimizer and their memory", optimizersTopic},
		{"offload", "Values of --offload: weights outside the GPUs", offloadTopic},
		{"topology", "Topology files: GPUs, hosts and links", topologyTopic},
		{"environment", "Variables and config files that set defaults", environmentTopic},
		{"exit-codes", "Exit statuses of every command", exitTopic},
	}
	topics := make([]*cobra.Command, len(pages))
	for i, page := range pages {
		topics[i] = &cobra.Command{Use: page.name, Short: page.short, Long: strings.TrimSpace(page.text)}
	}
	topics[1].SetHelpFunc(func(cmd *cobra.Command, args []string) { // it reads all presets, which no other command needs
		cmd.Long = presetsTopic()
		cmd.Root().HelpFunc()(cmd, args)
	})
	return topics
}

const precisionTopic = `Values of --precision, and what each engine calls them. States are those of the
optimizer.

  bf16-true   weights, gradients and states bf16
                DeepSpeed     bf16 with enabled, bf16_master_weights_and_grads
                              and bf16_optimizer_states
                Accelerate    mixed_precision="no", the model loaded in bf16
                Transformers  the model loaded in bf16; bf16=True adds autocast
                              to such weights and keeps the same states
                Lightning     precision="bf16-true"
                FSDP2         a bf16 model, no MixedPrecisionPolicy
  bf16-mixed  compute in bf16; master weights and states fp32
                DeepSpeed     bf16 with enabled (bf16 weights, fp32 master)
                Accelerate    mixed_precision="bf16", the model in fp32
                Transformers  bf16=True, the model in fp32. Accelerate's FSDP
                              also casts a bf16 model to fp32
                Lightning     precision="bf16-mixed"
                FSDP2         an fp32 model, MixedPrecisionPolicy(param_dtype=
                              bfloat16, reduce_dtype=float32)
  16-mixed    bf16-mixed with fp16 and a loss scale
                DeepSpeed     fp16 with enabled
                Accelerate    mixed_precision="fp16"
                Transformers  fp16=True
                Lightning     precision="16-mixed"
                FSDP2         MixedPrecisionPolicy(param_dtype=float16,
                              reduce_dtype=float32)
  16-true     bf16-true with fp16
                DeepSpeed     not on GPUs alone: fp16_master_weights_and_grads
                              needs the optimizer on the CPU
                Accelerate    mixed_precision="no", the model loaded in fp16
                Transformers  the model loaded in fp16
                Lightning     precision="16-true"
                FSDP2         an fp16 model, no MixedPrecisionPolicy
  32-true     all in fp32
                DeepSpeed     neither section, the model in fp32
                Accelerate    mixed_precision="no", the model in fp32
                Transformers  neither bf16 nor fp16, the model in fp32
                Lightning     precision="32-true"
                FSDP2         an fp32 model, no MixedPrecisionPolicy

--float8 adds torchao's 8-bit products to bf16-true and bf16-mixed. Weights keep
their type, and 8-bit copies of each product's operands come and go:

  tensorwise           one scale for a tensor
                Accelerate    mixed_precision="fp8", backend AO, and
                              enable_fsdp_float8_all_gather=false
                axolotl       fp8: true
  tensorwise-gathered  FSDP2 also gathers weights in 8 bits
                Accelerate    mixed_precision="fp8", backend AO
                axolotl       fp8_enable_fsdp_float8_all_gather: true
  rowwise              one scale for each row
                axolotl       fp8_config: {recipe: rowwise}

devmap does not count TransformerEngine and MS-AMP; AO is the nearest backend.
LLaMA-Factory 0.9.5 accepts fp8: true, and trains without it.

Without --precision devmap takes the type of the checkpoint or config. Under
zero1, zero2 and zero3 it takes bf16-mixed for a bf16 model and 16-mixed for an
fp16 model, as "bf16": {"enabled": true} and "fp16": {"enabled": true} do.`

// presetsTopic lists the presets with the packages that their defaults are from.
func presetsTopic() string {
	text := `Values of --preset: the code path of a training program, and its defaults.
Flags that you give win.

  auto                             the code path of transformers if Accelerate
                                   runs --strategy (device-map, ddp, fsdp,
                                   hsdp, zero1, zero2, zero3), else that of
                                   accelerate-loop; no other default changes
  accelerate-loop                  a loop written by hand: it keeps the logits
                                   of a device map; FSDP2 wraps each block and
                                   the model
`
	programs := map[string]string{}
	for _, preset := range presets() {
		programs[preset.Name], _, _ = strings.Cut(preset.Program, ", ")
	}
	var configs, refused []string
	for _, name := range flagNamed("preset").field.Values[1:] {
		switch {
		case refusedPreset(name):
			refused = append(refused, name)
		case strings.HasPrefix(name, "openpi:"):
			configs = append(configs, name)
		default:
			text += fmt.Sprintf("  %-31s  %s\n", name, programs[name])
		}
	}
	text += "\nOpenPI's training on JAX, by the name of its config:\n\n  " + strings.ReplaceAll(out.Wrap(strings.Join(configs, ", "), 76), "\n", "\n  ") +
		"\n\n" + out.Wrap("devmap refuses these and names what it does not count: "+strings.Join(refused, ", ")+".", 78) + "\n\n"
	return text + bf16Topic
}

// refusedPreset reports a preset whose program devmap does not count.
func refusedPreset(name string) bool {
	if name == pipelinePreset { // it is for diffusion pipelines
		return false
	}
	var fault *costmodel.FieldError
	err := estimate.CheckPlaced(&costmodel.Workload{Preset: name, Mode: costmodel.Train, Strategy: costmodel.FSDP})
	return errors.As(err, &fault) && fault.Field == "preset"
}

const bf16Topic = `--preset FILE reads YAML or JSON of LLaMA-Factory, axolotl, ms-swift,
TrainingArguments, accelerate config, TRL or torchtune.

The --precision that bf16: true means, by the type that weights are loaded in:

  Program        Weights  Method  DDP, one GPU  FSDP2
  transformers   bf16     full    bf16-true     bf16-mixed: Accelerate makes
                                                trained weights fp32
                 fp32     full    bf16-mixed    bf16-mixed
                 bf16     LoRA    bf16-mixed    bf16-mixed: bf16 base, fp32
                                                adapters
                 fp32     LoRA    bf16-mixed with --preset accelerate-loop
  trl-sft        as transformers; a model given by name is loaded in fp32
  ms-swift       as transformers; bf16 follows the type of the checkpoint
  llamafactory   bf16     full    bf16-mixed    bf16-mixed: trained weights are
                                                fp32 unless pure_bf16
  axolotl        bf16     full    bf16-true     bf16-true: its own FSDP2 path
  lightning      fp32     full    bf16-mixed ("bf16-true" is bf16-true)
  torchtune      bf16     any     bf16-true (dtype: bf16)
  torchtitan     fp32     full    bf16-mixed, gradients reduced in fp32

With LoRA, --precision bf16-mixed keeps the base in its stored type under a
trainer's preset. Under accelerate-loop it means an fp32 base.`

// strategiesTopic lists the strategies with their engines.
func strategiesTopic() string {
	does := map[costmodel.Strategy]string{
		costmodel.DeviceMap: "layers in a row over the GPUs; one GPU works at a time",
		costmodel.Pipeline:  "stages of layers that work on micro-batches at once",
		costmodel.DDP:       "every GPU has the whole model and its own batch",
		costmodel.Zero1:     "DDP with sharded optimizer states (DeepSpeed stage 1)",
		costmodel.Zero2:     "zero1 with sharded gradients (DeepSpeed stage 2)",
		costmodel.Zero3:     "zero2 with sharded parameters (DeepSpeed stage 3)",
		costmodel.FSDP:      "FSDP2: parameters, gradients and states sharded",
		costmodel.HSDP:      "FSDP2 in groups of GPUs, replicated between groups",
	}
	var text strings.Builder
	text.WriteString("Values of --strategy, and the engines (--runtime) that run each, default first:\n\n")
	for _, strategy := range costmodel.Strategies() {
		fmt.Fprintf(&text, "  %-11s %s\n  %11s engines: %s\n", strategy, does[strategy], "", strings.Join(strategy.Traits().Runtimes, ", "))
	}
	fmt.Fprintf(&text, "  %-11s the fastest strategy that fits (plan); estimate shows all\n", costmodel.Auto)
	text.WriteString(`
device-map and pipeline use --batch as the whole batch. The others use it as the
batch of each GPU. devmap estimate takes it as the batch of all GPUs together.

Values of --schedule, for pipelines:

`)
	schedules := map[string]string{
		string(costmodel.OneFOneB):    "one forward, one backward in turn; few micro-batches in flight",
		string(costmodel.GPipe):       "all forwards, then all backwards",
		string(costmodel.Interleaved): "1F1B with several stages per GPU (--virtual-stages)",
		string(costmodel.ZBH1):        "1F1B with split backwards: a third of the bubble (devmap)",
		string(costmodel.ZBV):         "two stages per GPU in a V, no bubble (devmap)",
		string(costmodel.VHalf):       "a V with half of the activations (devmap)",
		string(costmodel.VMin):        "a V with the fewest activations (devmap)",

		string(costmodel.AutoSchedule): "the shortest step: order, cut, and blocks with --recompute auto",
	}
	names := flagNamed("schedule").values
	for _, name := range names {
		fmt.Fprintf(&text, "  %-11s %s\n", name, schedules[name])
	}
	text.WriteString(`
The engine decides which tensors are alive, so the same strategy can need
different memory under two engines. The engine devmap is devmap's own executor
(devmap run, devmap simulate).`)
	return text.String()
}

const optimizersTopic = `
Values of --optimizer. Sizes are per trained parameter. States have the type of
the weights that they update: 4 bytes a number in fp32, 2 in bf16.

  adamw          fused AdamW: two states
  adamw-foreach  AdamW without fusion: two states, and temporary tensors of the
                 size of the parameters during the step
  adamw-8bit     bitsandbytes AdamW: two states of one byte. Transformers'
                 Trainer keeps fp32 states for embeddings
  paged-adamw-8bit, paged-adamw-32bit
                 the same, and fp32, with states in CUDA's unified memory:
                 outside PyTorch's allocator, on the GPU while there is room
  adamw-torch-8bit, adamw-torch-4bit
                 torchao AdamW: two states of one byte or half a byte, and fp32
                 temporaries of the largest parameter during the step
  sgd            no state
  sgd-momentum   one state
  adafactor      a row and a column of factors for each matrix
  muon           one state for matrices, AdamW for the other parameters

Transformers calls adamw "adamw_torch_fused", and adamw-foreach "adamw_torch".
--optimizer-in-backward updates each parameter when its gradient is there, as
torchtune's optimizer_in_bwd does: gradients exist one at a time.
With --lora-rank only the adapters are trained and have states.`

const offloadTopic = `
Values of --offload for language models, in inference with Accelerate:

  none        everything stays on the GPUs
  cpu         units that do not fit move to host memory
  disk        units that do not fit move to disk

devmap moves as few bytes as possible. A topology file can limit the host memory
(host_memory_bytes) and give the copy rates (cpu_bytes_per_second,
disk_bytes_per_second); see devmap help topology.

In training, DeepSpeed offloads: --offload cpu with --strategy zero1, zero2 or
zero3 keeps optimizer states in host memory. zero3 keeps the weights there too.
Other settings need a file: offload_optimizer and offload_param of --ds-config.
With --strategy fsdp or hsdp it is FSDP2's CPUOffloadPolicy (Accelerate's
fsdp_offload_params): parameters, gradients and optimizer states of each GPU.
Under devmap's own engine, --offload-activations names the blocks of a pipeline
whose activations wait in host memory: full, a list, or auto for the shortest
step that fits.

Values of --offload for diffusion pipelines on one GPU, as diffusers names them:

  model       one component on the GPU at a time
  sequential  one module on the GPU at a time
  group       one block on the GPU at a time`

const topologyTopic = `
A topology file describes GPUs that --gpus and --gpu cannot: different models,
several hosts, memory in use, measured links.

  {"format_version": "devmap.topology/v1",
   "devices": [
    {"name": "h100-80gb", "host": "a", "host_bytes_per_second": 2.5e10},
    {"name": "rtx-4090", "reserved_bytes": 2147483648, "host": "b",
     "host_bytes_per_second": 2.5e10}],
   "links": [
    {"from": 0, "to": 1, "bytes_per_second": 2e10, "latency_seconds": 1e-5}]}

  name             a GPU that devmap knows fills in the fields that you omit
  capacity_bytes   memory of a GPU that devmap does not know
  reserved_bytes   memory that other processes use
  host             GPUs with the same host share its links

devmap probe measures this machine and writes such a file:

  devmap probe -o machine.json
  devmap plan MODEL --topology machine.json

--gpus auto measures and plans in one command.`

const environmentTopic = `
Each flag of devmap plan, except --output, has a variable that sets its default:
DEVMAP_ and the name in capitals, with _ for -. Examples:

  export DEVMAP_GPU=h200-141gb DEVMAP_GPUS=4
  export DEVMAP_TIME_LIMIT=30s

A file devmap.toml sets the same defaults, with the names of the flags as keys:

  gpu = "rtx-4090"
  gpus = ["24GiB", "24GiB"]
  reserve = "1GiB"

The first of these that has a value wins:

  1. the flag on the command line
  2. the variable
  3. devmap.toml in the working directory
  4. devmap.toml in the user's folder: $XDG_CONFIG_HOME/devmap, else
     ~/.config/devmap (Windows: %AppData%\devmap)

The defaults apply to plan, estimate, check and inspect, and a note names each
that acted. A plan file keeps its own settings: they win over these defaults.
DEVMAP_CONFIG=FILE reads FILE in place of 3 and 4.

Other variables:

  NO_COLOR                       no colour
  HF_HOME, HF_HUB_CACHE          where Hugging Face models are looked up
  MODELSCOPE_CACHE               where ModelScope models are looked up
  CUDA_VISIBLE_DEVICES           the GPUs that watch and run use`

const exitTopic = `
Exit statuses of all commands:

  0        done
  1        a fault in a file or a model, or an error of the machine
  2        a wrong call: an unknown flag, a setting that is not supported
  3        nothing fits; devmap lists changes that would
  4        a check failed: a wrong device map, a failed verdict
  128 + n  ended by signal n, such as 130 for Ctrl-C

devmap watch exits with the status of its command; with --strict it exits with 4
if the verdict is fail.

With --json an error is also printed to standard output:

  {"format_version": "devmap.error/v1", "error": "…", "status": 3,
   "remedies": [{"flags": ["--gpus", "3"], "without": [], "notes": [],
                 "fits": true, "text": "--gpus 3: …"}]}`
