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

// fault reports a tensor whose offsets are parsed.
func (p *headerParser) fault(t Tensor, format string, args ...any) error {
	return p.faultIn(t.Name, "data_offsets [%d %d]: %s",
		t.Begin-p.dataBegin, t.End-p.dataBegin, fmt.Sprintf(format, args...))
}

func (p *headerParser) faultIn(tensor, format string, args ...any) error {
	return &syntaxError{p.file, "tensor " + quote(tensor), fmt.Sprintf(format, args...)}
}

// readMetadata reads __metadata__: null, or an object of strings.
func (p *headerParser) readMetadata() error {
	if p.dec.PeekKind() == jsontext.KindNull {
		return p.skip(jsontext.KindNull)
	}
	if err := p.skip(jsontext.KindBeginObject); err != nil {
		return err
	}
	p.metadata = map[string]string{}
	for p.more() {
		key, err := p.str()
		if err != nil {
			return err
		}
		if len(p.metadata) == maxMetadata {
			return p.fail("more than %d entries", maxMetadata)
		}
		if p.metadata[key], err = p.str(); err != nil {
			return err
		}
	}
	return p.skip(jsontext.KindEndObject)
}

// readTensor reads one entry (tensor.rs, TensorInfo) and appends it. Fields it
// does not know are passed over, as serde does.
func (p *headerParser) readTensor(name string) error {
	if len(p.tensors) == maxTensors {
		return p.fail("more than %d tensors", maxTensors)
	}
	if err := p.skip(jsontext.KindBeginObject); err != nil {
		return err
	}
	t := Tensor{Name: name}
	var dtype, shape, offsets bool
	for p.more() {
		key, err := p.str()
		if err != nil {
			return err
		}
		switch key {
		case "dtype":
			dtype, err = true, p.readDType(&t)
		case "shape":
			shape, err = true, p.readShape(&t)
		case "data_offsets":
			offsets, err = true, p.readOffsets(&t)
		default:
			err = p.skipValue()
		}
		if err != nil {
			return err
		}
	}
	if err := p.skip(jsontext.KindEndObject); err != nil {
		return err
	}
	switch {
	case !dtype:
		return p.faultIn(name, "dtype is missing")
	case !shape:
		return p.faultIn(name, "shape is missing")
	case !offsets:
		return p.faultIn(name, "data_offsets is missing")
	}
	return p.add(t)
}

func (p *headerParser) readDType(t *Tensor) error {
	s, err := p.str()
	if err != nil {
		return err
	}
	// ParseDType also reads PyTorch's spellings, which the format lacks.
	if t.DType, err = modelgraph.ParseDType(s); err != nil || t.DType.String() != s {
		return p.faultIn(t.Name, "unknown dtype %s", quote(s))
	}
	return nil
}

func (p *headerParser) readShape(t *Tensor) error {
	if err := p.skip(jsontext.KindBeginArray); err != nil {
		return err
	}
	t.Shape = make([]int64, 0, 4)
	for p.more() {
		d, err := p.uint()
		switch {
		case err != nil:
			return err
		case d > math.MaxInt64:
			return p.faultIn(t.Name, "dimension %d overflows", d)
		case len(t.Shape) == maxRank:
			return p.faultIn(t.Name, "more than %d dimensions", maxRank)
		}
		t.Shape = append(t.Shape, int64(d))
	}
	return p.skip(jsontext.KindEndArray)
}

// readOffsets reads [begin, end], relative to the data, into offsets in the
// file. Both lie inside the data.
func (p *headerParser) readOffsets(t *Tensor) error {
	if err := p.skip(jsontext.KindBeginArray); err != nil {
		return err
	}
	var at [2]uint64
	for i := range at {
		var err error
		if at[i], err = p.uint(); err != nil {
			return err
		}
	}
	begin, end := at[0], at[1]
	switch {
	case end < begin:
		return p.faultIn(t.Name, "data_offsets [%d %d]: end before begin", begin, end)
	case end > uint64(p.dataLen):
		return p.faultIn(t.Name, "data_offsets [%d %d]: the file holds %d bytes of data", begin, end, p.dataLen)
	}
	t.Begin, t.End = p.dataBegin+int64(begin), p.dataBegin+int64(end)
	return p.skip(jsontext.KindEndArray)
}

// add checks a whole entry and keeps it.
func (p *headerParser) add(t Tensor) error {
	size, fault := dataBytes(t.DType, t.Shape)
	if fault != "" {
		return p.faultIn(t.Name, "%v%v: %s", t.DType, t.Shape, fault)
	}
	if size != uint64(t.Bytes()) {
		return p.fault(t, "%d bytes, but %v%v takes %d", t.Bytes(), t.DType, t.Shape, size)
	}
	// Found here and not after sorting: otherwise 10^6 tensors on the same
	// bytes would be kept before the first is refused.
	if t.Bytes() > p.dataLen-p.claimed {
		return p.fault(t, "overlap: the tensors up to this one take more than the %d bytes of data", p.dataLen)
	}
	p.claimed += t.Bytes()
	p.tensors = append(p.tensors, t)
	return nil
}
