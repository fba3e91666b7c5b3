package safetensors

import (
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
)

// headerParser reads the entries of a header. Every entry is checked before
// the next one is read, so that a hostile header ends at its first fault.
type headerParser struct {
	scanner
	dataBegin int64 // in the file
	dataLen   int64 // bytes after the header
	claimed   int64 // bytes of the tensors so far, never above dataLen
	tensors   []Tensor
	metadata  map[string]string
}

// fault returns an error for a tensor whose offsets are parsed.
func (parser *headerParser) fault(tensor Tensor, format string, args ...any) error {
	return parser.faultIn(tensor.Name, "data_offsets [%d %d]: %s",
		tensor.Begin-parser.dataBegin, tensor.End-parser.dataBegin, fmt.Sprintf(format, args...))
}

func (parser *headerParser) faultIn(tensor, format string, args ...any) error {
	return &syntaxError{parser.file, "tensor " + quote(tensor), fmt.Sprintf(format, args...)}
}

// readMetadata reads __metadata__: null, or an object of strings.
func (parser *headerParser) readMetadata() error {
	if parser.dec.PeekKind() == jsontext.KindNull {
		return parser.skip(jsontext.KindNull)
	}
	parser.metadata = map[string]string{}
	return parser.members(func(key string) (err error) {
		if len(parser.metadata) == maxMetadata {
			return parser.fail("more than %d entries", maxMetadata)
		}
		parser.metadata[key], err = parser.str()
		return err
	})
}

// readTensor reads one entry (tensor.rs, TensorInfo) and appends it. It skips unknown fields, as
// serde does.
func (parser *headerParser) readTensor(name string) error {
	if len(parser.tensors) == maxTensors {
		return parser.fail("more than %d tensors", maxTensors)
	}
	tensor := Tensor{Name: name}
	var dtype, shape, offsets bool
	err := parser.members(func(key string) error {
		switch key {
		case "dtype":
			dtype = true
			return parser.readDType(&tensor)
		case "shape":
			shape = true
			return parser.readShape(&tensor)
		case "data_offsets":
			offsets = true
			return parser.readOffsets(&tensor)
		}
		return parser.skipValue()
	})
	switch {
	case err != nil:
		return err
	case !dtype:
		return parser.faultIn(name, "dtype is missing")
	case !shape:
		return parser.faultIn(name, "shape is missing")
	case !offsets:
		return parser.faultIn(name, "data_offsets is missing")
	}
	return parser.add(tensor)
}

func (parser *headerParser) readDType(tensor *Tensor) error {
	text, err := parser.str()
	if err != nil {
		return err
	}
	// ParseDType also reads PyTorch's spellings and types of GGUF, which the format lacks.
	if tensor.DType, err = modelgraph.ParseDType(text); err != nil || tensor.DType.String() != text || tensor.DType.Bits() == 0 {
		return parser.faultIn(tensor.Name, "unknown dtype %s", quote(text))
	}
	return nil
}

func (parser *headerParser) readShape(tensor *Tensor) error {
	if err := parser.skip(jsontext.KindBeginArray); err != nil {
		return err
	}
	tensor.Shape = make([]int64, 0, 4)
	for parser.more() {
		d, err := parser.uint()
		switch {
		case err != nil:
			return err
		case d > math.MaxInt64:
			return parser.faultIn(tensor.Name, "dimension %d overflows", d)
		case len(tensor.Shape) == maxRank:
			return parser.faultIn(tensor.Name, "more than %d dimensions", maxRank)
		}
		tensor.Shape = append(tensor.Shape, int64(d))
	}
	return parser.skip(jsontext.KindEndArray)
}

// readOffsets reads [begin, end], relative to the data, as offsets in the file. Both must be inside
// the data.
func (parser *headerParser) readOffsets(tensor *Tensor) error {
	if err := parser.skip(jsontext.KindBeginArray); err != nil {
		return err
	}
	var at [2]uint64
	for i := range at {
		var err error
		if at[i], err = parser.uint(); err != nil {
			return err
		}
	}
	begin, end := at[0], at[1]
	switch {
	case end < begin:
		return parser.faultIn(tensor.Name, "data_offsets [%d %d]: end before begin", begin, end)
	case end > uint64(parser.dataLen):
		return parser.faultIn(tensor.Name, "data_offsets [%d %d]: the file holds %d bytes of data", begin, end, parser.dataLen)
	}
	tensor.Begin, tensor.End = parser.dataBegin+int64(begin), parser.dataBegin+int64(end)
	return parser.skip(jsontext.KindEndArray)
}

// add checks a whole entry and keeps it.
func (parser *headerParser) add(tensor Tensor) error {
	size, fault := dataBytes(tensor.DType, tensor.Shape)
	if fault != "" {
		return parser.faultIn(tensor.Name, "%v%v: %s", tensor.DType, tensor.Shape, fault)
	}
	if size != uint64(tensor.Bytes()) {
		return parser.fault(tensor, "%d bytes, but %v%v takes %d", tensor.Bytes(), tensor.DType, tensor.Shape, size)
	}
	// The check is here and not after sorting. Otherwise 10^6 tensors on the same bytes would be
	// kept before the first is refused.
	if tensor.Bytes() > parser.dataLen-parser.claimed {
		return parser.fault(tensor, "overlap: the tensors up to this one take more than the %d bytes of data", parser.dataLen)
	}
	parser.claimed += tensor.Bytes()
	parser.tensors = append(parser.tensors, tensor)
	return nil
}
