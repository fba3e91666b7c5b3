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

// State identifies the run and the step of saved parameters, masters and moments. A run that
// continues from there must have the same, on whatever devices.
type State struct {
	Model     string `json:"model"`
	Digest    string `json:"digest"`
	Scalars   string `json:"scalars"` // a fingerprint of what the digest leaves out
	Precision string `json:"precision"`
	Optimizer string `json:"optimizer"`
	Step      int64  `json:"step"` // steps that were run
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

// MismatchError is a saved state of something other than the run that would continue.
type MismatchError struct {
	File, Field   string // Field as in state.json
	Saved, Wanted string
}

// Error implements error.
func (err *MismatchError) Error() string {
	return fmt.Sprintf("%s: %s: %q is not %q, which this run has", err.File, err.Field, err.Saved, err.Wanted)
}

// CreateState makes a folder from which a run resumes: state.json, and state.safetensors with the
// entries. The caller writes the entries through the returned file. The folder appears when that is
// committed. A folder that is not empty is [ErrOccupied].
func CreateState(folder string, state *State, entries []Entry) (*File, error) {
	data, err := json.Marshal(stateFile{stateVersion, *state}, jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	return createIn(folder, valuesName, nil, entries, []smallFile{{stateName, append(data, '\n')}})
}

// ReadState reads the state.json of a folder from [CreateState].
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

// Resume reads what [CreateState] saved: the entries, each under its name, and nothing else. It
// compares Digest, Scalars, Precision and Optimizer with want's before it opens the file of values.
// The first difference is a [*MismatchError].
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

// holdEntries checks that a file has the entries and nothing else.
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
