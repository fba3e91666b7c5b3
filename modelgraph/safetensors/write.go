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

// maxData is the most data of a file that Encode makes, which no disk holds.
const maxData = int64(1) << 56

// Encode is what a file of these tensors begins with, up to the data of the
// first, byte for byte as safetensors writes it (tensor.rs: prepare, and the
// Serialize of Metadata): __metadata__ first, the tensors in the order given,
// which is that of their data, spaces up to a multiple of 8 bytes. It fills in
// where each of them lies, Begin and End. An input that its own reader would
// refuse is an error. Metadata may be nil; its keys are sorted.
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

// headerText is the JSON of the header. Begin and End are those of
// data_offsets, from the beginning of the data.
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

// metadataText is the beginning of the header, up to the first tensor.
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

// place puts a tensor behind at bytes of data, or says why that cannot be.
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

// ReadTensors reads the header of an open file of size bytes, by the rules of
// [ReadFile]: by Begin, then End, then Name. File stays 0; name is in errors.
func ReadTensors(reader io.ReaderAt, size int64, name string) ([]Tensor, error) {
	header, err := readHeader(reader, size, name)
	if err != nil {
		return nil, err
	}
	return header.Tensors, nil
}
