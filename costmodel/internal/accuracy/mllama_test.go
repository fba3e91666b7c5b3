package accuracy_test

import (
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// mllamaConfig has the sizes of Llama-3.2-11B-Vision.
const mllamaConfig = `{"model_type": "mllama", "architectures": ["MllamaForConditionalGeneration"], "torch_dtype": "bfloat16", "text_config": {"model_type": "mllama_text_model",
	"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
	"max_position_embeddings": 131072, "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]},
	"vision_config": {"model_type": "mllama_vision_model", "hidden_size": 1280, "attention_heads": 16, "intermediate_size": 5120, "num_hidden_layers": 32, "num_global_layers": 8,
	"image_size": 560, "patch_size": 14, "num_channels": 3, "max_num_tiles": 4, "vision_output_dim": 7680, "intermediate_layers_indices": [3, 7, 15, 23, 30],
	"supported_aspect_ratios": [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]]}}`

// TestMllama predicts the peaks of a mllama on one GPU. The figures are of Transformers 5.17's
// modules on the meta device, replayed by rules of PyTorch's allocator (reference/peaks.md;
// 2026-11-29). Training with two images has 81 MiB too many of activations' rests.
func TestMllama(t *testing.T) {
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		w    costmodel.Workload
		want float64 // GiB
		most float64 // error, as a share
	}{
		{costmodel.Workload{Mode: costmodel.Infer, Seq: 2048}, 20.6627, .002},
		{costmodel.Workload{Mode: costmodel.Infer, Seq: 2048, Images: 1}, 20.8675, .002},
		{costmodel.Workload{Mode: costmodel.Infer, Seq: 512, Images: 1}, 20.7909, .003},
		{costmodel.Workload{Mode: costmodel.Infer, Seq: 512, Images: 2}, 21.6772, .003},
		{costmodel.Workload{Mode: costmodel.Train, Seq: 512, Images: 1}, 88.6326, .0005},
		{costmodel.Workload{Mode: costmodel.Train, Seq: 512, Images: 1, Recompute: costmodel.RecomputeFull}, 88.6416, .0005}, // no block of the tower is checkpointed
		{costmodel.Workload{Mode: costmodel.Train, Seq: 512, Images: 2}, 99.1165, .001},
	} {
		graph, table := costsOf(t, []byte(mllamaConfig), c.w)
		topology := &costmodel.Topology{Devices: []costmodel.Device{gpu.Device(table.Workload.Mode)}}
		predicted := devicemap.Predict(table, topology, make(devicemap.Map, len(graph.Units)))
		if got := float64(predicted[0].Predicted.PeakAllocatedBytes) / (1 << 30); math.Abs(got/c.want-1) > c.most {
			t.Errorf("%s with %d images: %.3f GiB, want %.3f", c.w.Mode, c.w.Images, got, c.want)
		}
	}
}
