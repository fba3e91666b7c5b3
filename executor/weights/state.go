package weights

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// State says of what run, and of what moment of it, saved parameters, masters
// and moments are: what a run that continues from there has to have in common
// with it, whatever its devices.
type State struct {
	Model     string `json:"model"`
	Digest    string `json:"digest"`
	Scalars   string `json:"scalars"` // what the digest leaves out
	Precision string `json:"precision"`
	Optimizer string `json:"optimizer"`
	Step      int64  `json:"step"` // steps that were taken
	Seed      uint64 `json:"seed"`
	Tokens    string `json:"tokens,omitzero"` // of --tokens; empty: random, from the seed
}

const (
	stateVersion = "devmap.state/v1"
	stateName    = "state.json"
	valuesName   = "state.safetensors"
	maxState     = 1 << 20
)

type stateFile struct {
	FormatVersion string `json:"format_version"`
	State         `json:",inline"`
}

// MismatchError is a saved state of something other than what is to go on.
type MismatchError struct {
	File, Field   string // Field as in state.json
	Saved, Wanted string
}

// Error implements error.
func (err *MismatchError) Error() string {
	return fmt.Sprintf("%s: %s: %q is not %q, which this run has", err.File, err.Field, err.Saved, err.Wanted)
}

// CreateState makes a folder that a run resumes from: state.json, and
// state.safetensors with the entries, which are written through the file that it
// returns. It appears when that is committed; one that holds something is
// [ErrOccupied].
func CreateState(folder string, state *State, entries []Entry) (*File, error) {
	data, err := json.Marshal(stateFile{stateVersion, *state}, jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	return createIn(folder, valuesName, nil, entries, []smallFile{{stateName, append(data, '\n')}})
}

// ReadState reads what a folder of [CreateState] says about it.
func ReadState(folder string) (*State, error) {
	handle, info, err := safetensors.OpenBeneath(folder, stateName)
	if err != nil {
		return nil, err
	}
	defer handle.Close() //nolint:errcheck // opened for reading
	path := filepath.Join(folder, stateName)
	if info.Size() > maxState {
		return nil, &modelgraph.SyntaxError{File: path, Msg: fmt.Sprintf("%d bytes is more than a state has", info.Size())}
	}
	data, err := io.ReadAll(io.LimitReader(handle, maxState))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return parseState(path, data)
}

func parseState(path string, data []byte) (*State, error) {
	var file stateFile
	if err := modelgraph.DecodeJSON(path, data, &file, true); err != nil {
		return nil, err
	}
	fault := func(place, format string, args ...any) (*State, error) {
		return nil, &modelgraph.SyntaxError{File: path, Place: place, Msg: fmt.Sprintf(format, args...)}
	}
	switch {
	case file.FormatVersion != stateVersion:
		return fault("format_version", "%q is not %q", file.FormatVersion, stateVersion)
	case file.Step < 1 || file.Step > maxSteps:
		return fault("step", "%d is not a number of steps that were taken", file.Step)
	}
	return &file.State, nil
}

// maxSteps keeps sums of steps far from overflow.
const maxSteps = 1 << 40

// Resume reads what [CreateState] saved: entries, each under its name, and
// nothing else. Digest, Scalars, Precision and Optimizer are compared with want's
// before the file of values is opened; the first difference is a
// [*MismatchError].
func Resume(folder string, want *State, entries []Entry) (*State, Source, error) {
	state, err := ReadState(folder)
	if err != nil {
		return nil, nil, err
	}
	if err := state.against(want, filepath.Join(folder, stateName)); err != nil {
		return nil, nil, err
	}
	file, err := open(folder, valuesName)
	if err != nil {
		return nil, nil, err
	}
	source := &stored{files: []*openFile{file}, slices: make(map[string][]slice, len(entries))}
	if err := source.holdEntries(file, entries); err != nil {
		return nil, nil, errors.Join(err, file.handle.Close())
	}
	source.forget()
	return state, source, nil
}

func (state *State) against(want *State, path string) error {
	for _, field := range []struct{ name, saved, wanted string }{
		{"digest", state.Digest, want.Digest},
		{"scalars", state.Scalars, want.Scalars},
		{"precision", state.Precision, want.Precision},
		{"optimizer", state.Optimizer, want.Optimizer},
	} {
		if field.saved != field.wanted {
			return &MismatchError{path, field.name, field.saved, field.wanted}
		}
	}
	return nil
}

// holdEntries holds a file to what it should have, and nothing else.
func (source *stored) holdEntries(file *openFile, entries []Entry) error {
	for _, entry := range entries {
		tensor := file.tensors[entry.Name]
		switch {
		case tensor == nil:
			return fmt.Errorf("%s: %q is missing", file.path, entry.Name)
		case tensor.DType != entry.DType || !slices.Equal(tensor.Shape, entry.Shape):
			return fmt.Errorf("%s: tensor %q: %v%v, and this run has %v%v", file.path, entry.Name, tensor.DType, tensor.Shape, entry.DType, entry.Shape)
		}
		source.slices[entry.Name] = []slice{{entry.Name, file, tensor.DType, tensor.Begin, tensor.End}}
	}
	for name := range file.tensors {
		if _, known := source.slices[name]; !known {
			return fmt.Errorf("%s: tensor %q: this run has none of that name", file.path, name)
		}
	}
	return nil
}
