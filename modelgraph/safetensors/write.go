package safetensors

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxData is the limit of a file's data in Encode, in bytes. No disk holds as much.
const maxData = int64(1) << 56

// Encode returns the beginning of a file of these tensors, up to the data of the first. It has the
// bytes that safetensors writes (tensor.rs: prepare, and the Serialize of Metadata). __metadata__
// comes first, then the tensors in the given order, which is that of their data. Spaces follow up
// to a multiple of 8 bytes. Encode sets Begin and End of the tensors. An input that safetensors'
// reader would refuse is an error. Metadata may be nil; its keys are sorted.
func Encode(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	text, err := headerText(metadata, tensors)
	if err != nil {
		return nil, err
	}
	const alignment = 8
	for len(text)%alignment != 0 {
		text = append(text, ' ')
	}
	if len(text) > maxHeaderSize {
		return nil, fmt.Errorf("a header of %d bytes: the format allows %d", len(text), maxHeaderSize)
	}
	head := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	for i := range tensors {
		tensors[i].Begin += int64(len(head))
		tensors[i].End += int64(len(head))
	}
	return head, nil
}

// headerText returns the JSON of the header. It sets Begin and End to data_offsets, from the
// beginning of the data.
func headerText(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	text, err := metadataText(metadata)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{metadataKey: true}
	at := int64(0)
	for i := range tensors {
		tensor := &tensors[i]
		fault := tensor.place(at)
		switch {
		case fault == "" && known[tensor.Name]:
			fault = "the name is taken"
		case fault == "" && i >= maxTensors:
			fault = fmt.Sprintf("more than %d tensors", maxTensors)
		}
		if fault != "" {
			return nil, fmt.Errorf("tensor %s, %v%v: %s", quote(tensor.Name), tensor.DType, tensor.Shape, fault)
		}
		known[tensor.Name], at = true, tensor.End
		if len(text) > 1 {
			text = append(text, ',')
		}
		if text, err = jsontext.AppendQuote(text, tensor.Name); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(tensor.Name), err)
		}
		text = appendEntry(text, tensor)
	}
	return append(text, '}'), nil
}

const metadataKey = "__metadata__"

// metadataText returns the beginning of the header, up to the first tensor.
func metadataText(metadata map[string]string) ([]byte, error) {
	text := []byte{'{'}
	if metadata == nil {
		return text, nil
	}
	text = append(text, `"`+metadataKey+`":{`...)
	for i, key := range slices.Sorted(maps.Keys(metadata)) {
		if i > 0 {
			text = append(text, ',')
		}
		var wrong, worse error
		text, wrong = jsontext.AppendQuote(text, key)
		text, worse = jsontext.AppendQuote(append(text, ':'), metadata[key])
		if err := cmp.Or(wrong, worse); err != nil {
			return nil, fmt.Errorf("metadata %s: %w", quote(key), err)
		}
	}
	return append(text, '}'), nil
}

// place puts a tensor after at bytes of data, or says why that is not possible.
func (tensor *Tensor) place(at int64) (fault string) {
	size, fault := dataBytes(tensor.DType, tensor.Shape)
	if fault == "" && (tensor.DType.Bits() == 0 || slices.ContainsFunc(tensor.Shape, negative) || size > uint64(maxData-at)) {
		fault = "no size that a file has"
	}
	tensor.Begin, tensor.End = at, at+int64(size)
	return fault
}

func negative(dim int64) bool { return dim < 0 }

func appendEntry(text []byte, tensor *Tensor) []byte {
	text = fmt.Appendf(text, `:{"dtype":"%v","shape":[`, tensor.DType)
	for i, dim := range tensor.Shape {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, dim, 10)
	}
	return fmt.Appendf(text, `],"data_offsets":[%d,%d]}`, tensor.Begin, tensor.End)
}

// ReadTensors reads the header of an open file of size bytes, by the rules of [ReadFile]. Tensors
// are in the order of Begin, then End, then Name. File stays 0; name is in errors.
func ReadTensors(reader io.ReaderAt, size int64, name string) ([]Tensor, error) {
	header, err := readHeader(reader, size, name)
	if err != nil {
		return nil, err
	}
	return header.Tensors, nil
}
