package load

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// Options are the inputs of Model in addition to the path. The zero value reads the environment of
// the process and has no built-in configs.
type Options struct {
	// BuiltIn holds NAME.json or NAME/config.json files, NAME with or without
	// ORG/ before it.
	BuiltIn fs.FS
	// Env replaces os.Getenv.
	Env func(string) string
	// Transformers is the release whose modules count, such as 5.20; empty: that of the config, or
	// the newest.
	Transformers string
	// Dims are the numbers of an ONNX file's symbolic dimensions.
	Dims map[string]int64
}

// nativeName is our own model file in a folder.
const nativeName = "model.json"

// Model reads the model that place names. A path that exists comes before a name. The graph's
// Source is place, or the model's name if place is the address of its page. The error for a form
// that is not read is an [ErrUnsupported]; other errors are those of the readers.
func Model(place string, options Options) (*modelgraph.Graph, error) {
	if place == "" {
		return nil, errors.New("the model's path is empty")
	}
	if options.Env == nil {
		options.Env = os.Getenv
	}
	graph, err := read(place, options)
	switch {
	case err != nil:
		return nil, err
	case len(options.Dims) > 0 && !strings.EqualFold(filepath.Ext(place), ".onnx"):
		return nil, fmt.Errorf("%s: --dim gives a dimension of an ONNX file a number, and this is none: leave it out", place)
	}
	graph.Source, graph.Transformers = place, options.Transformers
	if name, _, is := address(place); is && name != "" {
		graph.Source = name
	}
	return graph, nil
}

// Place returns the file or folder that Model reads for a path or name, empty if there is none. A
// built-in config is a file, and a built-in pipeline a folder, in options.BuiltIn, which is then
// returned too.
func Place(text string, options Options) (place string, in fs.FS) {
	if options.Env == nil {
		options.Env = os.Getenv
	}
	if _, err := os.Stat(text); err == nil {
		return text, nil
	}
	name, _, err := nameOf(text)
	if err != nil {
		return text, nil
	}
	for _, cached := range caches(name, options.Env) {
		if dir := cached(); dir != "" {
			return dir, nil
		}
	}
	entry, err := entryOf(name, options.BuiltIn)
	if entry == "" || err != nil {
		return "", nil
	}
	place = builtInFiles(options.BuiltIn)[entry]
	if path.Base(place) == pipelineFile {
		place = entry
	}
	return place, options.BuiltIn
}

func read(place string, options Options) (*modelgraph.Graph, error) {
	info, err := os.Stat(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		name, fetch, err := nameOf(place)
		if err != nil {
			return nil, err
		}
		return named(name, fetch, options)
	case err != nil:
		return nil, err
	case info.IsDir():
		return folder(place, options.Transformers)
	case strings.EqualFold(filepath.Ext(place), ".onnx") && info.Mode().IsRegular():
		return fromONNX(place, options.Dims)
	case info.Mode()&fs.ModeNamedPipe != 0:
		return nil, fmt.Errorf("%s: a FIFO: a model is read more than once, so save it to a file first", place)
	}
	return file(place, options.Transformers)
}

// named finds a model by its name. fetch is the command that fetches its config.
func named(name, fetch string, options Options) (*modelgraph.Graph, error) {
	for _, cached := range caches(name, options.Env) {
		if dir := cached(); dir != "" {
			graph, err := hf.FromCheckpoint(dir, options.Transformers)
			if err == nil {
				graph.Name = lastPart(name)
			}
			return graph, err
		}
	}
	if options.BuiltIn != nil {
		if graph, ok, err := builtIn(name, options); ok {
			return graph, err
		}
	}
	return nil, &notFoundError{Name: name, Fetch: fetch, Near: nearest(name, options.BuiltIn)}
}

// folder reads a folder. One with a model.json and no config.json has our own format.
func folder(dir, transformers string) (*modelgraph.Graph, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing folder: %w", err)
	}
	contains := func(name string) bool {
		return slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() == name })
	}
	if contains(nativeName) && !contains(hf.ConfigName) {
		f, _, err := safetensors.OpenBeneath(dir, nativeName)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // opened for reading
		return modelgraph.Read(f, filepath.Join(dir, nativeName))
	}
	if config := filepath.Join(dir, hf.ConfigName); contains(hf.ConfigName) {
		if data, err := readFile(config); err == nil && sniff(data).has("_class_name") {
			return fromBytes(config, data, transformers)
		}
	}
	alone := !contains(hf.ConfigName) && !slices.ContainsFunc(entries, isStored)
	if alone {
		if path, err := ggufOf(dir, namesOf(entries)); path != "" || err != nil {
			return fromGGUF(path, err)
		}
	}
	graph, err := hf.FromCheckpoint(dir, transformers)
	if err != nil && alone {
		if i := slices.IndexFunc(entries, func(entry fs.DirEntry) bool { return formOf(entry.Name()) == "ONNX" }); i >= 0 {
			return nil, unsupported(filepath.Join(dir, entries[i].Name()), "ONNX")
		}
	}
	return graph, err
}

func namesOf(entries []fs.DirEntry) []string {
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names
}

// isStored reports whether a file is a safetensors file, or an index of some.
func isStored(entry fs.DirEntry) bool {
	name := entry.Name()
	return strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".json") && strings.Contains(name, ".safetensors.index.")
}

// file reads one file by its ending, or by its first bytes if the ending shows nothing.
func file(path, transformers string) (*modelgraph.Graph, error) {
	switch ending := strings.ToLower(filepath.Ext(path)); {
	case ending == ".safetensors":
		return hf.FromCheckpoint(path, transformers)
	case ending == ".gguf", isGGUF(path):
		return fromGGUF(path, nil)
	case ending == ".json", ending == "":
	default:
		if form := formOf(path); form != "" {
			return nil, unsupported(path, form)
		}
	}
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return fromBytes(path, data, transformers)
}
