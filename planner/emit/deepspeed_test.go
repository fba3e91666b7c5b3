package emit_test

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestDeepSpeed: a configuration reads as the plan's own settings.
// deepspeed.initialize (0.19.8) took the golden ones on the CPU.
func TestDeepSpeed(t *testing.T) {
	for _, name := range target(t, "deepspeed").Golden {
		input := golden(t, name)
		text, err := written(target(t, "deepspeed"), input)
		if err != nil {
			t.Fatal(name, err)
		}
		asked := input.Plan.Workload.DeepSpeed
		var read costmodel.Workload
		if err := read.ReadDeepSpeed(name, []byte(text)); err != nil {
			t.Fatal(name, err)
		}
		set := read.DeepSpeed
		if set.Asked.MicroBatch != 2 || set.Asked.Accumulation != 4 || set.Asked.TrainBatch != 64 {
			t.Errorf("%s reads as %+v", name, set.Asked)
		}
		if asked != nil {
			set.Asked = asked.Asked
			if *set != *asked {
				t.Errorf("%s reads as %+v, want %+v", name, *set, *asked)
			}
		}
	}
}

// TestAccumulationType: fp32 gradients need the section of data types, except
// with fp32 reduction: that is a 16-bit module without a precision section.
func TestAccumulationType(t *testing.T) {
	for _, c := range []struct{ gradients, reduction, types, bf16 bool }{
		{false, false, false, true},
		{true, false, true, true},
		{true, true, false, false},
		{false, true, false, false},
	} {
		input := golden(t, "zero3")
		work := &input.Plan.Workload
		if err := work.ReadDeepSpeed("ds.json", []byte(`{"zero_optimization": {"stage": 3}}`)); err != nil {
			t.Fatal(err)
		}
		work.DeepSpeed.FP32Gradients, work.DeepSpeed.FP32Reduction = c.gradients, c.reduction
		text, err := written(target(t, "deepspeed"), input)
		if err != nil {
			t.Fatal(err)
		}
		if types, bf16 := strings.Contains(text, "data_types"), strings.Contains(text, "bf16"); types != c.types || bf16 != c.bf16 {
			t.Errorf("%+v:\n%s", c, text)
		}
	}
}

func TestDeepSpeedUsage(t *testing.T) {
	input := golden(t, "zero3")
	input.Plan.Workload.DeepSpeed = nil
	usage, note := target(t, "deepspeed").Usage(input, "ds.json")
	if !strings.Contains(usage, `deepspeed --num_gpus 8 `) || !strings.Contains(usage, `config="ds.json"`) || !strings.Contains(note, "deepspeed.zero.Init") {
		t.Errorf("%s; %s", usage, note)
	}
	usage, _ = target(t, "ms-swift").Usage(input, "ds.json")
	const want = "NPROC_PER_NODE=8 swift sft --model MODEL --deepspeed ds.json --torch_dtype bfloat16 --bf16 true --tuner_type full --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_length 1024 --gradient_checkpointing false --dataset DATASET"
	if usage != want {
		t.Errorf("%s\nwant %s", usage, want)
	}
}
