package recipe

import (
	"cmp"
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// attention is softmax(q·kᵀ)·v between two projections. Kernels keep the scores in registers and a
// log-sum-exp a row for backward (FlashAttention-2, arXiv 2307.08691). Backward reads this, final q and
// k, v and the output. Normed q and k are kept from before; backward norms and rotates them again.
type attention struct {
	op        modelgraph.Attention
	layer     int
	qkv       []*linear // one if they are fused
	out       *linear
	qw, kw    *weight // of the norms on q and k
	width, kv int64   // of q, and of k and v

	q, k, v  Operand // as the projection makes them
	y, lse   int
	gradient []Operand // of the projections' results
}

func (writer *writer) attentionOf(layer int, op modelgraph.Attention) (core, error) {
	if err := writer.turns(layer, &op); err != nil {
		return nil, err
	}
	if float64(op.Heads)*float64(op.HeadDim) > 1<<40 {
		return nil, unrunnable(&writer.graph.Layers[layer], "%d heads of %d are more than 2^40 values", op.Heads, op.HeadDim)
	}
	attention := &attention{op: op, layer: layer, width: op.Heads * op.HeadDim, kv: op.KVHeads * op.HeadDim}
	type projection struct {
		out   int64
		names []string
	}
	projections := []projection{
		{attention.width, []string{"q_proj", "self.query"}}, {attention.kv, []string{"k_proj", "self.key"}}, {attention.kv, []string{"v_proj", "self.value"}},
	}
	if op.Fused {
		projections = []projection{{attention.width + 2*attention.kv, []string{"qkv_proj", "c_attn", "W_pack"}}}
	}
	for _, projection := range projections {
		linear, err := writer.linearOf(layer, op.Dim, projection.out, op.Transposed, projection.names...)
		if err != nil {
			return nil, err
		}
		attention.qkv = append(attention.qkv, linear)
	}
	var err error
	if attention.out, err = writer.linearOf(layer, attention.width, op.Dim, op.Transposed, "o_proj", "c_proj", "output.dense", "out_proj", "dense"); err != nil {
		return nil, err
	}
	if op.QKNorm != "" {
		if attention.qw, err = writer.need(layer, 1, op.HeadDim, "q_norm.weight"); err == nil {
			attention.kw, err = writer.need(layer, 1, op.HeadDim, "k_norm.weight")
		}
	}
	return attention, err
}

// parts are q, k and v in the tensors of the projections.
func (attention *attention) parts(writer *writer, tensors []int) (q, k, v Operand) {
	if len(tensors) == 1 {
		return writer.columns(in("q", tensors[0]), 0, attention.width), writer.columns(in("k", tensors[0]), attention.width, attention.kv), writer.columns(in("v", tensors[0]), attention.width+attention.kv, attention.kv)
	}
	return in("q", tensors[0]), in("k", tensors[1]), in("v", tensors[2])
}

// names of the projections' results.
func (attention *attention) names(suffix string) []string {
	if len(attention.qkv) == 1 {
		return []string{"qkv" + suffix}
	}
	return []string{"q" + suffix, "k" + suffix, "v" + suffix}
}

func (attention *attention) forward(writer *writer, h int, y Operand, add ...Operand) {
	tensors := make([]int, len(attention.qkv))
	for i, name := range attention.names("") {
		tensors[i] = writer.saved(name, writer.dtype, writer.count, attention.qkv[i].out)
		attention.qkv[i].project(writer, in("a", h), out("d", tensors[i]))
	}
	attention.q, attention.k, attention.v = attention.parts(writer, tensors)
	q, k := attention.turned(writer, "")
	attention.y = writer.saved("attention", writer.dtype, writer.count, attention.width)
	switch {
	case writer.pass == passDecode:
		attention.decode(writer, q, k)
	case writer.generates && !attention.op.Bidirectional:
		attention.remember(writer, k)
		fallthrough
	default:
		attention.attend(writer, q, k)
	}
	attention.out.project(writer, in("a", attention.y), y, add...)
}

// turned are q and k after norms and rotation: in place unless backward needs the norms' inputs.
func (attention *attention) turned(writer *writer, suffix string) (q, k Operand) {
	q, k = attention.q, attention.k
	if attention.qw == nil {
		if attention.op.Rope {
			writer.kernel("rope", attention.rotation(writer), q.mode(modeUpdate), k.mode(modeUpdate))
		}
		return q, k
	}
	if writer.train {
		q = in("q", writer.temporary("q.normed"+suffix, writer.dtype, writer.count, attention.width))
		k = in("k", writer.temporary("k.normed"+suffix, writer.dtype, writer.count, attention.kv))
	}
	writer.kernel("qknorm", attention.rotation(writer), attention.q, attention.k, in("qweight", attention.qw.value), in("kweight", attention.kw.value), q.as("yq").mode(modeWrite), k.as("yk").mode(modeWrite))
	return q, k
}

// rotation are the sizes and constants of the kernels that norm and rotate heads, which compute
// cosines and sines themselves.
func (attention *attention) rotation(writer *writer) []Dim {
	op := &attention.op
	dims := []Dim{size("rows", writer.count), size("heads", op.Heads), size("kv", op.KVHeads), size("dim", op.HeadDim)}
	if attention.qw != nil {
		dims = append(dims, word("style", string(op.QKNorm)), number("epsilon", op.QKEpsilon))
	}
	if !op.Rope {
		return dims
	}
	dims = append(dims, writer.place0()...)
	turn := op.Rotation
	dims = append(dims, word("rope", cmp.Or(turn.Type, "default")), size("width", cmp.Or(turn.Width, op.HeadDim)), number("base", cmp.Or(turn.Base, 10_000)))
	for _, constant := range []struct {
		name  string
		value float64
	}{{"factor", turn.Factor}, {"trained", float64(turn.Trained)}, {"slow", turn.Slow}, {"fast", turn.Fast}, {"attention_factor", turn.AttentionFactor}} {
		if constant.value != 0 {
			dims = append(dims, number(constant.name, constant.value))
		}
	}
	if turn.Untruncated {
		dims = append(dims, word("truncate", "false"))
	}
	return dims
}

// place0 is the rows' positions: each sequence begins at 0, or all rows are at the decoded one
// after so many of the prompt.
func (asm *assembler) place0() []Dim {
	if asm.pass == passDecode {
		return []Dim{size("past", asm.seq)}
	}
	return []Dim{size("seq", asm.seq)}
}

// dims are the dimensions of attention's kernels.
func (attention *attention) dims(writer *writer) []Dim {
	op := &attention.op
	dims := []Dim{size("sequences", writer.sequences), size("heads", op.Heads), size("kv", op.KVHeads), size("dim", op.HeadDim)}
	dims = append(dims, writer.place0()...)
	if !op.Bidirectional {
		dims = append(dims, size("causal", 1))
	}
	if op.Window > 0 {
		dims = append(dims, size("window", op.Window))
	}
	scale := cmp.Or(op.Scale, 1/math.Sqrt(float64(op.HeadDim)))
	dims = append(dims, number("scale", scale))
	if op.ScoreCap > 0 {
		dims = append(dims, number("cap", op.ScoreCap))
	}
	return dims
}

// products is the FLOPs of one product over all pairs of a query and a key that it sees.
func (attention *attention) products(writer *writer) float64 {
	seq := float64(writer.seq)
	pairs := seq * seq
	if !attention.op.Bidirectional {
		window := seq
		if attention.op.Window > 0 {
			window = min(seq, float64(attention.op.Window))
		}
		pairs = window*(window+1)/2 + (seq-window)*window
	}
	return 2 * float64(writer.sequences) * pairs * float64(attention.width)
}

func (attention *attention) attend(writer *writer, q, k Operand) {
	operands := []Operand{q, k, attention.v, out("y", attention.y)}
	if writer.train {
		attention.lse = writer.saved("lse", modelgraph.F32, writer.count, attention.op.Heads)
		operands = append(operands, out("lse", attention.lse))
	}
	writer.kernel("attention", attention.dims(writer), operands...).Attention = 2 * attention.products(writer)
}

func (attention *attention) backward(writer *writer, dy int, normed func() int, dh func() (Operand, []Operand)) {
	attention.out.learn(writer, in("a", attention.y), in("dy", dy))
	gradient := writer.temporary("attention.gradient", writer.dtype, writer.count, attention.width)
	attention.out.back(writer, in("dy", dy), out("d", gradient))
	attention.attendBack(writer, gradient)
	h := normed()
	for i, linear := range attention.qkv {
		linear.learn(writer, in("a", h), attention.gradient[i])
	}
	writer.backAll(attention.qkv, attention.gradient, dh)
}

// attendBack makes the gradients of q, k and v in one kernel. GPUs with a kernel that meets each
// pair of a query and a key once add the gradients of queries up in sums, in the keys' order. Others make
// scores twice. No sum depends on the GPU's order.
func (attention *attention) attendBack(writer *writer, dy int) {
	q, k := attention.q, attention.k
	if attention.qw != nil {
		q, k = attention.turned(writer, ".again")
	}
	delta := writer.temporary("delta", modelgraph.F32, writer.count, attention.op.Heads)
	writer.kernel("attention_delta", []Dim{size("rows", writer.count), size("heads", attention.op.Heads), size("dim", attention.op.HeadDim)}, in("y", attention.y), in("dy", dy), out("delta", delta))
	tensors := make([]int, len(attention.qkv))
	attention.gradient = make([]Operand, len(attention.qkv))
	for i, name := range attention.names(".gradient") {
		tensors[i] = writer.temporary(name, writer.dtype, writer.count, attention.qkv[i].out)
		attention.gradient[i] = in("dy", tensors[i])
	}
	dq, dk, dv := attention.parts(writer, tensors)
	operands := []Operand{q, k, attention.v, in("dy", dy), in("lse", attention.lse), in("delta", delta), dq.as("dq").mode(modeWrite), dk.as("dk").mode(modeWrite), dv.as("dv").mode(modeWrite)}
	if tiles, numbers := attention.tiles(writer); tiles > 0 {
		operands = append(operands, out("sums", writer.temporary("attention.sums", modelgraph.F32, tiles, numbers)))
	}
	writer.kernel("attention_backward", attention.dims(writer), operands...).Attention = 7 * attention.products(writer)
	attention.turnBack(writer, dq.as("dq"), dk.as("dk"))
}

// tiles are the blocks of queries of all heads, whose gradients are added up in fp32, and the numbers
// of each: its values, and how many blocks of keys have added their share. Shapes that no such kernel
// takes have none.
func (attention *attention) tiles(writer *writer) (count, numbers int64) {
	rows := map[int64]int64{64: 128, 80: 64, 96: 64, 128: 64, 256: 64}[attention.op.HeadDim]
	if writer.dtype != modelgraph.BF16 || rows == 0 || attention.op.ScoreCap > 0 {
		return 0, 0
	}
	return writer.sequences * attention.op.Heads * ((writer.seq + rows - 1) / rows), rows*attention.op.HeadDim + 1
}

// turnBack turns the gradients of q and k back, and takes them through the norms, in place.
func (attention *attention) turnBack(writer *writer, dq, dk Operand) {
	dq, dk = dq.mode(modeUpdate), dk.mode(modeUpdate)
	switch {
	case attention.qw == nil && !attention.op.Rope:
	case attention.qw == nil:
		writer.kernel("rope_backward", attention.rotation(writer), dq, dk)
	default:
		parts := partsOf(writer.count)
		qsums := writer.temporary("q.sums", modelgraph.F32, parts, attention.op.HeadDim)
		ksums := writer.temporary("k.sums", modelgraph.F32, parts, attention.op.HeadDim)
		writer.kernel("qknorm_backward", attention.rotation(writer), attention.q, attention.k, in("qweight", attention.qw.value), in("kweight", attention.kw.value), dq, dk, out("qsums", qsums), out("ksums", ksums))
		writer.addSums(qsums, attention.qw)
		writer.addSums(ksums, attention.kw)
	}
}
