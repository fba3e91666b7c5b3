package engine

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/modelgraph"
)

// pi0Family is the family with a known program: pi0 and pi0.5.
const pi0Family = "openpi_pi0"

// Program reports a model that is a program of JAX, with arrays as layers, for no other engine.
func Program(graph *modelgraph.Graph) bool { return graph.Family == pi0Family }

// The units of the model, by their names.
const (
	towerUnit = "PaliGemma.img"
	gemmaUnit = "PaliGemma.llm"
)

// pi0Band is the error of a step's peak. XLA times several ways to run every product when it
// compiles; its choice changes what it must keep. The same step, with and without these trials, had
// planned peaks 2 to 12 % apart (measured, jax 0.11.2 on an H200).
const pi0Band = 0.08

// pi0ActBand is the same of a policy.
const pi0ActBand = 0.1

// pi0CutBand is the same if arrays are sharded.
const pi0CutBand = 0.12

// pi0Images are a step's images (models/model.py, IMAGE_KEYS), of 224 pixels in fp32.
const (
	pi0Images     = 3
	pi0ImageBytes = 224 * 224 * 3 * 4
)

// pi0Step is a training step of pi0 on one GPU. Scans run the blocks of the tower and of the
// language model with its expert; backward recomputes each from its input (siglip.py and gemma.py:
// nn.remat, nothing_saveable). Sizes are bytes of one sequence unless noted.
type pi0Step struct {
	model           *layers.Model
	batch           int64
	prefix, suffix  int64 // tokens: images and prompt; state and actions
	width, hidden   [2]int64
	depth, heads    int64
	headDim         int64
	towerWidth      int64
	towerDepth      int64
	towerHidden     int64
	towerTokens     int64
	towerHeads      int64
	adapted, frozen bool
}

// pi0Of reads the sizes off the arrays' shapes; nil if they are another model's.
func pi0Of(model *layers.Model) *pi0Step {
	if !Program(model.Graph) {
		return nil
	}
	shape := func(name string) []int64 {
		if array := tensorOf(model.Graph, name); array != nil {
			return array.Shape
		}
		return nil
	}
	const block = gemmaUnit + ".layers."
	gate, expert := shape(block+"mlp.gating_einsum"), shape(block+"mlp_1.gating_einsum")
	out, dense, query := shape(block+"attn.attn_vec_einsum.w"), shape(towerUnit+".Transformer.encoderblock.MlpBlock_0.Dense_0.kernel"), shape(towerUnit+".Transformer.encoderblock.MultiHeadDotProductAttention_0.query.kernel")
	places, actions := shape(towerUnit+".pos_embedding"), model.Graph.Layers[len(model.Graph.Layers)-1].Stream.Tokens
	if len(gate) != 4 || len(expert) != 4 || len(out) != 4 || len(dense) != 3 || len(query) != 4 || len(places) != 3 {
		return nil
	}
	return &pi0Step{
		model: model, batch: model.Workload.Batch,
		prefix: pi0Images*places[1] + model.Workload.Seq, suffix: actions,
		width: [2]int64{gate[2], expert[2]}, hidden: [2]int64{gate[3], expert[3]},
		depth: gate[0], heads: out[1], headDim: out[2],
		towerWidth: dense[1], towerDepth: dense[0], towerHidden: dense[2], towerTokens: places[1], towerHeads: query[2],
		adapted: shape(block+"mlp.gating_einsum_lora_a") != nil, frozen: frozenTree(model.Graph),
	}
}

// carried are the bf16 inputs of all blocks, which a scan stacks: of the language model with its
// expert, and of the tower for one image.
func (step *pi0Step) carried() (gemma, tower int64) {
	return 2 * step.depth * (step.prefix*step.width[0] + step.suffix*step.width[1]), 2 * step.towerDepth * step.towerTokens * step.towerWidth
}

// gemmaWork is the most alive in one block's recomputed backward:
//   - five tensors as wide as the MLP: gate, up, their product, and gradients of two
//   - the scores of all heads in fp32 and the probabilities in bf16 (gemma.py, Attention, not fused)
//   - six tensors as wide as the hidden state
//
// With adapters, gate and up are sums of two products, kept until added: nine tensors (counted in
// XLA's plan for a batch of 64).
func (step *pi0Step) gemmaWork() int64 {
	wide, all := int64(5), step.prefix+step.suffix
	if step.adapted {
		wide = 9
	}
	mlp := 2 * (step.prefix*step.hidden[0] + step.suffix*step.hidden[1])
	return wide*mlp + (4+2)*step.heads*all*all + 6*2*(step.prefix*step.width[0]+step.suffix*step.width[1])
}

// towerWork is the same of a block of the tower: scores and probabilities are bf16.
func (step *pi0Step) towerWork() int64 {
	return 4*2*step.towerTokens*step.towerHidden + 2*2*step.towerHeads*step.towerTokens*step.towerTokens + 6*2*step.towerTokens*step.towerWidth
}

// input is a sequence's permanent part of the batch: fp32 pixels, tokens, state and actions.
func (step *pi0Step) input() int64 {
	return pi0Images*pi0ImageBytes + 4*step.model.Workload.Seq + 4*32*(1+step.suffix)
}

// layerWeights are a block's weights in elements, of one of the stack.
func (step *pi0Step) layerWeights() int64 {
	var sum int64
	for i := range step.model.Graph.Layers {
		if layer := &step.model.Graph.Layers[i]; layer.Name == gemmaUnit+".layers" {
			for _, array := range layer.Owned() {
				sum += array.Numel / step.depth
			}
		}
	}
	return sum
}

// fill sets the units' memory of a step.
func (step *pi0Step) fill(table *costmodel.Table) {
	table.Band = pi0Band
	what := "the same step was planned by XLA 2 to 12 % apart, by the ways to run products that it found fastest"
	switch {
	case !step.model.Train:
		table.Band, what = pi0ActBand, "a policy's step was compiled and not run"
	case step.model.Workload.ShardDegree > 1:
		table.Band, what = pi0CutBand, "of steps whose arrays are cut, most were compiled and not run"
	}
	warn(table, "%s (jax 0.11.2; OpenPI pins 0.5.3): every peak may be %.0f%% lower or higher", what, 100*table.Band)
	for index := range table.Units {
		unit := &table.Units[index]
		unit.Declared, unit.Recompute = false, false
		unit.Layers = []costmodel.LayerMemory{{Layer: unit.Name}}
		switch {
		case step.model.Train:
			step.train(index, unit)
		default:
			step.act(unit)
		}
		step.times(index, unit)
	}
}

// train is backward: the language model first, then the tower, once for each image.
func (step *pi0Step) train(index int, unit *costmodel.Unit) {
	memory := &unit.Layers[0]
	gemma, tower := step.carried()
	memory.Grads = treeOf(step.model, index, everyArray).trained
	memory.BackwardGrads = memory.Grads
	switch unit.Name {
	case gemmaUnit:
		memory.Saved = step.batch * gemma
		// A stack's gradients fill an array that exists from the first block on; the embedding's is
		// last.
		memory.BackwardGrads = treeOf(step.model, index, func(name string) bool { return !strings.Contains(name, "embedder") }).trained
		memory.Backward = step.batch*step.gemmaWork() + memory.BackwardGrads + step.blockCopies()
		if step.model.Workload.ShardDegree > 1 {
			step.atOnce(memory)
		}
	case towerUnit:
		memory.Saved = step.batch * (pi0Images*tower + step.input())
		// Each image's pass leaves its own gradients, which are added up after the last. Then one more
		// array of the sum exists, or the last pass still runs. The tower's inputs go image by image.
		memory.BackwardGrads = pi0Images * memory.Grads
		gone := step.batch * (pi0Images - 1) * tower
		memory.Backward = memory.BackwardGrads + max(step.largest(index)-step.batch*tower, step.batch*step.towerWork()) - gone
	default:
		memory.Backward = memory.Grads
	}
	memory.Forward = memory.Saved
}

// blockCopies are the scan body's copies of a block's weights and gradients: weights cast to bf16,
// gradients in bf16 and cast to the stack's fp32. Frozen weights are bf16 and have no gradient.
func (step *pi0Step) blockCopies() int64 {
	if step.frozen {
		return 2 * step.layerWeights()
	}
	return (2 + 2 + 2 + 4) * step.layerWeights()
}

// atOnce is backward with sharded arrays. XLA issues collectives early and waits late, so all
// gradients, the tower's of every image too, overlap the language model's blocks. It splits the
// MLP's products as the arrays and gathers activations, not weights, so tensors as wide as the MLP
// stay as large (both read in compiled programs).
func (step *pi0Step) atOnce(memory *costmodel.LayerMemory) {
	for index := range step.model.Graph.Units {
		if step.model.Graph.Units[index].Name == towerUnit {
			more := pi0Images*treeOf(step.model, index, everyArray).trained + memory.Grads - memory.BackwardGrads
			memory.Backward, memory.BackwardGrads = memory.Backward+more, memory.BackwardGrads+more
		}
	}
}

// largest is a unit's largest trained array on one GPU, in bytes.
func (step *pi0Step) largest(index int) int64 {
	var most int64
	unit := &step.model.Graph.Units[index]
	for i := unit.First; i < unit.End; i++ {
		layer := &step.model.Graph.Layers[i]
		for _, array := range layer.Owned() {
			name := modelgraph.FullName(layer.Name, array.Name)
			most = max(most, treeOf(step.model, index, func(other string) bool { return other == name }).trained)
		}
	}
	return most
}

// act is a policy's step (pi0.py, sample_actions). One pass of the prefix leaves the keys and
// values of every block; then the expert runs ten times over its tokens. A block's forward has two
// tensors as wide as the MLP, or scores in fp32 and probabilities in bf16. It also has two as wide
// as the hidden state, and the gate's weights, which the scan slices off.
func (step *pi0Step) act(unit *costmodel.Unit) {
	memory := &unit.Layers[0]
	if unit.Name != gemmaUnit {
		return
	}
	memory.KV = step.batch * 2 * 2 * step.depth * step.prefix * step.headDim
	widest := max(2*2*step.prefix*step.hidden[0], (4+2)*step.heads*step.prefix*step.prefix)
	memory.Forward = memory.KV + step.batch*(widest+2*2*step.prefix*step.width[0]) + 2*2*step.width[0]*step.hidden[0]
}

// times is the work of a unit: products, and the traffic of what no product makes.
func (step *pi0Step) times(index int, unit *costmodel.Unit) {
	work := costmodel.Work{Block: unit.Name == gemmaUnit || unit.Name == towerUnit}
	graph := step.model.Graph
	for i := graph.Units[index].First; i < graph.Units[index].End; i++ {
		for _, array := range graph.Layers[i].Owned() {
			work.Tensors++
			work.Weights += array.Numel
			if step.model.Train && !array.Frozen {
				work.Trained += array.Numel
			}
		}
	}
	work.Forward = step.pass(unit.Name)
	unit.FLOPs = work.Forward.Products
	if step.model.Train { // the block runs again, then both products of each
		work.Backward = costmodel.Pass{Products: 3 * work.Forward.Products, Traffic: 3 * work.Forward.Traffic}
		if step.frozen && unit.Name == gemmaUnit { // frozen weights need one
			work.Backward.Products = 2 * work.Forward.Products
		}
		work.Update = float64(work.Trained) * step.model.Optimizer.Traffic(4)
	}
	unit.Work = work
}

// pass is one forward of a unit.
func (step *pi0Step) pass(unit string) costmodel.Pass {
	var pass costmodel.Pass
	batch, all := float64(step.batch), float64(step.prefix+step.suffix)
	switch unit {
	case gemmaUnit:
		for i, tokens := range []int64{step.prefix, step.suffix} {
			projections := 3*step.width[i]*step.hidden[i] + 2*step.width[i]*(step.heads+1)*step.headDim
			pass.Products += 2 * batch * float64(step.depth*tokens*projections)
		}
		pass.Products += 4 * batch * float64(step.depth*step.heads*step.headDim) * all * all
		pass.Traffic = 2 * batch * float64(step.depth*step.gemmaWork())
	case towerUnit:
		tokens := float64(pi0Images * step.towerTokens)
		block := float64(4*step.towerWidth*step.towerWidth + 2*step.towerWidth*step.towerHidden)
		pass.Products = batch * tokens * float64(step.towerDepth) * (2*block + 4*float64(step.towerTokens*step.towerWidth))
		pass.Products += 2 * batch * tokens * float64(step.towerWidth*step.width[0])
		pass.Traffic = 2 * batch * pi0Images * float64(step.towerDepth*step.towerWork())
	}
	return pass
}
