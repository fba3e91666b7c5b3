package ask

import (
	"io/fs"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/fixtures"
)

// BuiltIn is what the table of hub names has of a built-in config.
type BuiltIn struct {
	IDs    []string `json:"ids"` // the first is the model's own, the others have its config
	Source string   `json:"source"`
}

// ID is the model's name on a hub, empty if it has none.
func (builtIn BuiltIn) ID() string {
	if len(builtIn.IDs) == 0 {
		return ""
	}
	return builtIn.IDs[0]
}

var builtIns = sync.OnceValue(func() map[string]BuiltIn {
	var table map[string]BuiltIn
	data, err := fs.ReadFile(fixtures.Models(), "hub.json")
	if err == nil {
		err = json.Unmarshal(data, &table)
	}
	if err != nil {
		panic("the table of hub names: " + err.Error()) // embedded: a build fault
	}
	return table
})

// BuiltInOf is the row of a built-in config.
func BuiltInOf(name string) BuiltIn { return builtIns()[name] }
