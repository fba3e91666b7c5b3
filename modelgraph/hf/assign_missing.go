package hf

import (
	"fmt"
	"strings"
)

// mention is the size from which tensors left out on purpose deserve a warning.
const mention = 1 << 20

// findMissing warns of parameters that nothing fills and refuses a checkpoint that fills less than
// half of the model.
func (assigned *assignment) findMissing() error {
	var total, filled int64
	for _, fill := range assigned.order {
		if fill.buffer || fill.tensor.Owner != "" && len(fill.pieces) == 0 {
			continue
		}
		numel := fill.tensor.Numel
		total += numel
		if len(fill.pieces) > 0 || fill.shared || assigned.quantised[fill.module] {
			filled += numel
			continue
		}
		assigned.missing.add(fill.name, numel)
	}
	if assigned.missing.count == 0 {
		return nil
	}
	if 2*filled < total || filled == 0 && total > 0 {
		return &mismatchError{Dir: assigned.ck.Dir, Class: assigned.graph.Class, Filled: filled, Total: total, Missing: assigned.missing.names(), Unexpected: assigned.unexpected.names()}
	}
	assigned.warn("%d parameters of %s (%d elements) are in no file and are newly initialised: %s",
		assigned.missing.count, assigned.graph.Class, assigned.missing.bytes, assigned.missing.names())
	return nil
}

// mismatchError is a folder whose config and files are of different models.
type mismatchError struct {
	Dir, Class          string
	Filled, Total       int64 // elements of parameters
	Missing, Unexpected string
}

// Error implements error.
func (err *mismatchError) Error() string {
	text := fmt.Sprintf("%s: the files fill %d of the %d parameter elements that %s makes of %s; missing: %s",
		err.Dir, err.Filled, err.Total, ConfigName, err.Class, err.Missing)
	if err.Unexpected != "" {
		text += "; the files have " + err.Unexpected
	}
	return text + ": config and files are of different models"
}

// leftOver describes the checkpoint tensors that are not part of the model.
func (assigned *assignment) leftOver() []string {
	var ws []string
	if assigned.unexpected.count > 0 {
		ws = append(ws, fmt.Sprintf("%d checkpoint tensors (%d bytes) belong to no module of %s and are not loaded: %s",
			assigned.unexpected.count, assigned.unexpected.bytes, assigned.graph.Class, assigned.unexpected.names()))
	}
	if assigned.ignored.bytes >= mention {
		ws = append(ws, fmt.Sprintf("%d checkpoint tensors (%d bytes) are left out on purpose by %s: %s",
			assigned.ignored.count, assigned.ignored.bytes, assigned.graph.Class, assigned.ignored.names()))
	}
	return ws
}

// exact reports whether every parameter was filled and every tensor used.
func (assigned *assignment) exact() bool {
	return assigned.missing.count == 0 && assigned.unexpected.count == 0
}

// tally counts tensors for a warning.
type tally struct {
	count int
	bytes int64
	first []string
}

func (counted *tally) add(name string, bytes int64) {
	counted.count++
	counted.bytes += bytes
	if len(counted.first) < 3 {
		counted.first = append(counted.first, fmt.Sprintf("%q", clipName(name)))
	}
}

// names are the first few, and how many more there are.
func (counted *tally) names() string {
	text := strings.Join(counted.first, ", ")
	if count := counted.count - len(counted.first); count > 0 {
		text += fmt.Sprintf(" and %d more", count)
	}
	return text
}
