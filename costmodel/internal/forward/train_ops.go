package forward

import (
	"errors"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// to is a cast, if it changes the type.
func (run *training) to(x *tensor, width int64) *tensor {
	if x.width == width {
		return x.same()
	}
	made := run.node([]*tensor{x})
	out := run.fresh(x.elements, width, made)
	if bytes := x.elements * x.width; made != nil {
		made.back = func(slope) []slope { return []slope{run.slope(bytes)} }
	}
	return out
}

// product is a matrix product of rows with a weight that needs no gradient.
func (run *training) product(x *tensor, rows, in, out int64) *tensor {
	made := run.node([]*tensor{x})
	run.work(rows, in, out)
	y := run.fresh(rows*out, run.width, made)
	if made != nil {
		made.back = func(slope) []slope {
			run.work(rows, in, out)
			grad := run.slope(rows * in * run.width)
			grad.viewed = true // of the product of matrices
			return []slope{grad}
		}
		y.from = run.node([]*tensor{y})
		y.from.back = func(above slope) []slope {
			if gathered := together(run, above); gathered != nil {
				return []slope{{value: gathered, size: above.size}}
			}
			return []slope{above.passed()}
		}
	}
	return y
}

// together is a contiguous copy of a strided gradient.
func together(run *training, grad slope) *value {
	if !grad.apart {
		return nil
	}
	return run.alloc(grad.size)
}

func (run *training) work(rows, in, out int64) {
	run.flops += 2 * float64(rows) * float64(in) * float64(out)
	run.traffic += float64(run.width) * (float64(rows)*float64(in) + float64(in)*float64(out))
}

// linear is nn.Linear, with peft's adapter if it has one (peft/tuners/lora/layer.py: Linear.forward).
func (run *training) layer(mod module, name string, x *tensor, rows int64) *tensor {
	in, out := mod.inward(name), mod.out(name)
	cast := run.to(x, run.width)
	y := run.product(cast, rows, in, out)
	run.free(cast)
	if !run.adapts(mod.in(name).path) {
		return y
	}
	stored := run.to(x, run.adapter) // _cast_input_dtype
	read := run.to(stored, run.width)
	inner := run.adapted(read, rows, in, run.rank)
	outer := run.adapted(inner, rows, run.rank, out)
	run.free(read, inner)
	scaled := run.unary(outer, nil)
	run.free(outer)
	sum := run.added(y, scaled)
	run.free(scaled, y, stored)
	return sum
}

// adapted is a product with an adapter's matrix, which autocast casts if it is stored in another type.
func (run *training) adapted(x *tensor, rows, in, out int64) *tensor {
	leaf := &tensor{from: &node{leaf: true}, elements: in * out, width: run.adapter}
	weight := leaf
	if run.adapter != run.width {
		if weight = run.to(leaf, run.width); run.frame != nil && !run.replays {
			run.cached = append(run.cached, weight.hold())
		}
	}
	made := run.node([]*tensor{weight, x}, x.value, weight.value)
	run.work(rows, in, out)
	y := run.fresh(rows*out, run.width, made)
	needed := x.from != nil
	made.back = func(slope) []slope {
		run.work(rows, in, out)
		grads := []slope{run.slope(in * out * run.width), {}}
		if needed {
			run.work(rows, in, out)
			grads[1] = run.slope(rows * in * run.width)
			grads[1].viewed = true
		}
		return grads
	}
	run.free(weight)
	return y
}

// unary is an operation of each element, which keeps what backward multiplies.
func (run *training) unary(x *tensor, saved *value) *tensor {
	var made *node
	if saved == nil {
		made = run.node([]*tensor{x})
	} else {
		made = run.node([]*tensor{x}, saved)
	}
	y := run.fresh(x.elements, x.width, made)
	if bytes := x.elements * x.width; made != nil {
		made.back = func(slope) []slope { return []slope{run.slope(bytes)} }
	}
	return y
}

// added is a sum of two tensors of one type.
func (run *training) added(x, y *tensor) *tensor {
	made := run.node([]*tensor{x, y})
	sum := run.fresh(x.elements, max(x.width, y.width), made)
	if left, right := x.from != nil, y.from != nil; made != nil {
		made.back = func(grad slope) []slope {
			grads := make([]slope, 2)
			if left {
				grads[0] = grad.passed()
			}
			if right {
				grads[1] = grad.passed()
			}
			return grads
		}
	}
	return sum
}

// modulatedBy is norm(x) * (1 + scale) + shift.
func (run *training) modulatedBy(normed *tensor, batch, dim int64) *tensor {
	onePlus := run.new(batch * dim)
	scaled := run.unary(normed, onePlus)
	run.free(normed)
	run.drop(onePlus)
	made := run.node([]*tensor{scaled})
	out := run.fresh(scaled.elements, scaled.width, made)
	if made != nil {
		made.back = func(grad slope) []slope { return []slope{grad.passed()} }
	}
	run.free(scaled)
	return out
}

// norm is torch's layer_norm without weights, which autocast runs in single
// precision. Rows that lie apart are copied together, in backward too.
func (run *training) norm(x *tensor, rows int64, apart bool) *tensor {
	read := run.to(x, max(run.norms, x.width))
	copied := func() *value {
		if !apart || read.width != x.width {
			return nil
		}
		return run.alloc(x.elements * x.width)
	}
	made := run.node([]*tensor{read}, read.value)
	gathered := copied()
	y := run.fresh(read.elements, read.width, made)
	run.keeps(made, run.single(rows), run.single(rows))
	run.drop(gathered)
	if bytes := read.elements * read.width; made != nil {
		made.back = func(slope) []slope {
			gathered := copied()
			grad := run.slope(bytes)
			run.drop(gathered)
			return []slope{grad}
		}
	}
	run.free(read)
	return y
}

// rms is torch.nn.RMSNorm of heads, which autocast leaves in its type.
func (run *training) rms(x *tensor, dim int64) *tensor {
	made := run.node([]*tensor{x}, x.value)
	y := run.fresh(x.elements, x.width, made)
	run.keeps(made, run.single(x.elements/dim))
	if bytes := x.elements * x.width; made != nil {
		made.back = func(above slope) []slope {
			grad := run.slope(bytes)
			run.drop(together(run, above))
			return []slope{grad}
		}
	}
	return y
}

// joined is torch.cat; its backward returns views, which may be strided.
func (run *training) joined(apart bool, parts ...*tensor) *tensor {
	made := run.node(parts)
	total := int64(0)
	for _, part := range parts {
		total += part.elements
	}
	out := run.fresh(total, parts[0].width, made)
	if made != nil {
		sizes := make([]int64, len(parts))
		for i, part := range parts {
			if part.from != nil {
				sizes[i] = part.elements * part.width
			}
		}
		made.back = func(grad slope) []slope {
			grads := make([]slope, len(sizes))
			for i, size := range sizes {
				if size > 0 {
					grads[i] = slope{value: grad.hold(), size: size, viewed: true, apart: apart}
				}
			}
			return grads
		}
	}
	return out
}

// sliced is a view of a part; its backward fills a whole with zeros.
func (run *training) sliced(x *tensor, elements int64) *tensor {
	made := run.node([]*tensor{x})
	if bytes := x.elements * x.width; made != nil {
		made.back = func(slope) []slope { return []slope{run.slope(bytes)} }
	}
	return x.view(elements, made)
}

// gathered is contiguous() of a strided tensor.
func (run *training) gathered(x *tensor, apart bool) *tensor {
	if !apart {
		return x.same()
	}
	made := run.node([]*tensor{x})
	if made != nil {
		made.back = func(grad slope) []slope { return []slope{grad.passed()} }
	}
	return run.fresh(x.elements, x.width, made)
}

// divided are views of all parts (split_with_sizes); its backward joins their gradients.
func (run *training) divided(x *tensor, sizes ...int64) []*tensor {
	made := run.node([]*tensor{x})
	var waiting []*value
	if bytes := x.elements * x.width; made != nil {
		made.back = func(slope) []slope {
			whole := run.slope(bytes)
			run.drop(waiting...)
			return []slope{whole}
		}
	}
	parts := make([]*tensor, len(sizes))
	for i, size := range sizes {
		piece := run.node([]*tensor{x})
		if piece != nil {
			piece.inputs = []*node{made}
			piece.back = func(grad slope) []slope {
				waiting, made.pieces = append(waiting, grad.hold()), true
				return nil
			}
		}
		parts[i] = x.view(size, piece)
	}
	return parts
}

// turned is apply_rotary_emb with real cosines and sines (embeddings.py): x·cos +
// turned(x)·sin in single precision, and the cast back.
func (run *training) turned(x *tensor) *tensor {
	made := run.node([]*tensor{x})
	half := run.alloc(x.elements / 2 * x.width)
	pairs := run.fresh(x.elements, x.width, made)
	run.drop(half)
	if bytes := x.elements * x.width; made != nil {
		made.back = func(slope) []slope {
			half := run.alloc(bytes / 2)
			grad := run.slope(bytes)
			run.drop(half)
			return []slope{grad}
		}
	}
	wide := run.to(x, 4)
	cosine := run.unary(wide, run.angles[0])
	run.free(wide)
	wide = run.to(pairs, 4)
	sine := run.unary(wide, run.angles[1])
	run.free(wide)
	sum := run.added(cosine, sine)
	run.free(cosine, sine)
	out := run.to(sum, x.width)
	run.free(sum, pairs)
	return out
}

// attended is scaled_dot_product_attention as torch 2.11 runs it on Hopper: cuDNN
// for 16 bits, the memory-efficient kernel for 32, which reads gradients together.
func (run *training) attended(query, key, val *tensor, batch, heads, dim int64) *tensor {
	made := run.node([]*tensor{query, key, val}, query.value, key.value, val.value)
	rows := query.elements / dim * heads // of all heads
	tokens := query.elements / dim / batch
	run.flops += 4 * float64(query.elements) * float64(tokens)
	var seeds []*value
	if query.width < 4 {
		seeds = []*value{run.alloc(8), run.alloc(8)}
	}
	out := run.fresh(query.elements, query.width, made)
	const block = 32 // rows of logarithms (attention.cu: kAlignLSE)
	var logs *value
	if query.width < 4 {
		logs = run.single(rows)
		run.drop(run.alloc(1))
	} else {
		logs = run.single(batch * heads * ((tokens + block - 1) / block * block))
	}
	if made != nil && (run.frame == nil || run.replays) {
		made.hold([]*value{out.value, logs})
	}
	run.drop(logs)
	run.keeps(made, seeds...)
	if bytes, width := query.elements*query.width, dim/heads; made != nil {
		made.back = func(above slope) []slope {
			run.flops += 10 * float64(batch*tokens*dim) * float64(tokens)
			var gathered *value
			if query.width == 4 {
				gathered = together(run, above)
			}
			grads := []slope{run.slope(bytes), run.slope(bytes), run.slope(bytes)}
			if query.width < 4 { // dq in single precision, and a sum a row
				run.drop(run.alloc(2*bytes + 4*rows + 1))
			} else {
				efficientScratch(run, bytes, rows, batch*heads, tokens, width)
			}
			run.drop(gathered)
			return grads
		}
	}
	return out
}

// efficientScratch is the memory-efficient kernel's scratch in backward: the product of the result
// and its gradient, its sums, and blocks of 64 rows of dq. Each block has a lock and a counter
// (mem_eff_attention/kernel_backward.h: GradQTempStorage).
func efficientScratch(run *training, bytes, rows, pairs, tokens, width int64) {
	const blockRows, header = 64, 16
	side := int64(64)
	if width > side {
		side = 128
	}
	both := run.alloc(bytes)
	sums := run.single(rows)
	turned := run.single(rows)
	run.drop(sums, both)
	scratch := run.alloc(pairs * ((tokens + blockRows - 1) / blockRows) * (header + 4*blockRows*side))
	run.drop(turned, scratch)
}

// ErrTargets says that a target matches no layer with followed adapters, or an unfollowed one.
var ErrTargets = errors.New("the targets name no layer whose adapters are followed, or another")

// linears are the names of a graph's linear layers.
func linears(graph *modelgraph.Graph) (names []string) {
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for j := range layer.Params {
			name, matrix := strings.CutSuffix(modelgraph.FullName(layer.Name, layer.Params[j].Name), ".weight")
			if matrix && len(layer.Params[j].Shape) == 2 {
				names = append(names, name)
			}
		}
	}
	return names
}

// followed reports a layer with followed adapters: those of blocks, except for modulation, and the last.
func followed(name string) bool {
	list, rest, _ := strings.Cut(name, ".")
	return name == "proj_out" || strings.HasSuffix(list, "_blocks") && !strings.Contains(rest, "norm")
}

// Adaptable are the targets that each name one followed layer of every block of a list.
func Adaptable(graph *modelgraph.Graph) (ends []string) {
	for _, name := range linears(graph) {
		parts := strings.SplitN(name, ".", 3) // a list, a block's number, a layer
		if len(parts) == 3 && followed(name) && !slices.Contains(ends, parts[2]) {
			ends = append(ends, parts[2])
		}
	}
	return ends
}
