package safetensors

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph/internal/filekind"
)

// index is a *.safetensors.index.json: which shard holds each tensor.
type index struct {
	name  string
	files []string       // shards, in order of first mention
	shard map[string]int // tensor name to index in files

	// metadata.total_size as written, "" if it is absent. It is only compared: writers round it,
	// and transformers has written it as a float.
	totalSize string
}

// readIndex parses an index and skips unknown keys. Every file name in the result is beneath the
// folder, apart from links.
func readIndex(reader io.Reader, name string) (*index, error) {
	const begin = 1024
	buffered := bufio.NewReaderSize(reader, begin)
	start, _ := buffered.Peek(begin) // what cannot be read is reported below
	if what := filekind.NotText(start); what != "" {
		return nil, &syntaxError{File: name, Msg: what}
	}
	parser := indexParser{
		scanner: newScanner(buffered, name, 0),
		idx:     &index{name: name},
		byFile:  map[string]int{},
	}
	if err := parser.parse(); err != nil {
		return nil, err
	}
	if len(parser.idx.shard) == 0 {
		return nil, &syntaxError{File: name, Msg: "weight_map is missing or empty"}
	}
	return parser.idx, nil
}

type indexParser struct {
	scanner
	idx    *index
	byFile map[string]int // index in idx.files
}

func (parser *indexParser) parse() error {
	err := parser.members(func(key string) error {
		switch key {
		case "weight_map":
			return parser.weightMap()
		case "metadata":
			return parser.metadata()
		}
		return parser.skipValue()
	})
	return cmp.Or(err, parser.eof())
}

func (parser *indexParser) weightMap() error {
	parser.idx.shard = map[string]int{}
	return parser.members(func(tensor string) error {
		if len(parser.idx.shard) == maxTensors {
			return parser.fail("more than %d entries", maxTensors)
		}
		file, err := parser.str()
		if err != nil {
			return err
		}
		i, known := parser.byFile[file]
		if !known {
			if fault := nameFault(file); fault != "" {
				where := "weight_map " + quote(tensor)
				return &syntaxError{parser.file, where, fmt.Sprintf("file %s: %s", quote(file), fault)}
			}
			i = len(parser.idx.files)
			parser.byFile[file] = i
			parser.idx.files = append(parser.idx.files, file)
		}
		parser.idx.shard[tensor] = i
		return nil
	})
}

// metadata keeps total_size. It is only a hint of the writer, so no form of it is an error.
func (parser *indexParser) metadata() error {
	if parser.dec.PeekKind() != jsontext.KindBeginObject {
		return parser.skipValue()
	}
	return parser.members(func(key string) error {
		if key != "total_size" {
			return parser.skipValue()
		}
		return parser.totalSize()
	})
}

func (parser *indexParser) totalSize() error {
	if parser.dec.PeekKind() != jsontext.KindNumber {
		parser.idx.totalSize = "not a number"
		return parser.skipValue()
	}
	token, err := parser.expect(jsontext.KindNumber)
	parser.idx.totalSize = clip(token.String())
	return err
}

// totalSizeLie returns a warning if total_size differs from the bytes of the tensors, else "".
func (x *index) totalSizeLie(bytes int64) string {
	if x.totalSize == "" {
		return ""
	}
	if f, err := strconv.ParseFloat(x.totalSize, 64); err == nil && f == float64(bytes) {
		return ""
	}
	return fmt.Sprintf("%s: metadata.total_size is %s, the tensors take %d bytes: not used", printable(x.name), x.totalSize, bytes)
}
