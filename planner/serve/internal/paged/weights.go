package paged

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Weights are bytes of parameters, by the way in which ranks of tensor parallelism share them.
type Weights struct {
	Whole      int64 // every rank has all: norms, routers, projections to a latent
	Split      int64 // every rank has an equal part
	Keys       int64 // projections to keys and values; a rank has at least one head
	Experts    int64 // split, or whole experts on each rank
	Vocabulary int64 // tables of padded rows, split by rows
}

// Degrees are those of parallelism.
type Degrees struct {
	Tensor, Pipeline, Data int64
	// Experts is over how many ranks whole experts are spread (--enable-expert-parallel, --ep): 0 splits
	// each over the ranks of tensor parallelism. vLLM spreads them over replicas too.
	Experts int64
}

// Ranks is the number of GPUs.
func (degrees Degrees) Ranks() int64 { return degrees.Tensor * degrees.Pipeline * degrees.Data }

// StageOf is the stage of a GPU: tensor ranks are next to each other, then stages, then replicas.
func (degrees Degrees) StageOf(gpu int) int64 {
	return int64(gpu) / degrees.Tensor % degrees.Pipeline
}

// String names them by vLLM's short flags.
func (degrees Degrees) String() string {
	var words []string
	for _, degree := range []struct {
		name  string
		ranks int64
	}{{"tp", degrees.Tensor}, {"pp", degrees.Pipeline}, {"dp", degrees.Data}, {"ep", degrees.Experts}} {
		if degree.ranks > 0 {
			words = append(words, fmt.Sprintf("%s %d", degree.name, degree.ranks))
		}
	}
	return strings.Join(words, ", ")
}

// rank is what the first rank of tensor parallelism has of them.
func (weights *Weights) rank(degrees Degrees, heads, experts int64) int64 {
	parts := degrees.Tensor
	sum := weights.Whole + (weights.Split+weights.Vocabulary)/parts
	if heads > 0 {
		sum += weights.Keys * max(1, heads/parts) / heads
	} else {
		sum += weights.Keys / parts
	}
	if degrees.Experts > 0 && experts > 0 { // what is left of tensor parallelism splits each
		return sum + weights.Experts*divided(experts, degrees.Experts)/experts/max(1, parts/degrees.Experts)
	}
	return sum + weights.Experts/parts
}

// rows is what the engines pad a vocabulary to (vocab_parallel_embedding.py, DEFAULT_VOCAB_PADDING_SIZE).
const rows = 64

func paddedRows(vocabulary int64) int64 { return divided(vocabulary, rows) * rows }

// addTensor adds a parameter of a layer in so many bytes.
func (weights *Weights) addTensor(layer *modelgraph.Layer, tensor *modelgraph.Tensor, bytes int64) {
	name := strings.ToLower(modelgraph.FullName(layer.Name[strings.LastIndexByte(layer.Name, '.')+1:], tensor.Name))
	switch op := layer.Op.(type) {
	case modelgraph.Attention:
		weights.addAttention(&op, strings.ToLower(tensor.Name), bytes)
	case modelgraph.MLP, modelgraph.StateSpace:
		weights.addSplit(name, bytes)
	case modelgraph.MoE:
		switch {
		case strings.Contains(name, "shared"):
			weights.addSplit(name, bytes)
		case strings.Contains(name, "expert"):
			weights.Experts += bytes
		default: // the router
			weights.Whole += bytes
		}
	case modelgraph.Embedding:
		if op.Index == modelgraph.TokenIndex {
			weights.Vocabulary += padTable(bytes, op.Vocab)
		} else {
			weights.Whole += bytes
		}
	case modelgraph.Head:
		weights.Vocabulary += padTable(bytes, op.Vocab)
	default:
		weights.Whole += bytes
	}
}

func padTable(bytes, vocabulary int64) int64 {
	if vocabulary == 0 {
		return bytes
	}
	return bytes / vocabulary * paddedRows(vocabulary)
}

// lasts are names of projections whose inputs are split, so that every rank has their bias.
var lasts = []string{"o_proj", "out_proj", "down_proj", "fc2", "fc_out", "dense_4h_to_h", "c_proj", "wo.", "w2."}

// addSplit adds a part of a feed-forward or of a recurrent mixer.
func (weights *Weights) addSplit(name string, bytes int64) {
	if strings.HasSuffix(name, "shared_expert_gate.weight") || strings.HasSuffix(name, "bias") && containsAny(name, lasts) {
		weights.Whole += bytes
		return
	}
	weights.Split += bytes
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// addAttention adds a part of attention. Of a fused projection, each rank has its heads of queries,
// keys and values.
func (weights *Weights) addAttention(op *modelgraph.Attention, name string, bytes int64) {
	module := name[:max(0, strings.IndexByte(name, '.'))]
	switch {
	case op.KVRank > 0:
		if strings.Contains(name, "_a_") || strings.Contains(name, "norm") || strings.Contains(name, "index") {
			weights.Whole += bytes
		} else {
			weights.Split += bytes
		}
	case strings.Contains(name, "norm"), strings.HasSuffix(name, "bias") && containsAny(name, append(lasts, "dense.")):
		weights.Whole += bytes
	case containsAny(module, []string{"qkv", "query_key", "c_attn"}):
		keys := bytes * 2 * op.KVHeads / (op.Heads + 2*op.KVHeads)
		weights.Keys += keys
		weights.Split += bytes - keys
	case containsAny(module, []string{"key", "value"}), strings.HasPrefix(module, "k"), strings.HasPrefix(module, "v"), module == "wk", module == "wv":
		weights.Keys += bytes
	default:
		weights.Split += bytes
	}
}
