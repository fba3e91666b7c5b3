package safetensors

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph/internal/filekind"
)

// A fileHeader is what a file states about its tensors. It is not modified after it is read.
type fileHeader struct {
	Metadata map[string]string // __metadata__; nil when absent
	Tensors  []Tensor          // by Begin, then End, then Name
}

// ReadFile reads the header of the file at path as a checkpoint of this file alone. It must be a
// regular file or a link to one. For a file that a checkpoint names, use [OpenBeneath].
func ReadFile(path string) (*Checkpoint, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, fmt.Errorf("opening safetensors file: %w", err)
	}
	defer f.Close()
	info, err := statRegular(f, path)
	if err != nil {
		return nil, err
	}
	header, err := readHeader(f, info.Size(), path)
	if err != nil {
		return nil, err
	}
	return &Checkpoint{Dir: filepath.Dir(path), Files: []string{filepath.Base(path)}, Tensors: header.Tensors}, nil
}

// readHeader reads the header of a file of size bytes; name is for errors. It follows tensor.rs,
// SafeTensors::read_metadata. The error for a malformed file is a [*syntaxError]; an error of the
// reader is wrapped.
//
// The tensors of an accepted header follow each other without gaps from the end of the header to
// the end of the file.
func readHeader(reader io.ReaderAt, size int64, name string) (*fileHeader, error) {
	count, err := headerSize(reader, size, name)
	if err != nil {
		return nil, err
	}
	parser := headerParser{
		scanner:   newScanner(io.NewSectionReader(reader, 8, count), name, 8),
		dataBegin: 8 + count,
		dataLen:   size - 8 - count,
	}
	if err := parser.parse(); err != nil {
		return nil, err
	}
	return parser.header()
}

// headerSize reads and checks the 8-byte length in front of the header.
func headerSize(reader io.ReaderAt, size int64, name string) (int64, error) {
	fault := func(format string, args ...any) (int64, error) {
		return 0, &syntaxError{name, "byte 0", fmt.Sprintf(format, args...)}
	}
	if size < 8 {
		return fault("file of %d bytes is too short for the 8-byte header length", size)
	}
	var b [8]byte
	if _, err := io.ReadFull(io.NewSectionReader(reader, 0, 8), b[:]); err != nil {
		return 0, fmt.Errorf("%s: reading header length: %w", printable(name), err)
	}
	count := binary.LittleEndian.Uint64(b[:])
	if count > maxHeaderSize || int64(count) > size-8 {
		start := make([]byte, min(size, 1024))
		if _, err := io.ReadFull(io.NewSectionReader(reader, 0, size), start); err != nil {
			return 0, fmt.Errorf("%s: reading header length: %w", printable(name), err)
		}
		if what := filekind.Recognised(start); what != "" {
			return fault("this is no safetensors file: %s", what)
		}
	}
	switch {
	case count > maxHeaderSize:
		return fault("header length %d: the format allows %d bytes", count, maxHeaderSize)
	case int64(count) > size-8:
		return fault("header length %d: only %d bytes follow", count, size-8)
	}
	return int64(count), nil
}

// header sorts the parsed tensors and checks that they cover the data without gaps.
func (parser *headerParser) header() (*fileHeader, error) {
	slices.SortFunc(parser.tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.Name, b.Name))
	})
	h := &fileHeader{Metadata: parser.metadata, Tensors: parser.tensors}
	next := parser.dataBegin
	for i, tensor := range h.Tensors {
		switch {
		case tensor.Begin > next && i == 0:
			return nil, parser.fault(tensor, "first tensor does not begin at 0")
		case tensor.Begin > next:
			return nil, parser.fault(tensor, "hole after %s, which ends at %d", quote(h.Tensors[i-1].Name), next-parser.dataBegin)
		case tensor.Begin < next:
			return nil, parser.fault(tensor, "overlaps %s, which ends at %d", quote(h.Tensors[i-1].Name), next-parser.dataBegin)
		}
		next = tensor.End
	}
	if rest := parser.dataBegin + parser.dataLen - next; rest != 0 {
		where := fmt.Sprintf("byte %d", next)
		return nil, &syntaxError{parser.file, where, fmt.Sprintf("%d bytes after the last tensor", rest)}
	}
	return h, nil
}

// parse reads the JSON of the header.
func (parser *headerParser) parse() error {
	err := parser.members(func(key string) error {
		if key == "__metadata__" {
			return parser.readMetadata()
		}
		return parser.readTensor(key)
	})
	return cmp.Or(err, parser.eof())
}
