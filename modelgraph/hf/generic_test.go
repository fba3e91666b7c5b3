package hf

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// genericNames are tensor names in file order, and the units and layers of them.
var genericNames = map[string]struct{ tensors, units string }{
	"blocks": {
		tensors: "lm_head.weight model.embed.weight model.layers.10.mlp.up.weight model.layers.2.attn.q.weight model.layers.2.mlp.up.weight model.norm.weight",
		units:   "lm_head=lm_head model.embed=model.embed model.layers.2=model.layers.2.attn.q,model.layers.2.mlp.up model.layers.10=model.layers.10.mlp.up model.norm=model.norm",
	},
	"interleaved with the rest": {
		tensors: "h.1.w x.w h.0.w",
		units:   "h.0=h.0 h.1=h.1 x=x",
	},
	"experts inside": {
		tensors: "layers.0.experts.0.w layers.0.experts.1.w layers.1.experts.0.w",
		units:   "layers.0=layers.0.experts.0,layers.0.experts.1 layers.1=layers.1.experts.0",
	},
	"one child is no list": {tensors: "proj.0.weight proj.0.bias", units: "proj.0=proj.0"},
	"bare": {
		tensors: "cls_token vit.pos vit.patch.weight blocks.0.scale blocks.0.attn.w blocks.1.attn.w",
		units:   "cls_token=cls_token vit.pos=vit.pos vit.patch=vit.patch blocks.0=blocks.0,blocks.0.attn blocks.1=blocks.1.attn",
	},
	"two lists": {tensors: "a.0.w b.0.w a.1.w b.1.w", units: "a.0=a.0 a.1=a.1 b.0=b.0 b.1=b.1"},
	"quantised": {tensors: "q.weight q.weight.absmax q.weight.quant_state.nf4 t t.absmax", units: "q=q t=t"},
	"numbers":   {tensors: "0.w 1.w", units: "0=0 1=1"},
}

func TestGeneric(t *testing.T) {
	for name, c := range genericNames {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "net.safetensors")
			var tensors []stored
			for i, n := range strings.Fields(c.tensors) {
				// Offsets follow the order of keys, not of the map.
				tensors = append(tensors, stored{name: n, dtype: modelgraph.F16, shape: []int64{int64(i + 1)}})
			}
			writeFile(t, path, tensors)
			g := fixtures.Must(FromCheckpoint(path))(t)
			var units []string
			var names []string
			for _, u := range g.Units {
				var layers []string
				for i := u.First; i < u.End; i++ {
					layers = append(layers, g.Layers[i].Name)
				}
				units = append(units, u.Name+"="+strings.Join(layers, ","))
			}
			for i := range g.Layers {
				for _, p := range g.Layers[i].Params {
					names = append(names, modelgraph.FullName(g.Layers[i].Name, p.Name))
				}
			}
			if got := strings.Join(units, " "); got != c.units {
				t.Errorf("units %s\nwant  %s", got, c.units)
			}
			want := strings.Fields(c.tensors)
			slices.Sort(want)
			slices.Sort(names)
			if !slices.Equal(names, want) {
				t.Errorf("tensors %v, want %v", names, want)
			}
			n := int64(len(tensors))
			if g.ParamBytes() != n*(n+1) || g.Name != "net" || g.DType != modelgraph.F16 || len(g.Warnings) != 1 {
				t.Errorf("%s: %d bytes of %v, warnings %v", g.Name, g.ParamBytes(), g.DType, g.Warnings)
			}
		})
	}
}

// TestWhenGeneric: how folders are read. A class that is not known is refused (for a class that
// Transformers has and devmap does not: TestListed).
func TestWhenGeneric(t *testing.T) {
	as := func(ts []stored) []stored { return ts }
	unknown := strings.Replace(tinyLlama, `"llama"`, `"novel"`, 1)
	nameless := strings.Replace(unknown, "LlamaForCausalLM", "NovelForCausalLM", 1)
	class := strings.Replace(tinyLlama, "LlamaForCausalLM", "LlamaForRewards", 1)
	for name, c := range map[string]struct {
		config string
		edit   func([]stored) []stored
		class  string // none: refused
		say    string
	}{
		"known":             {tinyLlama, as, "LlamaForCausalLM", ""},
		"read as llama":     {unknown, as, "LlamaForCausalLM", `"novel" is not known: read as the LlamaForCausalLM`},
		"proved by files":   {nameless, as, "LlamaForCausalLM", `"novel" is not known: read as llama`},
		"not quite a llama": {nameless, with(st("model.layers.0.self_attn.q_norm.weight", modelgraph.BF16, 4)), "", `the files are not those of a llama with its fields, and "NovelForCausalLM" with model_type "novel" is not a class of Transformers 5.17`},
		"unknown class":     {class, as, "", `"LlamaForRewards" with model_type "llama" is not a class of Transformers 5.17`},
		"no class":          {strings.Replace(unknown, `"architectures":["LlamaForCausalLM"],`, "", 1), with(st("x.w", modelgraph.BF16, 4)), "", "names no class in architectures"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := llamaFolderOf(t, c.config, c.edit)
			for _, path := range []string{dir, filepath.Join(dir, "model.safetensors")} {
				g, err := FromCheckpoint(path)
				if c.class == "" {
					if _, ok := errors.AsType[*unprovenError](err); !ok || !strings.Contains(err.Error(), c.say) {
						t.Errorf("%v, want %q", err, c.say)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if g.Class != c.class || g.Source != path || !strings.Contains(fmt.Sprint(g.Warnings), c.say) {
					t.Errorf("class %q, source %q, warnings %v", g.Class, g.Source, g.Warnings)
				}
			}
		})
	}
}

// llamaFolderOf writes the files of the tiny llama next to another config.
func llamaFolderOf(t *testing.T, config string, edit func([]stored) []stored) string {
	t.Helper()
	dir := llamaFolder(t, tinyLlama, edit)
	write(t, filepath.Join(dir, ConfigName), []byte(config))
	return dir
}

func TestOneShardIsNoModel(t *testing.T) {
	dir := llamaFolder(t, tinyLlama, func(ts []stored) []stored { return ts })
	shard := filepath.Join(dir, "model-00001-of-00002.safetensors")
	writeFile(t, shard, []stored{st("lm_head.weight", modelgraph.BF16, 4)})
	g := fixtures.Must(FromCheckpoint(shard))(t)
	if len(g.Layers) != 1 || !strings.Contains(g.Warnings[0], "not the whole checkpoint") {
		t.Errorf("%d layers, warnings %v", len(g.Layers), g.Warnings)
	}
}

func TestNoModel(t *testing.T) {
	for file, want := range map[string]string{
		"model_index.json": "diffusers pipeline", "pytorch_model.bin": "is not read on its own", "README.md": "it holds no model",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, file), []byte("{}"))
		if _, err := FromCheckpoint(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}
