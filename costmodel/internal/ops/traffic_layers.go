package ops

import "github.com/devmap-dev/devmap/modelgraph"

// normTraffic is bytes an element. RMSNorm forward (modeling_llama.py
// LlamaRMSNorm): the cast to fp32, pow, mean, the product with 1/σ, the cast
// back, the product with the weight; backward the same nodes, where the
// product makes two gradients and sums one of them, pow's backward runs three
// kernels, and the fp32 input collects two gradients.
func normTraffic(style modelgraph.NormStyle, s *Shape) (forward, backward moved) {
	r := float64(s.r())
	if style == modelgraph.LayerNorm { // one kernel forward; backward one more for weight and bias
		return moved{flat: 2 * r}, moved{flat: 5 * r}
	}
	cast := 0.
	if s.half() {
		cast = 2 + 4
	}
	const (
		pow, mean, product = 4 + 4, 4, 4 + 4
		meanBack, powBack  = 4, 8 + 8 + 12
		collect            = 12
	)
	weight, weightBack := moved{strided: 2 * r}, moved{flat: 3 * r, strided: r + 2*r} // its gradient, that one's sum, the input's
	if style == modelgraph.GemmaRMSNorm {
		weight, weightBack = moved{strided: 8}, moved{flat: 12, strided: 4 + 8}
	}
	forward = weight.add(pow+cast, cast+mean+product)
	backward = weightBack.add(12+powBack+collect+cast, cast+8+4+meanBack) // the product's: 1/σ's 12, x's 8 and a sum
	return forward, backward
}

// attentionTraffic is the rotation (modeling_llama.py apply_rotary_pos_emb:
// two products, rotate_half's negation and cat, a sum), norms of q and k, the
// residual's sum, and the sums of gradients: of the inputs of q, k and v, and
// of repeated heads.
func attentionTraffic(op modelgraph.Attention, s *Shape) (forward, backward moved) {
	g := geometry(op, s)
	n, e, r := float64(s.Tokens), float64(s.e()), float64(s.r())
	heads := n * float64(g.q+g.k)
	stream := n * float64(op.Dim)
	forward.flat = 3 * r * stream
	if !op.Fused {
		backward.flat += 2 * 3 * r * stream
	}
	if op.Rope {
		forward.strided += (2 + 2 + 2 + 2 + 3 - 1) * e * heads
		// Slices go back as zeros, a copy and a sum each; then q and k are
		// made contiguous for their projections.
		backward.flat += (1 + 3) * e * heads // the zeros and one sum
		backward.strided += (2 + 2 + 1 + 3 + 3 + 2) * e * heads
	}
	if op.Fused && op.Rope {
		// modeling_phi3.py Phi3Attention: q, k and v are slices, whose gradients
		// go back as zeros, a copy and a sum each
		all := n * float64(g.q+2*g.k)
		backward = backward.add((3+6)*e*all, 2*e*all)
	}
	if op.QKNorm != "" {
		f, b := normTraffic(op.QKNorm, s)
		forward, backward = forward.add(f.flat*heads, f.strided*heads), backward.add(b.flat*heads, b.strided*heads)
	}
	backward.flat += (4 + 4 + e) * n * float64(g.q) // flash's fp32 gradient of q: zeroed, added to, cast
	if op.KVHeads < op.Heads {
		backward.strided += 2 * e * (n*float64(g.q) + float64(g.kvTokens*g.k))
	}
	if s.Precision.Mixed() { // a cast of the input for each projection, and back
		forward, backward = forward.add(3*6*stream, 0), backward.add(0, 3*6*stream)
	}
	if op.Dropout {
		forward, backward = forward.add(2*r*stream, 0), backward.add(2*r*stream, 0)
	}
	return forward, backward
}

// mlpTraffic is the activation, gate × up, the residual's sum, and the sum of
// the gradients of the inputs of gate and up.
func mlpTraffic(op modelgraph.MLP, s *Shape) (forward, backward moved) {
	n, e, r := float64(s.Tokens), float64(s.e()), float64(s.r())
	hidden, stream := n*float64(op.Hidden), n*float64(op.Dim)
	f, b := activationTraffic(op.Activation)
	linears := 1.
	if op.Gated {
		f, b = f+3, b+6
		linears = 2
	}
	forward.flat = f*e*hidden + 3*r*stream
	backward.flat = b*e*hidden + (linears-1)*3*r*stream
	if op.Fused { // Phi3MLP: both factors are halves of rows, their gradients are put together
		forward = moved{3 * r * stream, f * e * hidden}
		backward = moved{0, (b + 4) * e * hidden}
	}
	if s.Precision.Mixed() {
		forward, backward = forward.add(linears*6*stream, 0), backward.add(0, linears*6*stream)
	}
	if op.Dropout {
		forward, backward = forward.add(2*r*stream, 0), backward.add(2*r*stream, 0)
	}
	return forward, backward
}

// activationTraffic is tensors of the hidden width read and written: a fused
// kernel's two and three; those written in Python (activations.py) a kernel
// an operation.
func activationTraffic(name string) (forward, backward float64) {
	switch activationExtra(name) {
	case 4: // pow, two products, tanh, three sums, the last product
		return 18, 30
	case 2: // sigmoid(1.702 x) × x
		return 7, 12
	}
	return 2, 3
}

// moeTraffic is the rows gathered, the experts' activations, and the rows
// weighted and put back (integrations/moe.py).
func moeTraffic(op modelgraph.MoE, s *Shape) (forward, backward moved) {
	e := float64(s.r())
	rows := float64(op.TopK * s.Tokens)
	width, hidden := rows*float64(op.Dim), rows*float64(op.Hidden)
	stream := float64(s.r()*op.Dim) * float64(s.Tokens)
	forward.flat = e*((2+2+3)*width+5*hidden) + 3*stream
	backward.flat = e*((2+3+6)*width+9*hidden) + 3*stream
	return forward, backward
}

// headTraffic is the loss (loss_utils.py ForCausalLMLoss): logits cast to
// fp32, log-softmax (SoftMax.cu reads a row three times: its maximum, its sum,
// its output), backward the gradient of the likelihood filled in, log-softmax
// (a sum, then the gradient), and the cast back.
func headTraffic(op modelgraph.Head, s *Shape) (forward, backward moved) {
	logits := float64(s.Logits) * float64(op.Vocab)
	if op.Pooled {
		logits = float64(s.Batch) * float64(op.Vocab)
	}
	cast := 0.
	if s.e() == 2 {
		cast = 2 + 4
	}
	if op.SoftCap {
		forward.flat, backward.flat = 6*float64(s.e())*logits, 8*float64(s.e())*logits
	}
	if !s.Train {
		return forward, moved{}
	}
	return forward.add((3*4+4)*logits, cast*logits), backward.add((4+4+8+4+cast)*logits, 0)
}
