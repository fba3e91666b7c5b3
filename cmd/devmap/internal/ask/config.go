package ask

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// maxConfigBytes bounds a config.json.
const maxConfigBytes = 64 << 20

// ReadConfig is the text of the config.json that [ReadModel] makes a model of.
// A model of another form has none.
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
