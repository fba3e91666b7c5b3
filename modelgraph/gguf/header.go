package gguf

import (
	"io"
	"math/bits"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/internal/filekind"
)

const (
	maxTensors   = 131_072
	maxNameBytes = 63 // ggml.h: GGML_MAX_NAME, with its end
	maxRank      = 4  // ggml.h: GGML_MAX_DIMS
	maxData      = 1 << 56

	keyAlignment     = "general.alignment"
	defaultAlignment = 32
)

// header is what one file says.
type header struct {
	values  map[string]value
	tensors []modelgraph.Tensor
}

// readHeader reads and checks the header of one file.
func readHeader(name string, reader io.ReaderAt, size int64) (*header, error) {
	from := newSource(name, reader, size)
	tensors, keys := preamble(from)
	head := &header{values: readValues(from, keys)}
	alignment := head.alignment(from)
	if from.err != nil {
		return nil, from.err
	}
	head.tensors = make([]modelgraph.Tensor, 0, min(tensors, 4096))
	var sum int64 // of the data so far
	for range tensors {
		tensor, offset := readTensor(from)
		if offset != uint64(sum) {
			from.fail("tensor "+quoted(tensor.Name), "its data are at %d, but those before it end at %d", offset, sum)
		}
		tensor.Parts = []modelgraph.Part{{Name: tensor.Name, File: name, DType: tensor.DType, Begin: sum, End: sum + tensor.Bytes}}
		if sum += padded(tensor.Bytes, alignment); sum > maxData {
			from.fail("tensor "+quoted(tensor.Name), "the tensors up to it have more than 2^56 bytes")
		}
		if from.err != nil {
			return nil, from.err
		}
		head.tensors = append(head.tensors, tensor)
	}
	begin := padded(from.at, alignment)
	for i := range head.tensors {
		part := &head.tensors[i].Parts[0]
		part.Begin, part.End = part.Begin+begin, part.End+begin
		if part.End > size {
			from.fail("tensor "+quoted(part.Name), "its data end at byte %d, and the file has %d: it is cut off", part.End, size)
			return nil, from.err
		}
	}
	return head, repeated(head.tensors)
}

// preamble reads the numbers of tensors and of keys.
func preamble(from *source) (tensors, keys int64) {
	var magic [4]byte
	from.bytes(magic[:])
	if text, _ := from.from.Peek(64); string(magic[:]) != "GGUF" && from.err == nil {
		if what := filekind.Recognised(append(magic[:], text...)); what != "" {
			from.fail("", "not a GGUF file: %s", what)
		}
		from.fail("", "not a GGUF file: it begins with %s", quoted(string(magic[:])))
	}
	switch version := from.u32(); {
	case from.err != nil:
	case version&0xffff == 0 && version != 0:
		from.fail("", "its numbers have the byte order of another machine (big-endian)")
	case version == 1:
		from.fail("", "version 1 of GGUF, which llama.cpp reads no longer: convert the model again")
	case version != 2 && version != 3:
		from.fail("", "version %d of GGUF is unknown; 2 and 3 are read", version)
	}
	const leastTensor, leastKey = 8 + 1 + 4 + 4 + 8, 8 + 1 + 4 + 1
	tensors = from.length("", "tensors", leastTensor, maxTensors)
	keys = from.length("", "keys", leastKey, maxKeys)
	return tensors, keys
}

// alignment is that of the data of each tensor, in bytes.
func (head *header) alignment(from *source) int64 {
	found, is := head.values[keyAlignment]
	if !is {
		return defaultAlignment
	}
	if found.kind != kindU32 || found.numbers[0] == 0 || bits.OnesCount64(uint64(found.numbers[0])) != 1 {
		from.fail("key "+quoted(keyAlignment), "%v is not a power of two of type u32", found.numbers)
		return defaultAlignment
	}
	return found.numbers[0]
}

// readTensor reads a tensor and the place of its data after the header.
func readTensor(from *source) (tensor modelgraph.Tensor, offset uint64) {
	tensor.Name = from.text("the name of a tensor", maxNameBytes)
	place := "tensor " + quoted(tensor.Name)
	rank := from.u32()
	if rank > maxRank {
		from.fail(place, "%d dimensions are more than %d", rank, maxRank)
	}
	if from.err != nil {
		return tensor, 0
	}
	shape := make([]int64, rank)
	for i := range shape {
		side := int64(from.u64())
		if side < 0 {
			from.fail(place, "dimension %d is negative", side)
		}
		shape[i] = side
	}
	slices.Reverse(shape) // a row's length is first in the file, and last in a graph
	number := from.u32()
	offset = from.u64()
	dtype, known := typeOf(number)
	if !known {
		from.fail(place, "type %d of its elements is unknown", number)
	}
	if from.err != nil {
		return tensor, 0
	}
	measured, err := modelgraph.NewTensor(tensor.Name, dtype, shape...)
	if err != nil {
		from.fail("", "%v", err) // it names the tensor
	}
	return measured, offset
}

func padded(size, alignment int64) int64 { return (size + alignment - 1) / alignment * alignment }

// repeated returns an error for a name that two tensors have.
func repeated(tensors []modelgraph.Tensor) error {
	seen := make(map[string]bool, len(tensors))
	for i := range tensors {
		if seen[tensors[i].Name] {
			return &modelgraph.SyntaxError{File: tensors[i].Parts[0].File, Place: "tensor " + quoted(tensors[i].Name), Msg: "it is there twice"}
		}
		seen[tensors[i].Name] = true
	}
	return nil
}
