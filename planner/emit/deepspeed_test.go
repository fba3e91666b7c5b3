package emit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// zeroPlan is a plan of DeepSpeed's on 8 GPUs.
func zeroPlan(change func(*costmodel.Workload)) *devicemap.Plan {
	plan := &devicemap.Plan{Workload: costmodel.Workload{
		Mode: costmodel.Train, Strategy: costmodel.Zero3, Runtime: "deepspeed", Batch: 8, MicroBatches: 4, Seq: 1024, World: 8, ShardDegree: 8,
		Precision: costmodel.BF16Mixed, Optimizer: costmodel.AdamW,
	}}
	plan.Model.Name = "m"
	change(&plan.Workload)
	return plan
}

// TestDeepSpeed holds configurations to the committed ones, which
// deepspeed.initialize (0.19.8) took on the CPU.
func TestDeepSpeed(t *testing.T) {
	read := func(text string) func(*costmodel.Workload) {
		return func(w *costmodel.Workload) {
			if err := w.ReadDeepSpeed("ds.json", []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*costmodel.Workload)
	}{
		{"zero2", func(w *costmodel.Workload) { w.Strategy = costmodel.Zero2 }},
		{"zero3", read(`{"gradient_clipping": 1.0, "zero_optimization": {"stage": 3, "reduce_bucket_size": 16777216, "stage3_prefetch_bucket_size": 0,
			"overlap_comm": false, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu", "pin_memory": false}}}`)},
		{"zero1-true", func(w *costmodel.Workload) { w.Strategy, w.Precision = costmodel.Zero1, costmodel.BF16True }},
	} {
		var b bytes.Buffer
		if err := target(t, "deepspeed").Write(&b, zeroPlan(c.change)); err != nil {
			t.Fatal(c.name, err)
		}
		golden := filepath.Join("testdata", "deepspeed-"+c.name+".json")
		if os.Getenv("UPDATE_GOLDEN") == "1" {
			if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s is\n%s, want\n%s", golden, b.Bytes(), want)
		}
		var swift bytes.Buffer
		if err := target(t, "ms-swift").Write(&swift, zeroPlan(c.change)); err != nil || !bytes.Equal(swift.Bytes(), want) {
			t.Errorf("%s: ms-swift gets another file (%v)", c.name, err)
		}
		// What is written reads as what was asked for.
		plan := zeroPlan(c.change)
		var read costmodel.Workload
		if err := read.ReadDeepSpeed(golden, b.Bytes()); err != nil {
			t.Fatal(golden, err)
		}
		set := read.DeepSpeed
		if set.Asked.MicroBatch != 2 || set.Asked.Accumulation != 4 || set.Asked.TrainBatch != 64 {
			t.Errorf("%s reads as %+v", golden, set.Asked)
		}
		if asked := plan.Workload.DeepSpeed; asked != nil {
			set.Asked = asked.Asked
			if *set != *asked {
				t.Errorf("%s reads as %+v, want %+v", golden, *set, *asked)
			}
		}
	}
}

func TestDeepSpeedUsage(t *testing.T) {
	plan := zeroPlan(func(*costmodel.Workload) {})
	usage, note := target(t, "deepspeed").Usage(plan, "ds.json")
	if !strings.Contains(usage, `deepspeed --num_gpus 8 `) || !strings.Contains(usage, `config="ds.json"`) || !strings.Contains(note, "deepspeed.zero.Init") {
		t.Errorf("%s; %s", usage, note)
	}
	usage, _ = target(t, "ms-swift").Usage(plan, "ds.json")
	const want = "NPROC_PER_NODE=8 swift sft --model MODEL --deepspeed ds.json --torch_dtype bfloat16 --bf16 true --tuner_type full --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_length 1024 --gradient_checkpointing false --dataset DATASET"
	if usage != want {
		t.Errorf("%s\nwant %s", usage, want)
	}
	fsdp := &devicemap.Plan{Workload: costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.FSDP, Runtime: "torch"}}
	if err := target(t, "deepspeed").Write(new(bytes.Buffer), fsdp); err == nil || !strings.Contains(err.Error(), "is not DeepSpeed's: its strategy is fsdp under torch") {
		t.Errorf("fsdp: %v", err)
	}
	if err := target(t, "deepspeed").Write(new(bytes.Buffer), zeroPlan(func(w *costmodel.Workload) { w.Mode = costmodel.Infer })); err == nil || !strings.Contains(err.Error(), "deepspeed.initialize trains") {
		t.Errorf("inference: %v", err)
	}
}
