package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/devmap-dev/devmap/modelgraph"
)

// source reads a header from its begin. The first error is kept, and everything read after it is
// zero.
type source struct {
	file string
	from *bufio.Reader
	at   int64 // bytes read
	size int64 // of the file
	err  error
}

func newSource(file string, from io.ReaderAt, size int64) *source {
	return &source{file: file, size: size, from: bufio.NewReaderSize(io.NewSectionReader(from, 0, size), 1<<16)}
}

// fail keeps an error for a place in the file.
func (source *source) fail(place, format string, args ...any) {
	if source.err == nil {
		source.err = &modelgraph.SyntaxError{File: source.file, Place: place, Msg: fmt.Sprintf(format, args...)}
	}
}

func (source *source) left() int64 { return source.size - source.at }

// bytes fills a buffer of a bounded length.
func (source *source) bytes(into []byte) {
	if source.err != nil {
		clear(into)
		return
	}
	count, err := io.ReadFull(source.from, into)
	source.at += int64(count)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		source.fail("", "the file ends at byte %d, inside its header: it is cut off", source.at)
	case err != nil:
		source.err = fmt.Errorf("%s: reading: %w", source.file, err)
	}
	if err != nil {
		clear(into)
	}
}

// skip passes over a number of bytes that the file has.
func (source *source) skip(count int64) {
	if source.err != nil {
		return
	}
	skipped, err := io.CopyN(io.Discard, source.from, count)
	source.at += skipped
	if err != nil {
		source.fail("", "the file ends at byte %d, inside its header: it is cut off", source.at)
	}
}

func (source *source) u32() uint32 {
	var buffer [4]byte
	source.bytes(buffer[:])
	return binary.LittleEndian.Uint32(buffer[:])
}

func (source *source) u64() uint64 {
	var buffer [8]byte
	source.bytes(buffer[:])
	return binary.LittleEndian.Uint64(buffer[:])
}

// length reads a number of items of at least so many bytes each, which the rest of the file must
// have room for.
func (source *source) length(place, what string, each int64, most uint64) int64 {
	count := source.u64()
	switch {
	case count > most:
		source.fail(place, "%d %s are more than %d", count, what, most)
	case int64(count) > source.left()/each:
		source.fail(place, "%d %s do not fit into the remaining %d bytes of the file", count, what, source.left())
	}
	if source.err != nil {
		return 0
	}
	return int64(count)
}

// text reads a string of up to most bytes.
func (source *source) text(place string, most uint64) string {
	buffer := make([]byte, source.length(place, "bytes of text", 1, most))
	source.bytes(buffer)
	return string(buffer)
}

// number reads a number or a truth value as an integer. whole is false for a fraction and for a
// number that no int64 holds.
func (source *source) number(of kind) (value int64, whole bool) {
	var buffer [8]byte
	source.bytes(buffer[:of.width()])
	bits := binary.LittleEndian.Uint64(buffer[:])
	switch of {
	case kindBool, kindU8, kindU16, kindU32:
		return int64(bits), true
	case kindI8:
		return int64(int8(bits)), true
	case kindI16:
		return int64(int16(bits)), true
	case kindI32:
		return int64(int32(bits)), true
	case kindU64:
		return int64(bits), bits <= math.MaxInt64
	case kindI64:
		return int64(bits), true
	case kindF32, kindF64, kindString, kindArray:
	}
	return 0, false
}

// quoted is a text of a file, on one line and of bounded length.
func quoted(text string) string {
	const most = 96
	if len(text) <= most {
		return strconv.Quote(text)
	}
	return fmt.Sprintf("%s (%d bytes)", strconv.Quote(text[:most]+"…"), len(text))
}
