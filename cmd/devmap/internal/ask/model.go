package ask

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// Reading says how to read a model: by a release of Transformers ("": the model's own), and with
// sizes of ONNX's symbolic dimensions, each as NAME=N.
type Reading struct {
	Transformers string
	Dims         []string
}

// ReadModel reads the MODEL argument.
func ReadModel(arg string, how ...Reading) (*modelgraph.Graph, error) {
	options := load.Options{BuiltIn: fixtures.Models(), Env: os.Getenv, Dims: make(map[string]int64)}
	for _, reading := range how {
		options.Transformers = reading.Transformers
		for _, word := range reading.Dims {
			name, number, _ := strings.Cut(word, "=")
			size, err := strconv.ParseInt(number, 10, 64)
			if err != nil || size < 1 || name == "" {
				return nil, out.Usagef("--dim %s: give a dimension's name and a number of 1 or more, as batch=1", word)
			}
			if known, twice := options.Dims[name]; twice && known != size {
				return nil, out.Usagef("--dim gives %q two numbers, %d and %d: leave one out", name, known, size)
			}
			options.Dims[name] = size
		}
	}
	return load.Model(arg, options)
}

// Costs resolves the workload for a model and computes its table.
func Costs(graph *modelgraph.Graph, workload costmodel.Workload) (*costmodel.Table, error) {
	workload, err := estimate.Resolve(graph, workload)
	if err != nil {
		return nil, err
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		return nil, fmt.Errorf("counting %q: %w", graph.Name, err)
	}
	return table, nil
}

// maxConfigBytes is the largest size of a config.json.
const maxConfigBytes = 64 << 20

// ReadConfig returns the text of the config.json that [ReadModel] reads. Models in another form
// have none.
func ReadConfig(arg string) ([]byte, error) {
	place, builtIn := load.Place(arg, load.Options{BuiltIn: fixtures.Models(), Env: os.Getenv})
	if builtIn != nil {
		return fs.ReadFile(builtIn, place)
	}
	info, err := os.Stat(place)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		place = filepath.Join(place, hf.ConfigName)
	}
	text, err := modelgraph.ReadSmall(place, "a config", maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) || err == nil && filepath.Ext(place) != ".json" {
		return nil, fmt.Errorf("%s has no %s: what Transformers makes of it is not known", arg, hf.ConfigName)
	}
	return text, err
}

var hub = sync.OnceValue(func() (table map[string][]string) {
	data, err := fs.ReadFile(fixtures.Models(), "hub.json")
	if err == nil {
		err = json.Unmarshal(data, &table)
	}
	if err != nil {
		panic("the table of hub names: " + err.Error()) // the table is embedded, so this is a build error
	}
	return table
})

// HubIDs returns the hub names of models with a built-in config, the model's own first. Some have
// none.
func HubIDs(builtIn string) []string { return hub()[builtIn] }

// CompleteModel completes the MODEL argument: built-in configs, and files and folders that may be a
// model. The next argument is a file (MAP).
func CompleteModel(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var found []cobra.Completion
	for _, name := range load.Names(fixtures.Models()) {
		if strings.HasPrefix(name, strings.ToLower(prefix)) {
			found = append(found, name)
		}
	}
	dir, _ := filepath.Split(prefix)
	entries, _ := os.ReadDir(filepath.Join(".", dir)) // skip folders that cannot be listed
	if filepath.IsAbs(prefix) {
		entries, _ = os.ReadDir(dir)
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	for _, entry := range entries {
		path := dir + entry.Name()
		switch info, err := os.Stat(path); {
		case err != nil || !strings.HasPrefix(path, prefix) || strings.HasPrefix(entry.Name(), "."):
		case info.IsDir():
			found, directive = append(found, path+"/"), directive|cobra.ShellCompDirectiveNoSpace
		case modelEnding(path):
			found = append(found, path)
		}
	}
	return found, directive
}

// modelEnding reports the endings of files that describe a model.
func modelEnding(path string) bool {
	switch filepath.Ext(path) {
	case ".gguf", ".json", ".onnx", ".safetensors", ".txt":
		return true
	}
	return false
}
