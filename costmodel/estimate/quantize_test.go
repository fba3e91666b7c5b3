package estimate_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

func config(t *testing.T, text string) *modelgraph.Graph {
	t.Helper()
	g := fixtures.Must(hf.FromConfig("config.json", []byte(text)))(t)
	return g
}

const (
	llama2  = `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000, "torch_dtype": "float16"}`
	llama31 = `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}`
)

// TestNF4Weights checks Llama-2-7B's size with nested statistics: 3.866 GB loaded, and 4.39 GB with
// adapters, as PEFT's prepare_model_for_kbit_training casts unquantised weights to fp32.
func TestNF4Weights(t *testing.T) {
	g := config(t, llama2)
	for _, c := range []struct {
		mode costmodel.Mode
		want float64
	}{{costmodel.Load, 3.866e9}, {costmodel.Train, 4.39e9}} {
		w := costmodel.Workload{Mode: c.mode, Quantize: value.NF4, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
		if c.mode == costmodel.Train {
			w.LoRARank, w.LoRATargets = 1, []string{"q_proj"}
		}
		w, err := estimate.Resolve(g, w)
		if err != nil {
			t.Fatal(err)
		}
		table := fixtures.Must(estimate.Table(g, w))(t)
		got := -w.LoRARank * 32 * 4 * (4096 + 4096)
		for i := range table.Units {
			got += table.Units[i].Params
		}
		if math.Abs(float64(got)/c.want-1) > 6e-4 { // printed to three or four digits
			t.Errorf("%s: %d bytes, want %.3g", c.mode, got, c.want)
		}
	}
}

// quantRow is a run of measure_more.py on a base that PEFT did not prepare.
type quantRow struct {
	Model, What string
	Batch, Seq  int64
	Opts        struct {
		R       int64
		Targets []string
		Quant   string
		Prep    int
	}
	DeviceMap map[string]string `json:"device_map"`
	Peak      []int64           `json:"peak_allocated"`
}

// TestUnprepared checks 4-bit and 8-bit bases in a 16-bit stream (bitsandbytes 0.50, threshold 0).
func TestUnprepared(t *testing.T) {
	const worst = .2 // percent; 4 bits: statistics of 3.5 MiB take the 4 MiB that a weight's copy left
	data := fixtures.Must(os.ReadFile("../../fixtures/measured/more2.json"))(t)
	var rows []quantRow
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	dev := gpu.Device(costmodel.Train)
	seen := 0
	for _, r := range rows {
		if r.Opts.Quant == "" || r.Opts.Prep > 0 {
			continue
		}
		seen++
		g := config(t, llama31)
		w := costmodel.Workload{
			Mode: costmodel.Train, Batch: r.Batch, Seq: r.Seq, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW,
			LoRARank: r.Opts.R, LoRATargets: r.Opts.Targets, Quantize: value.Int8, LossOnly: true,
		}
		if r.Opts.Quant == "nf4" {
			w.Quantize = value.NF4
		}
		w, err := estimate.Resolve(g, w)
		if err != nil {
			t.Fatal(err)
		}
		table := fixtures.Must(estimate.Unprepared(g, w, true))(t)
		owned := make([][]*costmodel.Unit, len(r.Peak))
		for u := range table.Units {
			d := fixtures.Must(strconv.Atoi(r.DeviceMap[table.Units[u].Name]))(t)
			owned[d] = append(owned[d], &table.Units[u])
		}
		for d, measured := range r.Peak {
			p := timeline.DeviceMap(w.Mode, owned[d], timeline.ResidentOn(table, d, &dev, false)).Peak()
			got := p.Memory.Total()
			off := 100 * (float64(got)/float64(measured) - 1)
			t.Logf("%-5s GPU %d: predicted %d, measured %d, %+.3f %% (%+.2f MiB) at %s", r.Opts.Quant, d, got, measured, off, float64(got-measured)/(1<<20), p.At)
			if math.Abs(off) > worst {
				t.Errorf("%s, GPU %d: off by %+.2f %%", r.Opts.Quant, d, off)
			}
		}
	}
	if seen == 0 {
		t.Fatal("no rows")
	}
}

// TestQuantisedUnderFSDP: bitsandbytes has no int8 weights that are cut. Of nf4
// the storage is cut, and every GPU keeps the statistics.
func TestQuantisedUnderFSDP(t *testing.T) {
	for quantize, want := range map[string]string{"int8": "bitsandbytes has no form"} {
		for _, strategy := range []costmodel.Strategy{costmodel.FSDP, costmodel.HSDP} {
			w := costmodel.Workload{Mode: costmodel.Train, Strategy: strategy, Quantize: quantize, LoRARank: 16, LoRATargets: []string{"all-linear"}, World: 2}
			_, err := estimate.Resolve(packedModel(t, ""), w)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "strategy=ddp") {
				t.Errorf("%s under %s: %v", quantize, strategy, err)
			}
		}
	}
}
