package safetensors

import (
	"bufio"
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

	// metadata.total_size as written, "" when absent. Only ever compared:
	// writers round it, and transformers has written it as a float.
	totalSize string
}

// readIndex parses an index. Keys it does not know are passed over. Every file
// name in the result lies beneath the folder, links aside.
func readIndex(r io.Reader, name string) (*index, error) {
	const begin = 1024
	buffered := bufio.NewReaderSize(r, begin)
	start, _ := buffered.Peek(begin) // what cannot be read is reported below
	if what := filekind.NotText(start); what != "" {
		return nil, &syntaxError{File: name, Msg: what}
	}
	p := indexParser{
		scanner: newScanner(buffered, name, 0),
		idx:     &index{name: name},
		byFile:  map[string]int{},
	}
	if err := p.parse(); err != nil {
		return nil, err
	}
	if len(p.idx.shard) == 0 {
		return nil, &syntaxError{File: name, Msg: "weight_map is missing or empty"}
	}
	return p.idx, nil
}

type indexParser struct {
	scanner
	idx    *index
	byFile map[string]int // index in idx.files
}

func (p *indexParser) parse() error {
	if err := p.skip(jsontext.KindBeginObject); err != nil {
		return err
	}
	for p.more() {
		key, err := p.str()
		if err != nil {
			return err
		}
		switch key {
		case "weight_map":
			err = p.weightMap()
		case "metadata":
			err = p.metadata()
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
	return p.eof()
}

func (p *indexParser) weightMap() error {
	if err := p.skip(jsontext.KindBeginObject); err != nil {
		return err
	}
	p.idx.shard = map[string]int{}
	for p.more() {
		tensor, err := p.str()
		if err != nil {
			return err
		}
		if len(p.idx.shard) == maxTensors {
			return p.fail("more than %d entries", maxTensors)
		}
		file, err := p.str()
		if err != nil {
			return err
		}
		i, known := p.byFile[file]
		if !known {
			if fault := nameFault(file); fault != "" {
				where := "weight_map " + quote(tensor)
				return &syntaxError{p.file, where, fmt.Sprintf("file %s: %s", quote(file), fault)}
			}
			i = len(p.idx.files)
			p.byFile[file] = i
			p.idx.files = append(p.idx.files, file)
		}
		p.idx.shard[tensor] = i
	}
	return p.skip(jsontext.KindEndObject)
}

// metadata keeps total_size. It is a hint of the writer, so that no form of it
// is an error.
func (p *indexParser) metadata() error {
	if p.dec.PeekKind() != jsontext.KindBeginObject {
		return p.skipValue()
	}
	if err := p.skip(jsontext.KindBeginObject); err != nil {
		return err
	}
	for p.more() {
		key, err := p.str()
		if err != nil {
			return err
		}
		if key != "total_size" {
			if err := p.skipValue(); err != nil {
				return err
			}
			continue
		}
		if err := p.totalSize(); err != nil {
			return err
		}
	}
	return p.skip(jsontext.KindEndObject)
}

func (p *indexParser) totalSize() error {
	if p.dec.PeekKind() != jsontext.KindNumber {
		p.idx.totalSize = "not a number"
		return p.skipValue()
	}
	v, err := p.expect(jsontext.KindNumber)
	p.idx.totalSize = clip(v.String())
	return err
}

// totalSizeLie is a warning when total_size is not the bytes of the tensors.
func (x *index) totalSizeLie(bytes int64) string {
	if x.totalSize == "" {
		return ""
	}
	if f, err := strconv.ParseFloat(x.totalSize, 64); err == nil && f == float64(bytes) {
		return ""
	}
	return fmt.Sprintf("%s: metadata.total_size is %s, the tensors take %d bytes: not used", printable(x.name), x.totalSize, bytes)
}
