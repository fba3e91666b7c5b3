package load

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// Options are what Model reads in addition to the path. The zero value reads
// the environment of the process and knows no built-in configs.
type Options struct {
	// BuiltIn holds NAME.json or NAME/config.json files, NAME with or without
	// ORG/ before it.
	BuiltIn fs.FS
	// Env replaces os.Getenv.
	Env func(string) string
}

// nativeName is our own model file in a folder.
const nativeName = "model.json"

// Model reads the model that path names. A path that exists wins over a name.
// The graph's Source is path. A form that is not read gives an
// [ErrUnsupported]; other faults are those of the readers.
func Model(path string, options Options) (*modelgraph.Graph, error) {
	if path == "" {
		return nil, errors.New("the model's path is empty")
	}
	if options.Env == nil {
		options.Env = os.Getenv
	}
	graph, err := read(path, options)
	if err != nil {
		return nil, err
	}
	graph.Source = path
	return graph, nil
}

// Place is the file or folder that Model reads for a path or name, empty for a
// built-in config and for what is nowhere.
func Place(path string, options Options) string {
	if options.Env == nil {
		options.Env = os.Getenv
	}
	if _, err := os.Stat(path); err == nil || !isName(path) {
		return path
	}
	for _, cached := range caches(path, options.Env) {
		if dir := cached.find(); dir != "" {
			return dir
		}
	}
	return ""
}

func read(path string, options Options) (*modelgraph.Graph, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !isName(path) {
			return nil, fmt.Errorf("%s: no such file or folder", path)
		}
		return named(path, options)
	case err != nil:
		return nil, err
	case info.IsDir():
		return folder(path)
	case info.Mode()&fs.ModeNamedPipe != 0:
		return nil, fmt.Errorf("%s: a FIFO: a model is read more than once, so save it to a file first", path)
	}
	return file(path)
}

// named finds a model by its name.
func named(name string, options Options) (*modelgraph.Graph, error) {
	looked := make([]string, 0, 4)
	for _, cached := range caches(name, options.Env) {
		looked = append(looked, cached.where)
		if dir := cached.find(); dir != "" {
			graph, err := hf.FromCheckpoint(dir)
			if err == nil {
				graph.Name = lastPart(name)
			}
			return graph, err
		}
	}
	if options.BuiltIn != nil {
		if graph, ok, err := builtIn(name, options.BuiltIn); ok {
			return graph, err
		}
	}
	return nil, &notFoundError{Name: name, Looked: looked, Near: nearest(name, options.BuiltIn), Base: baseOf(name, options.BuiltIn)}
}

// folder reads a folder; ours is one with a model.json and no config.json.
func folder(dir string) (*modelgraph.Graph, error) {
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
			return fromBytes(config, data)
		}
	}
	graph, err := hf.FromCheckpoint(dir)
	if err != nil && !contains(hf.ConfigName) && !slices.ContainsFunc(entries, isStored) {
		for _, entry := range entries {
			if form := formOf(entry.Name()); form == "GGUF" || form == "ONNX" {
				return nil, unsupported(filepath.Join(dir, entry.Name()), form)
			}
		}
	}
	return graph, err
}

// isStored reports a safetensors file, or an index of some.
func isStored(entry fs.DirEntry) bool {
	name := entry.Name()
	return strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".json") && strings.Contains(name, ".safetensors.index.")
}

// file reads one file by its ending, or by its first bytes if the ending says
// nothing.
func file(path string) (*modelgraph.Graph, error) {
	switch ending := strings.ToLower(filepath.Ext(path)); ending {
	case ".safetensors":
		return hf.FromCheckpoint(path)
	case ".json", "":
	default:
		if form := formOf(path); form != "" {
			return nil, unsupported(path, form)
		}
	}
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return fromBytes(path, data)
}
