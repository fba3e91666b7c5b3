package hf

import (
	"fmt"
)

// mention is the size from which tensors left out on purpose are worth a
// warning.
const mention = 1 << 20

// findMissing warns of parameters that nothing fills and refuses a checkpoint
// that fills less than half of the model.
func (a *assignment) findMissing() error {
	var total, filled int64
	for _, f := range a.order {
		if f.buffer || f.tensor.Tied() && len(f.pieces) == 0 {
			continue
		}
		n := f.tensor.Numel()
		total += n
		if len(f.pieces) > 0 || f.shared || a.quantised[f.module] {
			filled += n
			continue
		}
		a.missing.add(f.name, n)
	}
	if a.missing.count == 0 {
		return nil
	}
	if 2*filled < total || filled == 0 && total > 0 {
		return &mismatchError{Dir: a.ck.Dir, Class: a.g.Class, Filled: filled, Total: total, Missing: a.missing.names(), Unexpected: a.unexpected.names()}
	}
	a.warn("%d parameters of %s (%d elements) are in no file and are newly initialised: %s",
		a.missing.count, a.g.Class, a.missing.bytes, a.missing.names())
	return nil
}

// mismatchError is a folder whose config and files are of different models.
type mismatchError struct {
	Dir, Class          string
	Filled, Total       int64 // elements of parameters
	Missing, Unexpected string
}

// Error implements error.
func (e *mismatchError) Error() string {
	s := fmt.Sprintf("%s: the files fill %d of the %d parameter elements that %s makes of %s; missing: %s",
		e.Dir, e.Filled, e.Total, ConfigName, e.Class, e.Missing)
	if e.Unexpected != "" {
		s += "; the files have " + e.Unexpected
	}
	return s + ": config and files are of different models"
}

// leftOver describes the checkpoint tensors that are not part of the model.
func (a *assignment) leftOver() []string {
	var ws []string
	if a.unexpected.count > 0 {
		ws = append(ws, fmt.Sprintf("%d checkpoint tensors (%d bytes) belong to no module of %s and are not loaded: %s",
			a.unexpected.count, a.unexpected.bytes, a.g.Class, a.unexpected.names()))
	}
	if a.ignored.bytes >= mention {
		ws = append(ws, fmt.Sprintf("%d checkpoint tensors (%d bytes) are left out on purpose by %s: %s",
			a.ignored.count, a.ignored.bytes, a.g.Class, a.ignored.names()))
	}
	return ws
}

// exact reports whether every parameter was filled and every tensor used.
func (a *assignment) exact() bool { return a.missing.count == 0 && a.unexpected.count == 0 }
