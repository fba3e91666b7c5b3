package zero_test

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/internal/zero"
)

// full is a file as users write them, numbers in both notations.
const full = `{
	"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 4, "gradient_clipping": "auto",
	"bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
	"zero_optimization": {
		"stage": 3, "overlap_comm": false, "contiguous_gradients": true, "reduce_bucket_size": "auto", "sub_group_size": 1e9,
		"stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 200000000,
		"stage3_gather_16bit_weights_on_model_save": true,
		"offload_optimizer": {"device": "cpu", "pin_memory": false}, "offload_param": {"device": "none"}}}`

func TestRead(t *testing.T) {
	got, err := zero.Read("ds.json", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := zero.Defaults(3)
	want.ReduceBucket, want.Prefetch, want.Persistence, want.Live = zero.Auto, zero.Auto, zero.Auto, 2e8
	want.Overlap, want.GatherOnSave, want.Clipping = false, true, 1
	want.OffloadOptimizer, want.PageableOptimizer = true, true
	want.Asked = zero.Asked{MicroBatch: zero.Auto, Accumulation: 4, Section: zero.SectionBF16, BF16: "true", FP16: zero.Absent, Optimizer: "adamw"}
	if *got != want {
		t.Errorf("%+v, want %+v", *got, want)
	}
	// transformers/integrations/deepspeed.py, trainer_config_finalize.
	got.Fill(1000)
	if got.ReduceBucket != 1_000_000 || got.Prefetch != 900_000 || got.Persistence != 10_000 {
		t.Errorf("filled in: %+v", got)
	}
	if err := got.Fault(); err != nil {
		t.Error(err)
	}
}

// TestReadSections checks the meaning of the sections of precision.
func TestReadSections(t *testing.T) {
	for text, want := range map[string]string{
		`"bf16": {"enabled": true}`: zero.SectionBF16,
		`"bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}`: zero.SectionTrue,
		`"fp16": {"enabled": true}`:                                zero.SectionFP16,
		`"fp16": {"enabled": false}`:                               zero.SectionNone,
		`"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}`: "",
	} {
		got, err := zero.Read("ds.json", []byte(`{`+text+`, "zero_optimization": {"stage": 2}}`))
		if err != nil || got.Asked.Section != want {
			t.Errorf("%s: %+v %v, want %q", text, got, err, want)
		}
	}
}

// TestReadEnabled: a section that is absent is not one without "enabled".
func TestReadEnabled(t *testing.T) {
	got, err := zero.Read("ds.json", []byte(`{"bf16": {}, "zero_optimization": {"stage": 2}}`))
	if err != nil || got.Asked.BF16 != "" || got.Asked.FP16 != zero.Absent || got.Asked.Section != zero.SectionNone {
		t.Errorf("%+v %v", got, err)
	}
	got, err = zero.Read("ds.json", []byte(`{"bf16": {"enabled": "auto"}, "fp16": {"enabled": false}, "zero_optimization": {"stage": 2}}`))
	if err != nil || got.Asked.BF16 != "auto" || got.Asked.FP16 != "false" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestReadFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{}`, "ds.json: there is no zero_optimization"},
		{`[`, "ds.json"},
		{`{"zero_optimization": {"stage": 0}}`, "zero_optimization.stage: 0: 1, 2 and 3"},
		{`{"zero_optimization": {"stage": 3, "stage": 2}}`, "duplicate"},
		{`{"zero_optimization": {"stage": 3, "reduce_buckets": 1}}`, "zero_optimization.reduce_buckets: DeepSpeed has no such key (nearest: reduce_"},
		{`{"zero_optimisation": {"stage": 3}}`, "there is no zero_optimization"},
		{`{"train_micro_batch_size": 1, "zero_optimization": {"stage": 3}}`, "train_micro_batch_size: DeepSpeed has no such key (nearest: train_batch_size, train_micro_batch_size_per_gpu)"},
		{`{"zero_optimization": {"stage": 3, "sub_group_size": 1.5}}`, "zero_optimization.sub_group_size: 1.5: it must be a whole number from 0 to 2^50"},
		{`{"zero_optimization": {"stage": 2, "reduce_bucket_size": -5}}`, `zero_optimization.reduce_bucket_size: -5: it must be a whole number from 0 to 2^50, or "auto"`},
		{`{"zero_optimization": {"stage": 3, "sub_group_size": "auto"}}`, `zero_optimization.sub_group_size: "auto": it must be a whole number from 0 to 2^50`},
		{`{"zero_optimization": {"stage": 3, "overlap_comm": 1}}`, "zero_optimization.overlap_comm: 1 is not true or false"},
		{`{"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}`, "stage 2 keeps parameters whole on every GPU"},
		{`{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}}}`, `offload_optimizer.device: "nvme" is not modelled`},
		{`{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin": true}}}`, "offload_optimizer.pin: DeepSpeed has no such key (nearest: ratio"},
		{`{"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}`, "zero_hpz_partition_size: 8"},
		{`{"bf16": {"enabled": true}, "fp16": {"enabled": true}, "zero_optimization": {"stage": 3}}`, "fp16.enabled: true, and bf16.enabled is true"},
		{`{"bf16": {"enabled": true, "bf16_optimizer_states": true}, "zero_optimization": {"stage": 3}}`, "takes both or none"},
		{`{"torch_autocast": {"enabled": true}, "zero_optimization": {"stage": 3}}`, "torch_autocast: it changes what GPUs hold"},
	} {
		if _, err := zero.Read("ds.json", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}

// FuzzRead: the reader fails only with an error, and its values are in range once sizes are filled in.
func FuzzRead(f *testing.F) {
	f.Add(full)
	f.Add(`{"zero_optimization": {"stage": 1e0, "reduce_bucket_size": 5e8}}`)
	f.Add(`{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}, "fp16": null}`)
	f.Fuzz(func(t *testing.T, text string) {
		set, err := zero.Read("ds.json", []byte(text))
		if err != nil {
			return
		}
		set.Fill(4096)
		if set.Stage < 1 || set.Stage > 3 || set.Live < 0 || set.Prefetch < 0 || set.Persistence < 0 {
			t.Errorf("%q reads as %+v", text, set)
		}
	})
}
