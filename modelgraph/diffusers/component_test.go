package diffusers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// randomComponent is a random config and what diffusers 0.42.1 makes of it
// (fixtures/oracle/components.py): lists, or their digests.
type randomComponent struct {
	Case            string
	Count           int64
	Config          json.RawMessage
	Params, Buffers json.RawMessage
}

func randomComponents(tb testing.TB) []randomComponent {
	tb.Helper()
	return fixtures.Must(fixtures.Rows[randomComponent](cmp.Or(os.Getenv("DEVMAP_COMPONENTS"), "../../fixtures/oracle/components.jsonl.gz")))(tb)
}

// TestComponents: names, shapes and order of the parameters and buffers of
// random configs are diffusers'.
func TestComponents(t *testing.T) {
	classes := map[string]bool{}
	for _, c := range randomComponents(t) {
		class, _, _ := strings.Cut(c.Case, "/")
		classes[class] = true
		t.Run(c.Case, func(t *testing.T) {
			graph, err := FromConfig("transformer/config.json", c.Config)
			if err != nil {
				t.Fatalf("%v\n%s", err, c.Config)
			}
			if graph.ParamCount() != c.Count {
				t.Errorf("%d parameters, diffusers has %d", graph.ParamCount(), c.Count)
			}
			checkList(t, "parameters", c.Params, listed(graph, func(l *modelgraph.Layer) []modelgraph.Tensor { return l.Params }), c.Config)
			buffers := listed(graph, func(l *modelgraph.Layer) []modelgraph.Tensor { return l.Buffers })
			slices.Sort(buffers)
			checkList(t, "buffers", c.Buffers, buffers, c.Config)
		})
	}
	if os.Getenv("DEVMAP_COMPONENTS") == "" && len(classes) != len(readers) {
		t.Errorf("%d classes are drawn, %d are read", len(classes), len(readers))
	}
}

func listed(graph *modelgraph.Graph, of func(*modelgraph.Layer) []modelgraph.Tensor) []string {
	var list []string
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for _, tensor := range of(layer) {
			list = append(list, fmt.Sprintf("%s [%s]", modelgraph.FullName(layer.Name, tensor.Name), strings.Trim(strings.Join(strings.Fields(fmt.Sprint(tensor.Shape)), ", "), "[]")))
		}
	}
	return list
}

func checkList(t *testing.T, of string, want json.RawMessage, got []string, config json.RawMessage) {
	t.Helper()
	var lines []string
	if json.Unmarshal(want, &lines) == nil {
		if d := diff.Diff(lines, got); d != "" && len(lines)+len(got) > 0 {
			t.Errorf("%s (-diffusers +devmap):\n%.3000s\n%s", of, d, config)
		}
		return
	}
	sum := sha256.Sum256([]byte(strings.Join(got, "\n")))
	if digest := `"` + hex.EncodeToString(sum[:])[:12] + `"`; digest != string(want) {
		t.Errorf("%s are not diffusers': %s", of, config)
	}
}

// TestPublished: the parameters of published components.
func TestPublished(t *testing.T) {
	for config, want := range map[string]int64{
		`{"_class_name":"FluxTransformer2DModel","guidance_embeds":true}`: 11_901_408_320,
		`{"_class_name":"FluxTransformer2DModel"}`:                        11_891_178_560,
		`{"_class_name":"SD3Transformer2DModel","num_layers":24,"num_attention_heads":24,"caption_projection_dim":1536,"pos_embed_max_size":192}`:                      2_028_328_000,
		`{"_class_name":"SD3Transformer2DModel","num_layers":38,"num_attention_heads":38,"caption_projection_dim":2432,"pos_embed_max_size":192,"qk_norm":"rms_norm"}`: 8_056_627_520,
		`{"_class_name":"AutoencoderKLWan"}`: 126_892_531,
	} {
		graph, err := FromConfig("config.json", []byte(config))
		if err != nil {
			t.Error(err)
		} else if graph.ParamCount() != want {
			t.Errorf("%s: %d parameters, want %d", config, graph.ParamCount(), want)
		}
	}
}

// TestNoSplit: blocks whose forward joins what it keeps are one unit each, as in _no_split_modules
// of the classes. They are a residual block and, on a UNet's way up, a block of these, which reads
// the skipped states (unet_2d_condition.py, autoencoder_kl.py, autoencoder_kl_cogvideox.py).
func TestNoSplit(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range randomComponents(t) {
		class, _, _ := strings.Cut(c.Case, "/")
		graph := fixtures.Must(FromConfig("config.json", c.Config))(t)
		for i := range graph.Layers {
			layer := &graph.Layers[i]
			block := regexp.MustCompile(`^(.*\.)?resnets\.\d+`).FindString(layer.Name)
			if class == "UNet2DConditionModel" {
				if up := regexp.MustCompile(`^up_blocks\.\d+`).FindString(layer.Name); up != "" {
					block = up
				}
			}
			if block == "" {
				continue
			}
			seen[class] = true
			if unit := graph.Units[layer.UnitIndex].Name; unit != block {
				t.Fatalf("%s: %s is in the unit %q, want %q", c.Case, layer.Name, unit, block)
			}
		}
	}
	for _, class := range []string{"UNet2DConditionModel", "AutoencoderKL", "AutoencoderKLCogVideoX", "AutoencoderKLWan"} {
		if !seen[class] {
			t.Errorf("no %s has residual blocks", class)
		}
	}
}
