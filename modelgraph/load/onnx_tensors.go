package load

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// onnxTensor is an initialiser, or the type of a value.
type onnxTensor struct {
	name     string
	shape    []int64
	symbols  map[int]string // names of sides; "?" if there is no name
	dtype    modelgraph.DType
	known    bool // whether the shape is known
	external map[string]string
}

// onnxTypes are TensorProto.DataType. A type of 4 bits counts as the one that safetensors has.
var onnxTypes = map[uint64]string{
	1: "F32", 2: "U8", 3: "I8", 4: "U16", 5: "I16", 6: "I32", 7: "I64", 9: "BOOL", 10: "F16", 11: "F64", 12: "U32", 13: "U64", 14: "C64", 16: "BF16",
	17: "F8_E4M3", 18: "F8_E4M3FNUZ", 19: "F8_E5M2", 20: "F8_E5M2FNUZ", 21: "F4", 22: "F4", 23: "F4", 24: "F8_E8M0",
}

// tensor reads a TensorProto without its data. The size of the data must be that of its shape and
// type.
func (reader *onnxReader) tensor(body span) (*onnxTensor, error) {
	read := onnxData{tensor: &onnxTensor{known: true}, raw: -1}
	err := reader.fields(body, func(field wireField) error { return reader.data(&read, field) })
	if err != nil {
		return nil, err
	}
	tensor := read.tensor
	sized, err := reader.sized(tensor, read.kind)
	switch {
	case err != nil:
		return nil, err
	case read.raw >= 0 && !read.outside && read.raw != sized:
		return nil, fmt.Errorf("%s: tensor %q of shape %v has %d bytes of data, its shape and type ask for %d", reader.name, tensor.name, tensor.shape, read.raw, sized)
	case read.outside:
		return tensor, reader.outside(tensor, sized)
	}
	return tensor, nil
}

// onnxData is a TensorProto while it is read.
type onnxData struct {
	tensor  *onnxTensor
	raw     int64 // bytes of its data; -1: there are none in this form
	kind    uint64
	outside bool
}

func (reader *onnxReader) data(read *onnxData, field wireField) (err error) {
	tensor := read.tensor
	switch field.number {
	case 1:
		tensor.shape, err = reader.numbers(field, tensor.shape)
	case 2:
		read.kind = field.value
	case 8:
		tensor.name, err = reader.text(field)
	case 9:
		read.raw = field.body.end - field.body.from
	case 13:
		err = reader.place(tensor, field.body)
	case 14:
		read.outside = field.value == 1
	}
	return err
}

// sized sets a tensor's type, and returns its size in bytes.
func (reader *onnxReader) sized(tensor *onnxTensor, kind uint64) (int64, error) {
	if len(tensor.shape) > maxTensorDims {
		return 0, fmt.Errorf("%s: tensor %q has %d dimensions, at most %d are read", reader.name, tensor.name, len(tensor.shape), maxTensorDims)
	}
	name, ok := onnxTypes[kind]
	if !ok {
		return 0, fmt.Errorf("%s: tensor %q is of ONNX's data type %d, which has no fixed size here (strings, complex128)", reader.name, tensor.name, kind)
	}
	tensor.dtype, _ = modelgraph.ParseDType(name)
	measured, err := modelgraph.NewTensor(tensor.name, tensor.dtype, tensor.shape...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", reader.name, err)
	}
	return measured.Bytes, nil
}

func (reader *onnxReader) place(tensor *onnxTensor, body span) error {
	key, value, err := reader.pair(body)
	if tensor.external == nil {
		tensor.external = map[string]string{}
	}
	if len(tensor.external) < 16 {
		tensor.external[key] = value
	}
	return err
}

// outside checks that a tensor's data are in a file of the model's folder, and complete.
func (reader *onnxReader) outside(tensor *onnxTensor, size int64) error {
	fail := func(err error) error {
		return fmt.Errorf("%s: tensor %q: external data in %q: %w", reader.name, tensor.name, tensor.external["location"], err)
	}
	number := func(key string, defaultValue int64) (int64, error) {
		if text, ok := tensor.external[key]; ok {
			value, err := strconv.ParseInt(text, 10, 64)
			if err != nil || value < 0 {
				return 0, fmt.Errorf("%s %q is no number of bytes", key, text)
			}
			return value, nil
		}
		return defaultValue, nil
	}
	offset, err := number("offset", 0)
	if err != nil {
		return fail(err)
	}
	length, err := number("length", size)
	if err != nil {
		return fail(err)
	}
	opened, info, err := safetensors.OpenBeneath(filepath.Dir(reader.name), tensor.external["location"])
	if err != nil {
		return fail(err)
	}
	defer opened.Close() //nolint:errcheck // opened for reading
	switch {
	case length != size:
		return fail(fmt.Errorf("length is %d bytes, shape %v asks for %d", length, tensor.shape, size))
	case offset > info.Size() || size > info.Size()-offset:
		return fail(fmt.Errorf("bytes %d to %d, the file has %d", offset, offset+size, info.Size()))
	}
	return nil
}

// value reads a ValueInfoProto: the name and the type of a value.
func (reader *onnxReader) value(body span) (*onnxTensor, error) {
	value := &onnxTensor{symbols: map[int]string{}}
	shape := func(body span) error {
		value.known = true
		return reader.fields(body, func(field wireField) error {
			if field.number != 1 {
				return nil
			}
			if len(value.shape) > maxTensorDims {
				return fmt.Errorf("%s: value %q has more than %d dimensions", reader.name, value.name, maxTensorDims)
			}
			return reader.side(value, field.body)
		})
	}
	tensorType := func(body span) error {
		return reader.fields(body, func(field wireField) error {
			switch field.number {
			case 1:
				if name, ok := onnxTypes[field.value]; ok {
					value.dtype, _ = modelgraph.ParseDType(name)
				}
			case 2:
				return shape(field.body)
			}
			return nil
		})
	}
	err := reader.fields(body, func(field wireField) (err error) {
		switch field.number {
		case 1:
			value.name, err = reader.text(field)
		case 2:
			err = reader.fields(field.body, func(field wireField) error {
				if field.number != 1 {
					return nil
				}
				return tensorType(field.body)
			})
		}
		return err
	})
	return value, err
}

// side reads one side of a shape: a number, or a name that --dim gives a number.
func (reader *onnxReader) side(value *onnxTensor, body span) error {
	at := len(value.shape)
	value.shape, value.symbols[at] = append(value.shape, 0), "?"
	return reader.fields(body, func(field wireField) error {
		switch field.number {
		case 1:
			value.shape[at] = int64(field.value)
			delete(value.symbols, at)
			if value.shape[at] < 0 {
				value.symbols[at] = "?"
			}
		case 2:
			name, err := reader.text(field)
			if name != "" {
				reader.symbols[name] = true
			}
			if number, ok := reader.dims[name]; ok {
				value.shape[at] = number
				delete(value.symbols, at)
			} else if name != "" {
				value.symbols[at] = name
			}
			return err
		}
		return nil
	})
}
