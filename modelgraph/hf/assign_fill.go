package hf

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// fill gives every tensor that the checkpoint has its parts and stored type.
func (a *assignment) fill() error {
	var first error
	faults := 0
	for _, f := range a.order {
		if len(f.pieces) == 0 {
			continue
		}
		if err := a.fillOne(f); err != nil {
			faults++
			first = cmp.Or(first, err)
		}
	}
	if faults > 1 {
		return fmt.Errorf("%w (and %d more like it)", first, faults-1)
	}
	return first
}

func (a *assignment) fillOne(f *filling) error {
	a.choose(f)
	t, shape, stored := f.tensor, composed(f.pieces), a.storedType(f)
	if !slices.Equal(shape, t.Shape) {
		if !a.quantised[f.module] || !packs(stored) {
			return a.misfit(f, shape)
		}
		t.Shape = shape
	}
	// A type other than the model's is one that the framework keeps
	// (_keep_in_fp32_modules); the parts say what is stored.
	model, _ := modelDType(a.config)
	if t.DType == model || !t.DType.Float() || !stored.Float() {
		t.DType = stored
	}
	t.Parts = a.parts(f)
	return nil
}

// choose puts stacked pieces in the order they lie in the parameter, and
// keeps one of several tensors that claim the same place.
func (a *assignment) choose(f *filling) {
	slices.SortStableFunc(f.pieces, func(x, y piece) int {
		return cmp.Or(cmp.Compare(x.expert, y.expert), cmp.Compare(x.source, y.source))
	})
	if len(f.pieces) == 1 || !slices.ContainsFunc(f.pieces, func(p piece) bool { return !p.stacked }) {
		return
	}
	keep := slices.IndexFunc(f.pieces, func(p piece) bool { return p.stored.Name == f.name })
	if keep < 0 {
		keep = slices.IndexFunc(f.pieces, func(p piece) bool { return !p.stacked })
	}
	kept := f.pieces[keep]
	a.warn("%q is stored %d times: %s is read", clipName(f.name), len(f.pieces), a.at(kept.stored))
	f.pieces = []piece{kept}
}

// composed is the shape that the pieces make: per expert the sources one
// under the other, experts stacked. Pieces that do not fit each other make a
// flat list of their elements.
func composed(ps []piece) []int64 {
	if !ps[0].stacked {
		return slices.Clone(ps[0].stored.Shape)
	}
	experts, sources := int64(ps[len(ps)-1].expert)+1, int64(0)
	for _, p := range ps {
		sources = max(sources, int64(p.source)+1)
	}
	var rows, total int64
	rest := ps[0].stored.Shape
	regular := int64(len(ps)) == experts*sources && len(rest) > 0
	for i, p := range ps {
		s := p.stored.Shape
		total += elements(s)
		regular = regular && len(s) == len(rest) && slices.Equal(s[1:], rest[1:]) &&
			int64(p.expert) == int64(i)/sources && int64(p.source) == int64(i)%sources
		if regular && int64(i) < sources {
			rows += s[0]
		}
		regular = regular && s[0] == ps[int64(i)%sources].stored.Shape[0]
	}
	if !regular {
		return []int64{total}
	}
	return slices.Concat([]int64{experts, rows}, rest[1:])
}

func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// misfit reports a tensor whose shape is not the module's.
func (a *assignment) misfit(f *filling, shape []int64) error {
	p := f.pieces[0].stored
	what := ""
	if len(f.pieces) > 1 {
		what = fmt.Sprintf(" (%d tensors, together %v)", len(f.pieces), shape)
	}
	return fmt.Errorf("%s: %v%v%s does not fill %q %v: is %s the config of these files?",
		a.at(p), p.DType, p.Shape, what, clipName(f.name), f.tensor.Shape, ConfigName)
}

// storedType is the pieces' type, the widest where they differ.
func (a *assignment) storedType(f *filling) modelgraph.DType {
	d, mixed := f.pieces[0].stored.DType, false
	for _, p := range f.pieces {
		mixed = mixed || p.stored.DType != d
		if p.stored.DType.Bits() > d.Bits() {
			d = p.stored.DType
		}
	}
	if mixed {
		a.warn("%q is stored in several types: counted as %v", clipName(f.name), d)
	}
	return d
}

func (a *assignment) parts(f *filling) []modelgraph.Part {
	parts := make([]modelgraph.Part, len(f.pieces))
	for i, p := range f.pieces {
		parts[i] = storedPart(a.ck, p.stored)
	}
	return parts
}

// at is the place of a stored tensor, for messages.
func (a *assignment) at(t *safetensors.Tensor) string {
	return fmt.Sprintf("%s: tensor %q", storedFile(a.ck, t), clipName(t.Name))
}

func (a *assignment) warn(format string, args ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}
