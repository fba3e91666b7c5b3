package hf

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// fill gives every tensor that the checkpoint has its parts and stored type.
func (assigned *assignment) fill() error {
	var first error
	faults := 0
	for _, fill := range assigned.order {
		if len(fill.pieces) == 0 {
			continue
		}
		if err := assigned.fillOne(fill); err != nil {
			faults++
			first = cmp.Or(first, err)
		}
	}
	if faults > 1 {
		return fmt.Errorf("%w (and %d more like it)", first, faults-1)
	}
	return first
}

func (assigned *assignment) fillOne(fill *filling) error {
	assigned.choose(fill)
	t, shape, stored := fill.tensor, composed(fill.pieces, fill.tensor.Shape), assigned.storedType(fill)
	if !slices.Equal(shape, t.Shape) {
		if !assigned.packed(fill, stored) {
			return assigned.misfit(fill, shape)
		}
		t.Shape = shape
	}
	// A module's own float type stays if it is not the model's (_keep_in_fp32_modules).
	model, _ := modelDType(assigned.config)
	if t.DType == model || !t.DType.Float() || !stored.Float() {
		t.DType = stored
	}
	t.Parts = assigned.parts(fill)
	return nil
}

// choose sorts a conversion's pieces by place, and keeps one of several tensors for the same place.
func (assigned *assignment) choose(fill *filling) {
	slices.SortStableFunc(fill.pieces, func(x, y piece) int {
		return cmp.Or(cmp.Compare(x.member, y.member), cmp.Compare(x.source, y.source))
	})
	if len(fill.pieces) == 1 || !slices.ContainsFunc(fill.pieces, func(p piece) bool { return p.by == nil }) {
		return
	}
	keep := slices.IndexFunc(fill.pieces, func(p piece) bool { return p.stored.Name == fill.name })
	if keep < 0 {
		keep = slices.IndexFunc(fill.pieces, func(p piece) bool { return p.by == nil })
	}
	retained := fill.pieces[keep]
	assigned.warn("%q is stored %d times: %s is read", clipName(fill.name), len(fill.pieces), assigned.at(retained.stored))
	fill.pieces = []piece{retained}
}

// misfit reports a tensor whose shape is not the module's.
func (assigned *assignment) misfit(fill *filling, shape []int64) error {
	p := fill.pieces[0].stored
	what := ""
	if len(fill.pieces) > 1 {
		what = fmt.Sprintf(" (%d tensors, together %v)", len(fill.pieces), shape)
	}
	return fmt.Errorf("%s: %v%v%s does not fill %q %v: is %s the config of these files?",
		assigned.at(p), p.DType, p.Shape, what, clipName(fill.name), fill.tensor.Shape, ConfigName)
}

// storedType is the pieces' type, the widest if they differ.
func (assigned *assignment) storedType(fill *filling) modelgraph.DType {
	dtype, mixed := fill.pieces[0].stored.DType, false
	for _, p := range fill.pieces {
		mixed = mixed || p.stored.DType != dtype
		if p.stored.DType.Bits() > dtype.Bits() {
			dtype = p.stored.DType
		}
	}
	if mixed {
		assigned.warn("%q is stored in several types: counted as %v", clipName(fill.name), dtype)
	}
	return dtype
}

func (assigned *assignment) parts(fill *filling) []modelgraph.Part {
	parts := make([]modelgraph.Part, len(fill.pieces))
	for i, p := range fill.pieces {
		parts[i] = paths.Part(assigned.ck, p.stored)
	}
	return parts
}

// at is the place of a stored tensor, for messages.
func (assigned *assignment) at(t *safetensors.Tensor) string {
	return fmt.Sprintf("%s: tensor %q", paths.File(assigned.ck, t), clipName(t.Name))
}

func (assigned *assignment) warn(format string, args ...any) {
	assigned.warnings = append(assigned.warnings, fmt.Sprintf(format, args...))
}
