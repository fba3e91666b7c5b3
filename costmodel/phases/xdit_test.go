package phases

import (
	"bufio"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestXDiTMeasured: what xDiT 0.7.0 held on two H200 (random weights, two
// steps, the second run; fixtures/measured/how/measure_xdit.py), by phase.
func TestXDiTMeasured(t *testing.T) {
	sd3 := map[string]string{
		"model_index.json":           `{"_class_name":"StableDiffusion3Pipeline","text_encoder_3":["transformers","T5EncoderModel"],"transformer":["diffusers","SD3Transformer2DModel"],"vae":["diffusers","AutoencoderKL"]}`,
		"transformer/config.json":    `{"_class_name":"SD3Transformer2DModel","sample_size":128,"patch_size":2,"in_channels":16,"num_layers":6,"attention_head_dim":64,"num_attention_heads":24,"joint_attention_dim":4096,"caption_projection_dim":1536,"pooled_projection_dim":2048,"out_channels":16,"pos_embed_max_size":192}`,
		"vae/config.json":            flux["vae/config.json"],
		"text_encoder_3/config.json": fluxSmall()["text_encoder_2/config.json"],
	}
	asked := map[string]Workload{
		"single": {}, "ulysses2": {Ulysses: 2}, "ring2": {Ring: 2}, "ulysses2-pipeline": {Ulysses: 2}, "shard2": {Ulysses: 2, FullyShardDegree: 2},
		"pipefusion2": {PipeFusion: 2},
		"sd3-single":  {}, "sd3-cfg2": {CFGDegree: 2}, "sd3-ulysses2": {Ulysses: 2},
	}
	file, err := os.Open("../../fixtures/measured/xdit_h200.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row struct {
			Row  string           `json:"row"`
			Rank int              `json:"rank"`
			Run  map[string]int64 `json:"run1"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		work, known := asked[row.Row]
		if !known {
			continue
		}
		files := fluxSmall()
		if strings.HasPrefix(row.Row, "sd3") {
			files = sd3
		}
		run, plan, err := begin(folder(t, files), work, h200)
		if err != nil {
			t.Fatal(err)
		}
		run.wrapped = row.Row == "ulysses2-pipeline"
		if plan, err = run.planned(plan); err != nil {
			t.Fatal(err)
		}
		for _, phase := range plan.Phases {
			want, measured := row.Run[phase.Name]
			if !measured { // one GPU of several decodes
				continue
			}
			rows++
			got := phase.Memory[row.Rank].Total()
			off := float64(got-want) / float64(want)
			t.Logf("%s %d %s: %d, measured %d (%+.3f %%)", row.Row, row.Rank, phase.Name, got, want, 100*off)
			if math.Abs(off) > 0.015 {
				t.Errorf("%s %d %s: %d, measured %d (%+.3f %%)", row.Row, row.Rank, phase.Name, got, want, 100*off)
			}
		}
	}
	if rows != 39 {
		t.Errorf("%d figures", rows)
	}
}
