package weights

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// maxGeneration is the limit of a generation_config.json, which has a few lines.
const maxGeneration = 1 << 20

// CreateModel makes a folder that Transformers loads (from_pretrained). It has the model's
// config.json with the type of the saved weights, and its generation_config.json if there is one.
// model.safetensors has the graph's [Parameters] of that type. The caller writes these through the
// returned file. The folder appears when that file is committed. A folder that is not empty is
// [ErrOccupied], a model without a config.json [ErrNoConfig].
func CreateModel(folder string, graph *modelgraph.Graph, dtype modelgraph.DType) (*File, error) {
	if graph.Config == nil {
		return nil, fmt.Errorf("%s: %w", graph.Source, ErrNoConfig)
	}
	config, err := configOf(graph.Config, graph.Class, dtype)
	if err != nil {
		return nil, fmt.Errorf("%s: config.json: %w", graph.Source, err)
	}
	small := []smallFile{{"config.json", config}}
	generation, err := generationOf(graph.Folder)
	if err != nil {
		return nil, err
	}
	if generation != nil {
		small = append(small, smallFile{generationName, generation})
	}
	return createIn(folder, "model.safetensors", map[string]string{"format": "pt"}, Parameters(graph, dtype), small)
}

const generationName = "generation_config.json"

// generationOf returns the file of that name unchanged, nil if there is none.
func generationOf(folder string) ([]byte, error) {
	if folder == "" {
		return nil, nil
	}
	file, _, err := safetensors.OpenBeneath(folder, generationName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer file.Close() //nolint:errcheck // opened for reading
	data, err := io.ReadAll(io.LimitReader(file, maxGeneration+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxGeneration:
		return nil, fmt.Errorf("%s: more than the %d bytes that such a file has", file.Name(), maxGeneration)
	}
	return data, nil
}

// torchName returns PyTorch's name of a type that weights are computed with.
func torchName(dtype modelgraph.DType) string {
	if dtype == modelgraph.BF16 {
		return "bfloat16"
	}
	return "float32"
}

// configOf returns a config.json with the type of its weights and the class that loads them.
// Transformers 5 writes dtype, 4 writes torch_dtype, and both read both. Quantization settings are
// dropped: the saved weights are not quantized.
func configOf(config []byte, class string, dtype modelgraph.DType) ([]byte, error) {
	from := jsontext.NewDecoder(bytes.NewReader(config))
	var made bytes.Buffer
	to := jsontext.NewEncoder(&made, jsontext.WithIndent("  "))
	if _, err := from.ReadToken(); err != nil { // {
		return nil, err
	}
	if err := to.WriteToken(jsontext.BeginObject); err != nil {
		return nil, err
	}
	edit := configEdit{dtype: quoted(torchName(dtype))}
	for from.PeekKind() == '"' {
		key, err := from.ReadToken()
		if err != nil {
			return nil, err
		}
		name := key.String()
		value, err := from.ReadValue()
		if err != nil {
			return nil, err
		}
		if err := member(to, name, edit.value(name, value)); err != nil {
			return nil, err
		}
	}
	if !edit.typed {
		if err := member(to, "dtype", edit.dtype); err != nil {
			return nil, err
		}
	}
	if !edit.classed {
		if err := member(to, "architectures", slices.Concat(jsontext.Value("["), quoted(class), jsontext.Value("]"))); err != nil {
			return nil, err
		}
	}
	err := to.WriteToken(jsontext.EndObject)
	return made.Bytes(), err
}

// configEdit is the new type, and which of the members that change were found.
type configEdit struct {
	dtype          jsontext.Value
	typed, classed bool
}

// value returns the value of a member in the saved config; nil: it has none.
func (edit *configEdit) value(name string, value jsontext.Value) jsontext.Value {
	switch name {
	case "quantization_config", "compression_config":
		return nil
	case "architectures":
		if edit.classed = value.Kind() == '['; !edit.classed {
			return nil
		}
	case "dtype", "torch_dtype":
		edit.typed = true
		return edit.dtype
	}
	return value
}

// member writes a member, if it has a value.
func member(to *jsontext.Encoder, name string, value jsontext.Value) error {
	if value == nil {
		return nil
	}
	if err := to.WriteToken(jsontext.String(name)); err != nil {
		return err
	}
	return to.WriteValue(value)
}

func quoted(text string) jsontext.Value {
	value, err := jsontext.AppendQuote(nil, text)
	if err != nil { // names of classes and types are ASCII
		return jsontext.Value("null")
	}
	return value
}
