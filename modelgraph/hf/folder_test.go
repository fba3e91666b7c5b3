package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

const tinyLlama = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":8,"intermediate_size":16,
	"num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"vocab_size":32,"dtype":"bfloat16"}`

// TestSavedNames reads folders that save_pretrained writes for every class of the oracle: every
// parameter filled, no tensor left over, exact bytes.
func TestSavedNames(t *testing.T) {
	configs := oracleConfigs(t)
	for _, r := range readNames(t) {
		t.Run(r.Case, func(t *testing.T) {
			want, err := FromConfig("config.json", configs[r.Case])
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			write(t, filepath.Join(dir, ConfigName), configs[r.Case])
			writeShards(t, dir, r.stored(want), 3)
			g, err := FromCheckpoint(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, warning := range g.Warnings {
				if !slices.Contains(want.Warnings, warning) { // the config alone has it too: nothing is amiss in the folder
					t.Error("warning:", warning)
				}
			}
			if g.ParamBytes() != 4*want.ParamCount() || g.ParamCount() != want.ParamCount() {
				t.Errorf("%d bytes and %d parameters, want %d and %d", g.ParamBytes(), g.ParamCount(), 4*want.ParamCount(), want.ParamCount())
			}
			if !slices.Equal(g.Hollow, want.Hollow) {
				t.Errorf("modules without tensors %q, want %q", g.Hollow, want.Hollow)
			}
			checkParts(t, dir, g)
		})
	}
}

// stored are the saved names in fp32; of tied ones the module's first, since save_pretrained drops
// the others.
func (r *nameRecord) stored(g *modelgraph.Graph) []stored {
	var out []stored
	drop := make(map[string]bool)
	for _, tie := range g.Ties {
		for _, n := range tie[1:] {
			drop[n] = true
			drop[strings.Replace(n, "lm_head", "language_model.lm_head", 1)] = true
		}
	}
	for _, s := range r.Saved {
		if !drop[s.Name] {
			out = append(out, stored{name: s.Name, dtype: modelgraph.F32, shape: s.Shape})
		}
	}
	return out
}

// checkParts compares the parts of every parameter with its size and with the files.
func checkParts(t *testing.T, dir string, g *modelgraph.Graph) {
	t.Helper()
	seen := make(map[string]bool)
	for i := range g.Layers {
		for _, p := range g.Layers[i].Params {
			if p.Owner != "" {
				continue
			}
			var n int64
			for _, part := range p.Parts {
				n += part.End - part.Begin
				info, err := os.Stat(part.File)
				if err != nil || filepath.Dir(part.File) != dir || part.End > info.Size() || part.Begin < 8 || seen[part.Name] {
					t.Errorf("%s: bad part %+v: %v", p.Name, part, err)
				}
				seen[part.Name] = true
			}
			if n != p.Bytes {
				t.Errorf("%s %s: %d bytes, its parts have %d", g.Layers[i].Name, p.Name, p.Bytes, n)
			}
		}
	}
}

func TestExpertOrder(t *testing.T) {
	dir := t.TempDir()
	config := `{"model_type":"mixtral","hidden_size":4,"intermediate_size":6,"num_hidden_layers":1,"num_attention_heads":1,
		"num_key_value_heads":1,"vocab_size":8,"num_local_experts":12}`
	write(t, filepath.Join(dir, ConfigName), []byte(config))
	g, err := FromConfig("config.json", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	var tensors []stored
	for _, s := range checkpointOf(g, modelgraph.F16) {
		if !strings.Contains(s.name, "experts") {
			tensors = append(tensors, s)
		}
	}
	for e := range 12 {
		for w, shape := range map[string][]int64{"w1": {6, 4}, "w2": {4, 6}, "w3": {6, 4}} {
			tensors = append(tensors, stored{name: fmt.Sprintf("model.layers.0.block_sparse_moe.experts.%d.%s.weight", e, w), dtype: modelgraph.F16, shape: shape})
		}
	}
	writeFile(t, filepath.Join(dir, "model.safetensors"), tensors)
	if g, err = FromCheckpoint(dir); err != nil {
		t.Fatal(err)
	}
	parts := paramOf(t, g, "model.layers.0.mlp.experts.gate_up_proj").Parts
	for i, want := range []string{"0.w1", "0.w3", "1.w1", "1.w3", "2.w1"} {
		if !strings.Contains(parts[i].Name, "experts."+want) {
			t.Errorf("part %d is %s, want expert %s", i, parts[i].Name, want)
		}
	}
	if !strings.Contains(parts[23].Name, "experts.11.w3") || len(parts) != 24 {
		t.Errorf("%d parts, the last %s", len(parts), parts[len(parts)-1].Name)
	}
}

func paramOf(t *testing.T, g *modelgraph.Graph, full string) *modelgraph.Tensor {
	t.Helper()
	for i := range g.Layers {
		for j := range g.Layers[i].Params {
			if modelgraph.FullName(g.Layers[i].Name, g.Layers[i].Params[j].Name) == full {
				return &g.Layers[i].Params[j]
			}
		}
	}
	t.Fatalf("no parameter %s", full)
	return nil
}

// llamaFolder writes the tiny llama with its tensors changed by edit.
func llamaFolder(t *testing.T, config string, edit func([]stored) []stored) string {
	t.Helper()
	g, _, _, err := fromConfig("config.json", []byte(config)) // as before it was quantised
	if unknown(err) != "" {
		g, err = FromConfig("config.json", []byte(config)) // of a type without a reader
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tiny")
	write(t, filepath.Join(dir, ConfigName), []byte(config))
	writeFile(t, filepath.Join(dir, "model.safetensors"), edit(checkpointOf(g, modelgraph.BF16)))
	return dir
}

func without(suffix string) func([]stored) []stored {
	return func(ts []stored) []stored {
		return slices.DeleteFunc(ts, func(s stored) bool { return strings.HasSuffix(s.name, suffix) })
	}
}

func with(more ...stored) func([]stored) []stored {
	return func(ts []stored) []stored { return append(ts, more...) }
}

// folderFaults are faulty folders of the tiny llama and their messages.
var folderFaults = map[string]struct {
	edit     func([]stored) []stored
	err, say string
}{
	"missing one": {edit: without("layers.1.mlp.up_proj.weight"), say: `1 parameters of LlamaForCausalLM (128 elements) are in no file and are newly initialised: "model.layers.1.mlp.up_proj.weight"`},
	"unknown": {
		edit: with(stored{name: "vision.proj", dtype: modelgraph.F32, shape: []int64{4}}),
		say:  `1 checkpoint tensors (16 bytes) belong to no module of LlamaForCausalLM and are not loaded: "vision.proj"`,
	},
	"old rotary": {edit: with(stored{name: "model.layers.0.self_attn.rotary_emb.inv_freq", dtype: modelgraph.F32, shape: []int64{2}})},
	"much ignored": {
		edit: with(stored{name: "model.layers.0.self_attn.rotary_emb.inv_freq", dtype: modelgraph.F32, shape: []int64{1 << 20}}),
		say:  "1 checkpoint tensors (4194304 bytes) are left out on purpose by LlamaForCausalLM",
	},
	"wrong shape": {
		edit: func(ts []stored) []stored { ts[0].shape = []int64{31, 8}; return ts },
		err:  `model.safetensors: tensor "model.embed_tokens.weight": BF16[31 8] does not fill "model.embed_tokens.weight" [32 8]: is config.json the config of these files?`,
	},
	"transposed": {edit: func(ts []stored) []stored { ts[0].shape = []int64{8, 32}; return ts }, err: "[8 32] does not fill"},
	"other model": {
		edit: func([]stored) []stored {
			return []stored{{name: "conv.weight", dtype: modelgraph.F32, shape: []int64{2}}}
		},
		err: `the files fill 0 of the 1704 parameter elements`,
	},
	// 800 of 1704 elements are less than half.
	"less than half": {
		edit: func(ts []stored) []stored {
			return slices.DeleteFunc(ts, func(s stored) bool { return strings.Contains(s.name, "mlp") || strings.HasPrefix(s.name, "lm_head") })
		},
		err: "of the 1704 parameter elements",
	},
	"twice":    {edit: with(stored{name: "embed_tokens.weight", dtype: modelgraph.BF16, shape: []int64{32, 8}}), say: `"model.embed_tokens.weight" is stored 2 times`},
	"bad name": {edit: with(stored{name: "a..b", dtype: modelgraph.F32, shape: []int64{2}}), err: `tensor "a..b": the name is not a module path`},
}

func TestFolderFaults(t *testing.T) {
	for name, c := range folderFaults {
		t.Run(name, func(t *testing.T) {
			g, err := FromCheckpoint(llamaFolder(t, tinyLlama, c.edit))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("error %v, want one line with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(g.Warnings, "\n"); !strings.Contains(all, c.say) || (all == "") != (c.say == "") {
				t.Errorf("warnings %q, want %q", all, c.say)
			}
			if g.Name != "tiny" || g.ParamCount() != 1704 {
				t.Errorf("%s of %d parameters", g.Name, g.ParamCount())
			}
		})
	}
}

func TestMismatchIsTyped(t *testing.T) {
	_, err := FromCheckpoint(llamaFolder(t, tinyLlama, folderFaults["other model"].edit))
	var m *mismatchError
	if !errors.As(err, &m) || m.Total != 1704 {
		t.Fatalf("%v is no mismatchError", err)
	}
}

func TestTies(t *testing.T) {
	tied := strings.Replace(tinyLlama, "{", `{"tie_word_embeddings":true,`, 1)
	head := stored{name: "lm_head.weight", dtype: modelgraph.BF16, shape: []int64{32, 8}}
	other := head
	other.dtype = modelgraph.F32
	for name, c := range map[string]struct {
		edit   func([]stored) []stored
		params int64
		ties   int
	}{
		"embedding only":  {func(ts []stored) []stored { return ts }, 1448, 1},
		"head only":       {func(ts []stored) []stored { ts[0].name = "lm_head.weight"; return ts }, 1448, 1},
		"both alike":      {with(head), 1448, 1},
		"both, two types": {with(other), 1704, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := fixtures.Must(FromCheckpoint(llamaFolder(t, tied, c.edit)))(t)
			if g.ParamCount() != c.params || len(g.Ties) != c.ties || (len(g.Warnings) > 0) != strings.HasPrefix(name, "both") {
				t.Errorf("%d parameters, ties %v, warnings %v", g.ParamCount(), g.Ties, g.Warnings)
			}
			if len(paramOf(t, g, "model.embed_tokens.weight").Parts) != 1 {
				t.Error("the owner has no part")
			}
		})
	}
}

// TestT5Unties: in a v1.1 checkpoint the head is not the table.
func TestT5Unties(t *testing.T) {
	for _, r := range readNames(t) {
		if r.Case != "t5/v1.1" {
			continue
		}
		var config map[string]any
		if err := json.Unmarshal(oracleConfigs(t)[r.Case], &config); err != nil {
			t.Fatal(err)
		}
		config["tie_word_embeddings"] = false
		data, _ := json.Marshal(config)
		want := fixtures.Must(FromConfig("config.json", data))(t)
		dir := t.TempDir()
		write(t, filepath.Join(dir, ConfigName), data)
		var tensors []stored
		for _, s := range r.Saved {
			if !strings.Contains(s.Name, "embed_tokens") {
				tensors = append(tensors, stored{name: s.Name, dtype: modelgraph.F32, shape: s.Shape})
			}
		}
		writeFile(t, filepath.Join(dir, "model.safetensors"), tensors)
		g := fixtures.Must(FromCheckpoint(dir))(t)
		head := paramOf(t, g, "lm_head.weight")
		if g.ParamCount() != want.ParamCount()+head.Numel || head.Owner != "" || len(g.Ties) != 1 {
			t.Errorf("%d parameters, the config makes %d; ties %v", g.ParamCount(), want.ParamCount(), g.Ties)
		}
		return
	}
	t.Fatal("no record t5/v1.1")
}

func TestConfigOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "models--org--Tiny-1.1B", "snapshots", "abc")
	write(t, filepath.Join(dir, ConfigName), []byte(tinyLlama))
	write(t, filepath.Join(dir, "pytorch_model.bin"), []byte("x"))
	g := fixtures.Must(FromCheckpoint(dir + "/"))(t)
	if g.Name != "Tiny-1.1B" || g.ParamCount() != 1704 || len(g.Warnings) != 1 || !strings.Contains(g.Warnings[0], "pytorch_model.bin") {
		t.Errorf("%s, %d parameters, warnings %v", g.Name, g.ParamCount(), g.Warnings)
	}
}

func TestFolderName(t *testing.T) {
	for dir, want := range map[string]string{
		"/x/Qwen2.5-3B/": "Qwen2.5-3B", "/x/models--gpt2/snapshots/1": "gpt2", "/ms/Qwen/Qwen2___5-3B": "Qwen2.5-3B",
		"/": "model", "/x/models--a--b--c/snapshots/r": "c",
	} {
		if got := folderName(dir); got != want {
			t.Errorf("%s is called %q, want %q", dir, got, want)
		}
	}
	t.Chdir(t.TempDir())
	if got := folderName("."); got == "." || got == "" {
		t.Errorf("the current folder is called %q", got)
	}
}
