package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/serve/internal/paged"
)

func builtIn(t *testing.T, name string) *modelgraph.Graph {
	t.Helper()
	graph := fixtures.Must(load.Model(name, load.Options{BuiltIn: os.DirFS("../../fixtures/models"), Env: func(string) string { return "" }}))(t)
	return graph
}

type defaultsRow struct {
	In struct {
		Model  string
		GPU    []json.RawMessage
		Usage  string
		TP, PP int64
		Flags  map[string]json.RawMessage
	}
	Out struct {
		Error     string
		Batched   int64   `json:"max_num_batched_tokens"`
		Sequences int64   `json:"max_num_seqs"`
		Length    int64   `json:"max_model_len"`
		Share     float64 `json:"utilization"`
		Heads     int64   `json:"kv_heads"`
		Head      int64   `json:"head_size"`
		Layers    int     `json:"layers"`
	}
}

// TestDefaults compares the sizes that vllm serve takes if the user sets none, and the degrees that it
// refuses, with vLLM 0.33's own code.
func TestDefaults(t *testing.T) {
	sizes := map[string]func(*costmodel.Workload) *int64{
		"max_num_seqs":           func(workload *costmodel.Workload) *int64 { return &workload.Sequences },
		"max_num_batched_tokens": func(workload *costmodel.Workload) *int64 { return &workload.BatchedTokens },
		"max_model_len":          func(workload *costmodel.Workload) *int64 { return &workload.Context },
	}
	graphs := map[string]*modelgraph.Graph{}
	compared, refused := 0, 0
	for _, row := range fixtures.Must(fixtures.Rows[defaultsRow]("../../fixtures/oracle/engines/vllm_defaults.jsonl.gz"))(t) {
		if row.In.Usage != "OPENAI_API_SERVER" {
			continue
		}
		workload := costmodel.Workload{Runtime: costmodel.VLLM}
		known := true
		for name, raw := range row.In.Flags {
			at, ok := sizes[name]
			if ok {
				ok = json.Unmarshal(raw, at(&workload)) == nil && *at(&workload) > 0
			}
			known = known && (ok || name == "block_size" || name == "enforce_eager" || name == "kv_cache_dtype")
		}
		if !known {
			continue
		}
		graph := graphs[row.In.Model]
		if graph == nil {
			graph = builtIn(t, row.In.Model)
			graphs[row.In.Model] = graph
		}
		var name string
		var gib float64
		var capability [2]int
		for i, into := range []any{&name, &gib, &capability} {
			if err := json.Unmarshal(row.In.GPU[i], into); err != nil {
				t.Fatal(err)
			}
		}
		topology := &costmodel.Topology{Devices: []costmodel.Device{{Name: name, CapacityBytes: int64(gib * (1 << 30)), ComputeCapability: fmt.Sprintf("%d.%d", capability[0], capability[1])}}}
		question, err := RankQuestionOf(graph, &workload, topology)
		if err != nil {
			if strings.Contains(err.Error(), "that is not planned") {
				continue
			}
			if !strings.Contains(err.Error(), "the engine refuses more") || !strings.Contains(row.Out.Error, "is greater than the derived max_model_len") {
				t.Errorf("%s: %v; vLLM: %q", row.In.Model, err, row.Out.Error)
			}
			continue
		}
		if strings.Contains(row.Out.Error, "must be divisible by tensor parallel size") {
			refused++
			if question.Model.Takes(row.In.TP) == nil {
				t.Errorf("%s: tp %d is taken, vLLM: %s", row.In.Model, row.In.TP, row.Out.Error)
			}
		}
		if row.Out.Error != "" {
			continue
		}
		compared++
		set := &question.Set
		if set.Batched != row.Out.Batched || set.Sequences != row.Out.Sequences || set.Share != row.Out.Share || len(question.Model.Layers) != row.Out.Layers || workload.Context == 0 && question.Model.Trained != row.Out.Length {
			t.Errorf("%s on %s, %v: %d tokens, %d sequences, share %v, %d layers, context %d; vLLM: %d, %d, %v, %d, %d", row.In.Model, name, workload.Serving,
				set.Batched, set.Sequences, set.Share, len(question.Model.Layers), question.Model.Trained, row.Out.Batched, row.Out.Sequences, row.Out.Share, row.Out.Layers, row.Out.Length)
		}
	}
	if compared < 150 || refused < 50 {
		t.Errorf("only %d sizes and %d refusals", compared, refused)
	}
}

// TestStages compares the engines' own split of the layers with their own code.
func TestStages(t *testing.T) {
	type row struct {
		Engine    string
		Stages    int `json:"p"`
		First     int
		Counts    [][]int
		Partition *string
	}
	count := 0
	for _, row := range fixtures.Must(fixtures.Rows[row]("../../fixtures/oracle/engines/partitions.jsonl.gz"))(t) {
		if row.Partition != nil {
			continue
		}
		set := paged.Settings{Engine: map[string]paged.Engine{"vllm": paged.VLLM, "sglang": paged.SGLang}[row.Engine]}
		for i, want := range row.Counts {
			if layers := row.First + i; layers >= row.Stages {
				count++
				if found := set.Stages(layers, row.Stages); !slices.Equal(found, want) {
					t.Errorf("%s: %d layers on %d stages: %v, the engine has %v", row.Engine, layers, row.Stages, found, want)
				}
			}
		}
	}
	if count < 1900 {
		t.Errorf("only %d splits", count)
	}
}

// TestSolveRanks compares the blocks and the largest share with those of all splits in order, for
// random models on up to four unequal GPUs.
func TestSolveRanks(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 42))
	found, full := 0, 0
	for range 400 {
		question := sampledRanks(random)
		answer, err := SolveRanks(question)
		best, share := question.tryAll()
		switch {
		case err != nil && best < 2:
			continue
		case err != nil:
			t.Fatalf("%v, and a split has %d blocks", err, best)
		}
		found++
		if answer.Blocks != best {
			t.Errorf("%v: %d blocks in %v, the best split has %d", answer.Set.Engine, answer.Blocks, answer.Counts, best)
		}
		more := *question
		more.Set.Context = answer.Set.Context + 1
		if _, err := SolveRanks(&more); answer.Full && err == nil || !answer.Full && answer.Set.Context != question.Model.Trained {
			t.Errorf("%d tokens of %d, full %t; one more: %v", answer.Set.Context, question.Model.Trained, answer.Full, err)
		}
		if answer.Full {
			full++
		}
		// Bound is below the least share by at most the precision of its search.
		if answer.Set.Engine == paged.VLLM && (answer.Share > share || answer.Bound >= share || share-answer.Bound > 1e-9) {
			t.Errorf("%d blocks in %v: a share of %v and a bound of %v; the least share is %v", best, answer.Counts, answer.Share, answer.Bound, share)
		}
	}
	if found < 150 || full == 0 || full == found {
		t.Errorf("%d answers, %d full", found, full)
	}
}

// sampledRanks is a random question about a pipeline.
func sampledRanks(random *rand.Rand) *RankQuestion {
	model := &paged.Model{Element: 2, Width: 512, Vocabulary: 1 << 10, Trained: 1 << 12, Heads: 8, KeyHeads: 4, First: paged.Weights{Vocabulary: 1 << 20 * random.Int64N(4)}, Last: paged.Weights{Vocabulary: 1 << 20 * random.Int64N(6)}}
	for range 3 + random.IntN(5) {
		kind := paged.Full
		if random.IntN(3) == 0 {
			kind = paged.Sliding
		}
		model.Layers = append(model.Layers, paged.Layer{
			Weights: paged.Weights{Split: 1 << 20 * (1 + random.Int64N(6))}, FeedForward: 1024 * (1 + random.Int64N(3)),
			Cache: paged.Cache{Kind: kind, Heads: 4, Head: 32, Value: 32, Element: 2, Window: 512},
		})
	}
	question := &RankQuestion{Model: model, Set: paged.Settings{
		Engine: paged.Engine(random.IntN(2)), Version: paged.Version{0, 19}, Degrees: paged.Degrees{Tensor: 1, Data: 1}, Sequences: 16, Batched: 512, Share: 0.9, Block: 16,
	}}
	for range 1 + random.IntN(3) {
		total := int64(600<<20) + 1<<20*random.Int64N(64)
		question.GPUs = append(question.GPUs, paged.GPU{Total: total, Free: total})
	}
	question.Set.Pipeline = int64(len(question.GPUs))
	if question.Set.Engine == paged.SGLang {
		question.Set.Block = 1
	}
	return question
}

// tryAll is the largest number of blocks of all splits whose stages each have a layer, and the least of
// their largest shares of a GPU with as many blocks.
func (question *RankQuestion) tryAll() (best int64, share float64) {
	pool, err := question.Set.Pool(question.Model)
	if err != nil {
		return 0, 0
	}
	splits(len(question.Model.Layers), len(question.GPUs), func(counts []int) {
		if slices.Contains(counts, 0) {
			return
		}
		blocks, ranks := question.Set.Split(question.Model, pool, question.GPUs, counts)
		if blocks < best {
			return
		}
		most := 0.0
		for stage := range ranks {
			most = max(most, float64(ranks[stage].Total())/float64(question.GPUs[stage].Free))
		}
		if blocks > best || most < share {
			best, share = blocks, most
		}
	})
	return best, share
}

// TestGivenDegrees: degrees of an edited plan that do not suit its stages or GPUs are an error.
func TestGivenDegrees(t *testing.T) {
	question := sampledRanks(rand.New(rand.NewPCG(1, 2)))
	question.GPUs = slices.Repeat(question.GPUs[:1], 3)
	layers, gpus := len(question.Model.Layers), int64(len(question.GPUs))
	for _, degrees := range []paged.Degrees{{Pipeline: 1, Data: 1}, {Tensor: 1, Data: 1}, {Tensor: 1, Pipeline: 1}, {Tensor: 1, Pipeline: 2, Data: 1}, {Tensor: 1, Pipeline: 1, Data: gpus + 1}, {Tensor: 1 << 40, Pipeline: 1, Data: 1 << 40}} {
		question.Set.Degrees = degrees
		if answer, err := question.Given([]int{layers}); err == nil {
			t.Errorf("%v on %d GPUs: %+v", degrees, gpus, answer)
		}
	}
}

// TestSmallestOfStage: the smallest GPU of a stage decides for all its ranks.
func TestSmallestOfStage(t *testing.T) {
	question := sampledRanks(rand.New(rand.NewPCG(1, 2)))
	question.Set.Engine, question.Set.Degrees = paged.VLLM, paged.Degrees{Tensor: 2, Pipeline: 1, Data: 1}
	const small, large = 640 << 20, 700 << 20
	blocks := func(totals ...int64) int64 {
		question.GPUs = nil
		for _, total := range totals {
			question.GPUs = append(question.GPUs, paged.GPU{Total: total, Free: total})
		}
		answer := fixtures.Must(SolveRanks(question))(t)
		return answer.Blocks
	}
	want := blocks(small, small)
	if found, most := blocks(large, small), blocks(large, large); found != want || most <= want {
		t.Errorf("%d blocks with one small GPU, %d with two and %d with none", found, want, most)
	}
}

// TestCloser: the reported fault is the one with the longest context, or with the fewest missing bytes.
func TestCloser(t *testing.T) {
	far, near := &InfeasibleRanksError{Needs: 9, Has: 2}, &InfeasibleRanksError{Needs: 20, Has: 15}
	short, long := &InfeasibleRanksError{Longest: 5}, &InfeasibleRanksError{Longest: 10}
	for _, pair := range [][2]error{{near, far}, {long, short}, {short, near}, {far, errors.New("not taken")}} {
		if !closer(pair[0], pair[1]) || closer(pair[1], pair[0]) {
			t.Errorf("%v is not closer than %v", pair[0], pair[1])
		}
	}
}
