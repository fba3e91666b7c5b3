package accuracy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// peerConfigs are the dimensions that the peers were measured with
// (measured/how/model_configs.py). Gemma's vocabulary there is PaliGemma's.
var peerConfigs = map[string]string{
	"llama-3.1-8b": `{"torch_dtype": "bfloat16", "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
		"num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false}`,
	"qwen2.5-3b": `{"torch_dtype": "bfloat16", "model_type": "qwen2", "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
		"num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true}`,
	"gemma-2b": `{"torch_dtype": "bfloat16", "model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18, "num_attention_heads": 8,
		"num_key_value_heads": 1, "head_dim": 256, "vocab_size": 257152, "tie_word_embeddings": true}`,
	"internlm2-20b": `{"torch_dtype": "bfloat16", "model_type": "llama", "hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 48, "num_attention_heads": 48,
		"num_key_value_heads": 8, "vocab_size": 92553, "tie_word_embeddings": false}`,
	// measured/how/measure_seeds.py
	"qwen2.5-vl-3b": `{"torch_dtype": "bfloat16", "model_type": "qwen2_5_vl", "tie_word_embeddings": true, "text_config": {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
		"num_attention_heads": 16, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true}, "vision_config": {"depth": 32, "hidden_size": 1280,
		"intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 2048, "patch_size": 14, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]}}`,
	"qwen2.5-32b": `{"torch_dtype": "bfloat16", "model_type": "qwen2", "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 40,
		"num_key_value_heads": 8, "vocab_size": 152064, "tie_word_embeddings": false}`,
}

// row is one measured run under a device map.
type row struct {
	source, model, mode string
	w                   costmodel.Workload
	flat                devicemap.Flat
	peak, reserved      []int64
	// dropped: the caller kept the loss alone (measure_more.py), not the outputs (measure_peer.py).
	dropped bool
	config  string // else peerConfigs
	// extra is held on every GPU by what ran before in the same process.
	extra int64
}

func (r *row) name() string {
	return fmt.Sprintf("%s/%s/%s/%dx%d", r.source, r.model, r.mode, r.w.Batch, r.w.Seq)
}

// infers reports a row without backward.
func (r *row) infers() bool { return r.w.Mode == costmodel.Infer }

// autogradWorkspace is the cuBLAS workspace of the autograd thread, which outlives a training
// (CublasHandlePool.cpp, cublas_handle_stream_to_workspace): later inference in the process has it too.
const autogradWorkspace = 32 << 20

// workload is the measured modes as flags: fused AdamW, pure bf16 but for train-amp.
func workload(mode string, batch, seq int64) costmodel.Workload {
	w := costmodel.Workload{Mode: costmodel.Train, Batch: batch, Seq: seq, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
	switch mode {
	case "prefill", "generate":
		w.Mode, w.Optimizer = costmodel.Infer, ""
	case "train-ckpt":
		w.Recompute = costmodel.RecomputeFull
	case "train-amp":
		w.Precision = costmodel.BF16Mixed
	}
	return w
}

// measuredRows are the rows of fixtures/measured under device maps.
func measuredRows(t *testing.T) []row {
	t.Helper()
	return slices.Concat(peerRows(t), plannedRows(t, "planned"), plannedRows(t, "anywhere"), moreRows(t), visionRows(t), familyRows(t))
}

// peerRows ran under Accelerate's maps. Prefill is a model's first run, after the other models'
// trainings except for qwen2.5-3b, the first in measure_peer.py, and internlm2-20b, in a later process.
func peerRows(t *testing.T) []row {
	t.Helper()
	files, err := filepath.Glob("../../../fixtures/measured/peer_*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no peer files: %v", err)
	}
	var rows []row
	for _, file := range files {
		var p struct {
			Model     string
			DeviceMap map[string]any `json:"device_map"`
			Runs      []measuredRun
		}
		read(t, file, &p)
		for _, r := range p.Runs {
			one := row{source: "peer", model: p.Model, mode: r.Mode, w: workload(r.Mode, r.Batch, r.Seq), flat: flatten(t, p.DeviceMap), peak: r.Peak, reserved: r.Reserved}
			if one.infers() && p.Model != "qwen2.5-3b" && p.Model != "internlm2-20b" {
				one.extra = autogradWorkspace
			}
			rows = append(rows, one)
		}
	}
	return rows
}

type measuredRun struct {
	Mode       string
	Batch, Seq int64
	Peak       []int64 `json:"peak_allocated"`
	Reserved   []int64 `json:"peak_reserved"`
}

// plannedRows ran under maps that devmap planned, each in its own process (but
// the trainings of "anywhere"): a GPU without units holds nothing.
func plannedRows(t *testing.T, source string) []row {
	t.Helper()
	var f struct {
		Runs []struct {
			measuredRun
			Model     string
			DeviceMap map[string]any `json:"device_map"`
		}
	}
	read(t, "../../../fixtures/measured/"+source+"_maps.json", &f)
	var rows []row
	for _, r := range f.Runs {
		rows = append(rows, row{source: source, model: r.Model, mode: r.Mode, w: workload(r.Mode, r.Batch, r.Seq), flat: flatten(t, r.DeviceMap), peak: r.Peak, reserved: r.Reserved, config: string(distConfig(t, r.Model))})
	}
	return rows
}

// moreRows ran in one process, LoRA first. LoRA is not predicted yet.
func moreRows(t *testing.T) []row {
	t.Helper()
	var runs []struct {
		measuredRun
		Model     string
		What      string
		DeviceMap map[string]any `json:"device_map"`
		Opts      struct {
			New      int64
			Opt      string
			Momentum float64
		}
	}
	read(t, "../../../fixtures/measured/more.json", &runs)
	var rows []row
	for _, r := range runs {
		if r.What == "lora" {
			continue
		}
		one := row{source: "more", model: r.Model, mode: r.What, w: workload(r.What, r.Batch, r.Seq), flat: flatten(t, r.DeviceMap), peak: r.Peak, reserved: r.Reserved}
		one.w.NewTokens = r.Opts.New
		if one.infers() {
			one.extra = autogradWorkspace
		} else {
			one.dropped = true
		}
		if r.Opts.Opt == "sgd" && r.Opts.Momentum > 0 {
			one.mode, one.w.Optimizer = "train-sgd", value.SGDMomentum
		}
		rows = append(rows, one)
	}
	return rows
}

// visionRows are Qwen2.5-VL-3B on text alone.
func visionRows(t *testing.T) []row {
	t.Helper()
	const model = "qwen2.5-vl-3b"
	var f map[string]struct {
		DeviceMap map[string]any `json:"device_map"`
		Peak      []int64        `json:"train_text_b2_s2048_peak"`
	}
	read(t, "../../../fixtures/measured/vl.json", &f)
	return []row{{source: "seeds", model: model, mode: "train", w: workload("train", 2, 2048), flat: flatten(t, f[model].DeviceMap), peak: f[model].Peak}}
}

// familyRows are other families under maps that devmap planned.
func familyRows(t *testing.T) []row {
	t.Helper()
	var f struct {
		Runs []struct {
			measuredRun
			Model     string
			Config    json.RawMessage
			DeviceMap map[string]any `json:"device_map"`
		}
	}
	read(t, "../../../fixtures/measured/families.json", &f)
	var rows []row
	for _, r := range f.Runs {
		rows = append(rows, row{source: "families", model: r.Model, config: string(r.Config), mode: r.Mode, w: workload(r.Mode, r.Batch, r.Seq), flat: flatten(t, r.DeviceMap), peak: r.Peak, reserved: r.Reserved})
	}
	return rows
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data := fixtures.Must(os.ReadFile(file))(t)
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(file, err)
	}
}

// flatten takes numbers and, as some of the files have them, strings.
func flatten(t *testing.T, m map[string]any) devicemap.Flat {
	t.Helper()
	var flat devicemap.Flat
	for k, v := range m {
		if v == "cpu" {
			flat = append(flat, devicemap.Flat{{Key: k, Device: devicemap.CPU}}...)
			continue
		}
		d := fixtures.Must(strconv.Atoi(fmt.Sprint(v)))(t)
		flat = append(flat, devicemap.Flat{{Key: k, Device: devicemap.Device(d)}}...)
	}
	return flat
}
