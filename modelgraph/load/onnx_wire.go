package load

import (
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// wireFile is a protobuf message in a file. Weights are never read: fields that no one reads are
// skipped.
type wireFile struct {
	name   string
	source io.ReaderAt
	size   int64
	window []byte // read ahead, from at on
	at     int64
}

const (
	wireWindow = 32 << 10
	maxName    = 16 << 10 // bytes of a name; those of operations and modules have some hundred
	maxPacked  = 1 << 20  // bytes of a list of numbers; a shape has some tens
)

// span is a part of a file: a message, or a text.
type span struct{ from, end int64 }

// wireField is a field of a message: a number, or a span.
type wireField struct {
	number int
	kind   protowire.Type
	value  uint64
	body   span
}

// bytes returns the bytes of a span. They are valid until the next call.
func (file *wireFile) bytes(of span) ([]byte, error) {
	if of.from < file.at || of.end > file.at+int64(len(file.window)) {
		size := min(max(of.end-of.from, wireWindow), file.size-of.from)
		window := make([]byte, size)
		if _, err := file.source.ReadAt(window, of.from); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file.name, err)
		}
		file.window, file.at = window, of.from
	}
	return file.window[of.from-file.at : of.end-file.at], nil
}

// fields calls each for every field of a message.
func (file *wireFile) fields(message span, each func(wireField) error) error {
	const header = 2 * 10 // a tag and a length
	for at := message.from; at < message.end; {
		text, err := file.bytes(span{at, min(at+header, message.end)})
		if err != nil {
			return err
		}
		number, kind, size := protowire.ConsumeTag(text)
		if size < 0 {
			return file.broken(at, protowire.ParseError(size))
		}
		field := wireField{number: int(number), kind: kind}
		rest := text[size:]
		at += int64(size)
		switch kind {
		case protowire.VarintType:
			if field.value, size = protowire.ConsumeVarint(rest); size < 0 {
				return file.broken(at, protowire.ParseError(size))
			}
		case protowire.BytesType:
			var length uint64
			if length, size = protowire.ConsumeVarint(rest); size < 0 {
				return file.broken(at, protowire.ParseError(size))
			}
			from := at + int64(size)
			if length > uint64(message.end-from) {
				return file.broken(at, fmt.Errorf("a field of %d bytes, %d are left", length, message.end-from))
			}
			field.body = span{from, from + int64(length)}
			size = int(min(field.body.end-at, math.MaxInt))
		case protowire.Fixed32Type:
			size = 4
		case protowire.Fixed64Type:
			size = 8
		default:
			return file.broken(at, fmt.Errorf("a field of wire type %d, which ONNX does not have", kind))
		}
		if int64(size) > message.end-at {
			return file.broken(at, io.ErrUnexpectedEOF)
		}
		at += int64(size)
		if err := each(field); err != nil {
			return err
		}
	}
	return nil
}

// text returns a short string.
func (file *wireFile) text(field wireField) (string, error) {
	if field.kind != protowire.BytesType || field.body.end-field.body.from > maxName {
		return "", file.broken(field.body.from, fmt.Errorf("a name of %d bytes, at most %d are read", field.body.end-field.body.from, maxName))
	}
	text, err := file.bytes(field.body)
	return string(text), err
}

// numbers appends the numbers of a repeated int64, packed or not.
func (file *wireFile) numbers(field wireField, into []int64) ([]int64, error) {
	if field.kind == protowire.VarintType {
		return append(into, int64(field.value)), nil
	}
	if field.kind != protowire.BytesType || field.body.end-field.body.from > maxPacked {
		return nil, file.broken(field.body.from, fmt.Errorf("a list of numbers in %d bytes, at most %d are read", field.body.end-field.body.from, maxPacked))
	}
	text, err := file.bytes(field.body)
	for err == nil && len(text) > 0 {
		value, size := protowire.ConsumeVarint(text)
		if size < 0 {
			return nil, file.broken(field.body.from, protowire.ParseError(size))
		}
		into, text = append(into, int64(value)), text[size:]
	}
	return into, err
}

func (file *wireFile) broken(at int64, err error) error {
	return fmt.Errorf("%s: not ONNX: byte %d: %w", file.name, at, err)
}
