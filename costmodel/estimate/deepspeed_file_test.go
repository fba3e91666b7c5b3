package estimate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

func ExampleResolve_deepSpeed() {
	workload := costmodel.Workload{Mode: costmodel.Train, World: 8}
	err := workload.ReadDeepSpeed("ds_config.json", []byte(`{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
		"bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	model, err := load.Model("llama-3.1-8b", load.Options{BuiltIn: fixtures.Models()})
	if err != nil {
		fmt.Println(err)
		return
	}
	workload, err = estimate.Resolve(model, workload)
	fmt.Println(workload.Strategy, workload.Batch, workload.MicroBatches, workload.Precision, workload.DeepSpeed.ReduceBucket, err)
	// Output: zero3 8 4 bf16-mixed 16777216 <nil>
}

// withFile is a workload under a configuration, resolved for a small Llama on 8 GPUs.
func withFile(t *testing.T, text string, workload costmodel.Workload) (costmodel.Workload, error) {
	t.Helper()
	set := fixtures.Must(zero.Read("ds.json", []byte(text)))(t)
	workload.Mode, workload.World, workload.DeepSpeed = costmodel.Train, 8, set
	return estimate.Resolve(fromConfig(t, `{"model_type": "llama", "torch_dtype": "bfloat16", `+tiny+`}`), workload)
}

// TestDeepSpeedFile: the workload gets the file's batch, precision, stage and optimizer.
func TestDeepSpeedFile(t *testing.T) {
	const zero3 = `"zero_optimization": {"stage": 3}`
	for _, c := range []struct {
		text         string
		asked        costmodel.Workload
		batch, steps int64
		precision    costmodel.Precision
	}{
		{`{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, ` + zero3 + `}`, costmodel.Workload{}, 8, 4, costmodel.BF16Mixed},
		{`{"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, ` + zero3 + `}`, costmodel.Workload{}, 2, 1, costmodel.BF16Mixed},
		{`{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "fp16": {"enabled": true}, ` + zero3 + `}`, costmodel.Workload{}, 8, 4, costmodel.FP16Mixed},
		{`{"train_batch_size": 64, "gradient_accumulation_steps": 2, "bf16": {"enabled": true}, ` + zero3 + `}`, costmodel.Workload{}, 8, 2, costmodel.BF16Mixed},
		{`{"train_batch_size": 64, "bf16": {"enabled": true}, ` + zero3 + `}`, costmodel.Workload{}, 8, 1, costmodel.BF16Mixed},
		{`{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"}, ` + zero3 + `}`, costmodel.Workload{Batch: 6, MicroBatches: 3}, 6, 3, costmodel.BF16Mixed},
		// Agreement is fine.
		{`{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, ` + zero3 + `}`, costmodel.Workload{Batch: 8, MicroBatches: 4, Strategy: costmodel.Zero3, Precision: costmodel.BF16Mixed}, 8, 4, costmodel.BF16Mixed},
		// No section: zero.Init makes the model in fp32.
		{`{` + zero3 + `}`, costmodel.Workload{}, 1, 1, costmodel.FP32True},
		{`{"zero_optimization": {"stage": 2}}`, costmodel.Workload{}, 1, 1, costmodel.BF16Mixed},
	} {
		got, err := withFile(t, c.text, c.asked)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got.Batch != c.batch || got.MicroBatches != c.steps || got.Precision != c.precision || !strings.HasPrefix(string(got.Strategy), "zero") {
			t.Errorf("%s: batch %d in %d, %s, %s", c.text, got.Batch, got.MicroBatches, got.Precision, got.Strategy)
		}
		again, err := estimate.Resolve(fromConfig(t, `{"model_type": "llama", "torch_dtype": "bfloat16", `+tiny+`}`), got)
		if err != nil || again.Batch != got.Batch || *again.DeepSpeed != *got.DeepSpeed {
			t.Errorf("%s: resolved again: %+v %v", c.text, again, err)
		}
	}
}

// TestDeepSpeedContradicts: file and workload must agree; the error has field and file's value.
func TestDeepSpeedContradicts(t *testing.T) {
	const text = `{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "optimizer": {"type": "SGD"}, "zero_optimization": {"stage": 3}}`
	for _, c := range []struct {
		text  string
		asked costmodel.Workload
		field string
		want  string
	}{
		{text, costmodel.Workload{Batch: 4}, "batch", "train_micro_batch_size_per_gpu 2 × gradient_accumulation_steps 4, which is batch=8"},
		{text, costmodel.Workload{MicroBatches: 2}, "micro_batches", "gradient_accumulation_steps 4"},
		{text, costmodel.Workload{Strategy: costmodel.Zero2}, "strategy", "zero_optimization.stage 3, which is strategy=zero3"},
		{text, costmodel.Workload{Precision: costmodel.FP32True}, "precision", "bf16.enabled, which is precision=bf16-mixed"},
		{text, costmodel.Workload{Optimizer: costmodel.AdamW}, "optimizer", `optimizer.type "sgd", which is optimizer=sgd`},
		{`{"train_batch_size": 10, "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}}`, costmodel.Workload{}, "batch", "train_batch_size 10, which is not train_micro_batch_size_per_gpu 2 × gradient_accumulation_steps 1 × 8 GPUs: 16 is"},
		{`{"optimizer": {"type": "OneBitAdam"}, "zero_optimization": {"stage": 1}}`, costmodel.Workload{}, "optimizer", "not modelled"},
	} {
		_, err := withFile(t, c.text, c.asked)
		var fault *costmodel.FieldError
		if !errors.As(err, &fault) || fault.Field != c.field || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s: %q", c.text, err, c.field, c.want)
		}
	}
}

// TestOffloadHost: the host memory of offload, compared with what was counted
// in the runs of fixtures/measured/fake_group_zero.jsonl.
func TestOffloadHost(t *testing.T) {
	for _, c := range []struct {
		text   string
		params int64 // of a rank
		want   string
	}{
		{`{"bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}`, 0, "2.59 GiB of host memory a GPU, 883.9 MiB of it pinned"},
	} {
		set := fixtures.Must(zero.Read("ds.json", []byte(c.text)))(t)
		g := fromConfig(t, `{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
			"num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "tie_word_embeddings": true, "torch_dtype": "bfloat16"}`)
		w := fixtures.Must(estimate.Resolve(g, costmodel.Workload{Mode: costmodel.Train, World: 8, DeepSpeed: set}))(t)
		table, err := estimate.Table(g, w)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, said := range table.Warnings {
			all = append(all, said.String())
		}
		if text := strings.Join(all, "\n"); !strings.Contains(text, c.want) {
			t.Errorf("%s\nwant %q", text, c.want)
		}
	}
}

// TestOffloadFrozen: offload_param moves frozen weights too, so that host memory has
// every parameter in 16 bits; packed weights are refused there, and nowhere else.
func TestOffloadFrozen(t *testing.T) {
	g := fromConfig(t, `{"model_type": "llama", "torch_dtype": "bfloat16", `+tiny+`}`)
	asked := costmodel.Workload{Mode: costmodel.Train, World: 2, Strategy: costmodel.Zero3, Precision: costmodel.BF16Mixed, LoRARank: 8, LoRATargets: []string{"all-linear"}, HostStates: true}
	w, err := estimate.Resolve(g, asked)
	if err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	weights := 2 * g.ParamCount()
	asked.Strategy = costmodel.Zero2 // which offloads the optimizer's states alone
	if w, err = estimate.Resolve(g, asked); err != nil {
		t.Fatal(err)
	}
	states := fixtures.Must(estimate.Table(g, w))(t)
	if table.HostBytes < weights || table.HostBytes > weights+2*states.HostBytes {
		t.Errorf("%d bytes in host memory, for weights of %d and states of about %d", table.HostBytes, weights, states.HostBytes)
	}
	for _, c := range []struct {
		strategy costmodel.Strategy
		quantize string
		offload  bool
		refused  bool
	}{
		{costmodel.Zero3, "nf4", true, true},
		{costmodel.Zero3, "int8", true, true},
		{costmodel.Zero3, "nf4", false, false},
		{costmodel.Zero2, "nf4", true, false},
	} {
		asked.Strategy, asked.Quantize, asked.HostStates = c.strategy, c.quantize, c.offload
		_, err := estimate.Resolve(g, asked)
		var fault *costmodel.FieldError
		if refused := errors.As(err, &fault) && fault.Field == "quantize" && strings.Contains(err.Error(), "offload_param"); refused != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
