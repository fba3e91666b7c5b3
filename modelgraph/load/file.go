package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/internal/filekind"
)

// maxFileBytes is the limit of a file that is read whole.
const maxFileBytes = 256 << 20

// readFile reads a regular file whole. It does not open a FIFO or a device, nor read a huge file.
func readFile(path string) ([]byte, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	if size > maxFileBytes {
		return nil, fmt.Errorf("%s: %d bytes is more than the %d MiB that a model.json or config.json may have", path, size, maxFileBytes>>20)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, nil
}

// fromGGUF reads a GGUF file and the other files of its set, unless finding it failed.
func fromGGUF(path string, fault error) (*modelgraph.Graph, error) {
	if fault != nil {
		return nil, fault
	}
	file, err := gguf.Read(path, openRegular)
	if err != nil {
		return nil, err
	}
	return file.Graph()
}

// IsGGUF reports whether place is a GGUF file, or a folder whose model is one.
func IsGGUF(place string) bool {
	info, err := os.Stat(place)
	if err != nil || !info.IsDir() {
		return err == nil && isGGUF(place)
	}
	entries, err := os.ReadDir(place)
	if err != nil || slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() == hf.ConfigName || isStored(entry) }) {
		return false
	}
	path, err := ggufOf(place, namesOf(entries))
	return path != "" || err != nil
}

// isGGUF reports whether a file begins as GGUF files do.
func isGGUF(path string) bool {
	f, _, err := openRegular(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // opened for reading
	return gguf.Is(f)
}

// ggufOf is the one model among the GGUF files of a folder: a file, or the first of a set. Files of
// encoders of images (mmproj) are no models of their own.
func ggufOf(dir string, names []string) (string, error) {
	var models []string
	for _, name := range names {
		if strings.EqualFold(filepath.Ext(name), ".gguf") && !strings.Contains(strings.ToLower(name), "mmproj") && !gguf.Later(name) {
			models = append(models, name)
		}
	}
	switch len(models) {
	case 0:
		return "", nil
	case 1:
		return filepath.Join(dir, models[0]), nil
	}
	const most = 20
	more := ""
	if len(models) > most {
		more = fmt.Sprintf(" and %d more", len(models)-most)
	}
	return "", fmt.Errorf("%s: it has %d GGUF models: give one of them: %q%s", dir, len(models), models[:min(len(models), most)], more)
}

// fromBytes reads a file according to its contents.
func fromBytes(path string, data []byte, transformers string) (*modelgraph.Graph, error) {
	top := sniff(data)
	has := top.has
	if !top.object() {
		has = nil
	}
	if what := filekind.NotText(data); what != "" && !top.object() {
		return nil, &modelgraph.SyntaxError{File: path, Msg: what}
	}
	if reader := benchfile.Reader(data, has); reader != nil && !top.has("format_version") {
		return fromBenchmark(path, data, reader)
	}
	if !top.object() {
		return nil, fmt.Errorf("%s: not a JSON object, so neither a model.json nor a config.json, and not a graph.txt of PipeDream; it begins with %q", path, beginning(data))
	}
	return fromObject(path, data, top, transformers)
}

// fromObject reads a JSON object by its members.
func fromObject(path string, data []byte, top topLevel, transformers string) (*modelgraph.Graph, error) {
	version, ours := top["format_version"]
	switch {
	case ours && !strings.HasPrefix(version, "devmap.model/") && strings.HasPrefix(version, "devmap."):
		return nil, fmt.Errorf("%s: format_version: %q is not a model; give the model that it was made from (its model.source)", path, version)
	case ours || top.has("layers") && !top.has("model_type"):
		return modelgraph.Read(bytes.NewReader(data), path)
	case top.has("weight_map"):
		return fromIndex(path, transformers)
	case top.has("_class_name") && !top.has("model_type"):
		return diffusers.FromConfig(path, data)
	case top.has("peft_type"):
		return nil, fmt.Errorf("%s: the config of a PEFT adapter, not of a model; give the base model and lora_rank", path)
	}
	return hf.FromConfig(path, data, transformers)
}

// fromBenchmark reads a public file of a placement problem as a graph.
func fromBenchmark(path string, data []byte, reader func(name string, data []byte) (benchfile.File, error)) (*modelgraph.Graph, error) {
	file, err := reader(path, data)
	if err != nil {
		return nil, err
	}
	return benchfile.Graph(path, file)
}

// fromIndex reads the folder of an index of shards.
func fromIndex(path, transformers string) (*modelgraph.Graph, error) {
	if filepath.Dir(path) == path || !strings.Contains(filepath.Base(path), ".index.") {
		return nil, errors.New(path + ": an index of shards; give the folder that holds them")
	}
	return hf.FromCheckpoint(filepath.Dir(path), transformers)
}

// beginning is the first line of a text, cut if it is long.
func beginning(data []byte) string {
	const maxBytes = 40
	line, _, _ := strings.Cut(strings.TrimSpace(string(data[:min(len(data), 1024)])), "\n")
	if len(line) > maxBytes {
		line = strings.ToValidUTF8(line[:maxBytes], "") + "…"
	}
	return line
}

// topLevel are the members of a JSON object, strings with their value.
type topLevel map[string]string

func (top topLevel) object() bool         { return top != nil }
func (top topLevel) has(name string) bool { _, ok := top[name]; return ok }

// sniff lists the members of the object, up to the first fault, which the file's reader reports. It
// is nil for anything but an object.
func sniff(data []byte) topLevel {
	decoder := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if decoder.PeekKind() != jsontext.KindBeginObject {
		return nil
	}
	top := make(topLevel)
	if _, err := decoder.ReadToken(); err != nil {
		return top
	}
	const maxMembers = 10_000
	for len(top) < maxMembers && decoder.PeekKind() == jsontext.KindString {
		name, err := decoder.ReadToken()
		if err != nil {
			return top
		}
		key := name.String()
		if decoder.PeekKind() == jsontext.KindString {
			value, err := decoder.ReadToken()
			if err != nil {
				return top
			}
			top[key] = value.String()
			continue
		}
		top[key] = ""
		if decoder.SkipValue() != nil {
			return top
		}
	}
	return top
}

// GGUF reads the GGUF file, or that of a folder, that place names. The error for anything else is an
// [ErrUnsupported].
func GGUF(place string) (*gguf.File, error) {
	path := place
	info, err := os.Stat(place)
	if err == nil && info.IsDir() {
		entries, err := os.ReadDir(place)
		if err != nil {
			return nil, fmt.Errorf("listing folder: %w", err)
		}
		if path, err = ggufOf(place, namesOf(entries)); err != nil {
			return nil, err
		}
	}
	if path == "" || !strings.EqualFold(filepath.Ext(path), ".gguf") && !isGGUF(path) {
		return nil, unsupported(place, "other files than GGUF")
	}
	return gguf.Read(path, openRegular)
}
