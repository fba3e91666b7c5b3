package serving_test

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/serving"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
	"github.com/devmap-dev/devmap/planner/serve"
)

// judged is a model that llama.cpp's own estimator measured (fixtures/oracle/llamacpp.py).
type judged struct {
	Family, Header  string
	Files           map[string]string // of a set, in place of Header
	Size            int64             // of the file
	Bytes, Elements int64             // of its tensors, as gguf-py counts them
	Rows            []struct {
		Context, Sequences, UBatch, Offloaded int64
		KVType                                string `json:"kv_type"`
		Split                                 []float32
		Devices                               [][3]int64 // weights, cache, buffers
	}
	Fits []struct { // of --fit
		Targets []int64 `json:"targets_mib"`
		Free    int64   `json:"free_mib"`
		fitted
		Given fitted // for a context that was given
	}
}

// fitted is what --fit chooses.
type fitted struct {
	Context   int64
	Offloaded int64     // -1: all, split by free memory
	Split     []float32 // nil: one device, or by free memory
	Host      bool      // some experts are on the host
}

func judgedModels(t *testing.T) []judged {
	t.Helper()
	return fixtures.Must(fixtures.Rows[judged]("../../fixtures/oracle/llamacpp.jsonl.gz"))(t)
}

// read is the model's file, which has a header and no weights.
func (model *judged) read(t *testing.T) *gguf.File {
	t.Helper()
	dir, first := t.TempDir(), "model.gguf"
	if model.Files == nil {
		model.Files = map[string]string{first: model.Header}
	} else {
		first = slices.Min(slices.Collect(maps.Keys(model.Files)))
	}
	for name, packed := range model.Files {
		unpacked := fixtures.Must(gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed))))(t)
		header := fixtures.Must(io.ReadAll(unpacked))(t)
		if err := os.WriteFile(filepath.Join(dir, name), header, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := gguf.Read(filepath.Join(dir, first), func(path string) (*os.File, int64, error) {
		file, err := os.Open(path)
		if err != nil || model.Size > 0 {
			return file, model.Size, err
		}
		info, err := file.Stat()
		return file, info.Size(), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestLlamaCPP: the weights, the cache and the buffers of every device are those that llama.cpp
// computes, byte for byte.
func TestLlamaCPP(t *testing.T) {
	devices, families := 0, map[string]bool{}
	for _, judged := range judgedModels(t) {
		file := judged.read(t)
		var size, elements int64
		for i := range file.Tensors {
			size, elements = size+file.Tensors[i].Bytes, elements+file.Tensors[i].Numel
		}
		if size != judged.Bytes || elements != judged.Elements {
			t.Errorf("%s: %d bytes of %d elements, gguf-py counts %d of %d", judged.Family, size, elements, judged.Bytes, judged.Elements)
		}
		if judged.Rows == nil { // a file for its sizes alone
			continue
		}
		model := fixtures.Must(serving.FromGGUF(file))(t)
		if !model.Judged || model.Unknown != "" {
			t.Errorf("%s is not among the judged architectures, or has a tensor %q", judged.Family, model.Unknown)
		}
		for _, row := range judged.Rows {
			const batch = 2048 // rows of logits in llama-fit-params
			set := serving.LlamaCPP{Context: row.Context, Sequences: row.Sequences, UBatch: row.UBatch, KeyType: row.KVType, ValueType: row.KVType, Outputs: batch, Alignment: 32}
			set.Pipelined = len(row.Split) > 1 && int(row.Offloaded) == model.Units()
			host, counts := serving.Layers(model.Units(), row.Split, int(row.Offloaded))
			set.HostBlocks = int64(host)
			used, _ := set.Devices(model, counts)
			for i, want := range row.Devices {
				devices++
				families[judged.Family] = true
				if got := [3]int64{used[i].Weights, used[i].Cache, used[i].Compute}; got != want {
					t.Errorf("%s, %+v, device %d of %v: %d, llama.cpp has %d", judged.Family, set, i, counts, got, want)
				}
			}
		}
	}
	t.Logf("%d devices of %d families are exact", devices, len(families))
}

// TestFit: llama.cpp's own --fit chooses the context that serve.Fit gives, or the next one: the rows
// have free memory in whole MiB. serve.Solve finds one that
// is as long or longer, and no device holds more than its target.
func TestFit(t *testing.T) {
	fits, longer, placed := 0, 0, 0
	for _, judged := range judgedModels(t) {
		if judged.Rows == nil {
			continue
		}
		model := fixtures.Must(serving.FromGGUF(judged.read(t)))(t)
		for _, fit := range judged.Fits {
			const mebi = 1 << 20
			question := serve.Question{Model: model, Set: serving.LlamaCPP{Sequences: 1, KeyType: "f16", ValueType: "f16", UBatch: 512, Outputs: 2048, Alignment: 32}}
			for _, target := range fit.Targets {
				question.Devices = append(question.Devices, serve.Device{Budget: fit.Free * mebi, Margin: (fit.Free - target) * mebi})
			}
			fits++
			chosen, whole := serve.Fit(question)
			placed += sameSplit(t, judged.Family, &fit.fitted, question)
			given := question
			given.Set.Context = fit.Given.Context
			placed += sameSplit(t, judged.Family, &fit.Given, given)
			if context := chosen.Set.Context; max(context-fit.Context, fit.Context-context) > 256 || model.Experts == 0 && whole != (int(fit.Offloaded) == model.Units() || fit.Offloaded < 0) {
				t.Errorf("%s on %d MiB: %d tokens (all on devices: %v), --fit has %d with -ngl %d of %d", judged.Family, fit.Targets, context, whole, fit.Context, fit.Offloaded, model.Units())
			}
			answer, err := serve.Solve(question)
			if err != nil {
				continue
			}
			if !fit.Host && int(fit.Offloaded) == model.Units() && answer.Set.Context < fit.Context-256 {
				t.Errorf("%s on %d MiB: %d tokens, fewer than the %d of --fit", judged.Family, fit.Targets, answer.Set.Context, fit.Context)
			}
			if answer.Set.Context > fit.Context {
				longer++
			}
			for i, used := range answer.Devices {
				if used.Total() > fit.Targets[i]*mebi {
					t.Errorf("%s: device %d holds %d bytes, more than %d MiB", judged.Family, i, used.Total(), fit.Targets[i])
				}
			}
		}
	}
	t.Logf("%d contexts are those of --fit; Solve finds a longer one in %d cases; %d splits are those of --fit", fits, longer, placed)
	if placed < 150 {
		t.Error("too few splits")
	}
}

// sameSplit compares the units of each device, and returns 1 if it could: with another context the split is
// another, and --fit moves experts in steps of its own. Targets are in whole MiB: one more is tried.
func sameSplit(t *testing.T, family string, fit *fitted, question serve.Question) int {
	t.Helper()
	chosen, _ := serve.Fit(question)
	units := question.Model.Units()
	if fit.Context != chosen.Set.Context || fit.Host || question.Model.Experts > 0 && fit.Offloaded >= 0 {
		return 0
	}
	split := make([]float32, len(chosen.Counts))
	copy(split, fit.Split)
	switch {
	case fit.Offloaded < 0: // by free memory, which all have the same of
		for i := range split {
			split[i] = 1
		}
	case len(fit.Split) == 0:
		split[0] = 1
	}
	offloaded := int(fit.Offloaded)
	if offloaded < 0 {
		offloaded = units
	}
	_, want := serving.Layers(units, split, offloaded)
	more := question
	more.Devices = slices.Clone(question.Devices)
	for i := range more.Devices {
		more.Devices[i].Margin -= 1 << 20
	}
	rounded, _ := serve.Fit(more)
	if !slices.Equal(chosen.Counts, want) && !slices.Equal(rounded.Counts, want) {
		t.Errorf("%s, %d tokens: units %v, and --fit has %v (-ts %v -ngl %d)", family, fit.Context, chosen.Counts, want, fit.Split, fit.Offloaded)
		return 0
	}
	return 1
}

// TestLayers: 5,000 random splits place every unit as llama.cpp's std::upper_bound over float32
// does, and a split by numbers of units gives these numbers.
func TestLayers(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	for range 5000 {
		blocks, devices := 1+random.IntN(120), 1+random.IntN(6)
		split := make([]float32, devices)
		ends := make([]float32, devices)
		var sum float32
		for i := range split {
			split[i] = float32(random.IntN(8)) + random.Float32()
			sum += split[i]
			ends[i] = sum
		}
		offloaded := random.IntN(blocks + 3)
		host, counts := serving.Layers(blocks+1, split, offloaded)
		first, act := max(blocks+1-offloaded, 0), min(offloaded, blocks+1)
		want := make([]int, devices)
		for unit := first; unit <= blocks; unit++ {
			want[sort.Search(devices, func(i int) bool { return ends[i]/sum > float32(unit-first)/float32(act) })]++
		}
		if host != first || !slices.Equal(counts, want) {
			t.Fatalf("%d blocks, -ts %v -ngl %d: %d on the host and %v, want %d and %v", blocks, split, offloaded, host, counts, first, want)
		}
		forced := make([]float32, devices)
		for i, count := range counts {
			forced[i] = float32(count)
		}
		if act > 0 {
			if _, again := serving.Layers(blocks+1, forced, act); !slices.Equal(again, counts) {
				t.Fatalf("-ts %v -ngl %d gives %v", forced, act, again)
			}
		}
	}
}

// measured is a process on a GPU (fixtures/measured/how/llamacpp). Its bytes are the device's use before the
// model, and after the last token.
type measured struct {
	judged
	Model           string
	Context, UBatch int64
	KVType          string  `json:"kv_type"`
	Weights         float64 `json:"weights_mib"`
	Cache           float64 `json:"cache_mib"`
	Compute         float64 `json:"compute_mib"`
	Before, Tokens  int64
}

// TestMeasured: a real process's buffers on an H200 are the predicted ones, and the margin covers the
// rest of what it uses.
func TestMeasured(t *testing.T) {
	const mib, rounding, margin = 1 << 20, 0.006, 1 << 30
	models, rows := map[string]*serving.Model{}, fixtures.Must(fixtures.Rows[measured]("../../fixtures/measured/llamacpp_h200.jsonl.gz"))(t)
	for i := range rows {
		row := &rows[i]
		if row.Header != "" {
			var err error
			if models[row.Model], err = serving.FromGGUF(row.read(t)); err != nil {
				t.Fatal(err)
			}
		}
		model := models[row.Model]
		set := serving.LlamaCPP{Context: row.Context, Sequences: 1, UBatch: row.UBatch, KeyType: row.KVType, ValueType: row.KVType, Outputs: 1}
		used := set.Run(model, 0, model.Units())
		name := fmt.Sprintf("%s, %d tokens, %s", row.Model, row.Context, row.KVType)
		near := func(what string, bytes int64, want, off float64) {
			if got := float64(bytes) / mib; math.Abs(want-got) > off {
				t.Errorf("%s: %s %.2f MiB, want %.2f", name, what, got, want)
			}
		}
		near("weights", used.Weights, row.Weights, rounding)
		near("cache", used.Cache, row.Cache, rounding)
		near("compute", used.Compute, row.Compute, rounding)
		if rest := row.Tokens - row.Before - used.Total(); rest < 0 || rest > margin {
			t.Errorf("%s: %d MiB are used in addition, the margin is %d", name, rest/mib, margin/mib)
		}
	}
	if len(rows) < 9 {
		t.Errorf("%d rows", len(rows))
	}
}

// TestKeys: a key that contradicts the tensors, or a missing tensor, is an error that names it.
func TestKeys(t *testing.T) {
	models := judgedModels(t)
	damages := map[string]func(file *gguf.File){
		"blk.1.attn_k.weight":    func(file *gguf.File) { named(file, "blk.1.attn_k.weight").Shape[0] *= 2 },
		"blk.1.ffn_up.weight":    func(file *gguf.File) { named(file, "blk.1.ffn_up.weight").Shape[0]++ },
		"token_embd.weight":      func(file *gguf.File) { named(file, "token_embd.weight").Shape[1] = 0 },
		"blk.9999.attn_k.weight": func(file *gguf.File) { named(file, "blk.1.attn_k.weight").Name = "blk.9999.attn_k.weight" },
		"head_count_kv":          func(file *gguf.File) { named(file, "blk.1.attn_k.weight").Name = "blk.1.other" },
		"feed_forward_length":    func(file *gguf.File) { named(file, "blk.1.ffn_up.weight").Name = "blk.1.other" },
	}
	at := slices.IndexFunc(models, func(model judged) bool { return model.Family == "llama" && model.Rows != nil })
	file := models[at].read(t)
	named(file, "blk.1.attn_norm.weight").Name = "blk.1.attn_magic.weight"
	if model, err := serving.FromGGUF(file); err != nil || model.Unknown != "blk.1.attn_magic.weight" {
		t.Errorf("%v: the tensor that llama.cpp does not know is %q", err, model.Unknown)
	}
	for want, damage := range damages {
		file := models[at].read(t)
		damage(file)
		if _, err := serving.FromGGUF(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func named(file *gguf.File, name string) *modelgraph.Tensor {
	return &file.Tensors[slices.IndexFunc(file.Tensors, func(tensor modelgraph.Tensor) bool { return tensor.Name == name })]
}

// TestRead: a token reads the weights of a run once, of the experts those that it uses, and its own
// sequence's cache.
func TestRead(t *testing.T) {
	model := &serving.Model{Output: 7, Experts: 8, ExpertsUsed: 2, Blocks: []serving.Block{{Bytes: 100, Expert: 80, Key: 4, Value: 4, State: 5}, {Bytes: 50, Expert: 40, Key: 4, Value: 4}}}
	set := serving.LlamaCPP{Context: 1, Sequences: 3, KeyType: "f16", ValueType: "f16", UBatch: 1, HostExperts: 1}
	const cells, row = 256, 16
	for run, want := range map[[2]int]int64{{0, 1}: 20 + cells*row + 5, {1, 2}: 10 + 10 + cells*row, {1, 3}: 10 + 10 + cells*row + 7, {2, 3}: 7} {
		if got := set.Read(model, run[0], run[1]); got != want {
			t.Errorf("%v reads %d bytes, want %d", run, got, want)
		}
	}
}
