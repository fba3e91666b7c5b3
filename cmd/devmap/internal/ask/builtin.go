package ask

import (
	"io/fs"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/fixtures"
)

var hub = sync.OnceValue(func() (table map[string][]string) {
	data, err := fs.ReadFile(fixtures.Models(), "hub.json")
	if err == nil {
		err = json.Unmarshal(data, &table)
	}
	if err != nil {
		panic("the table of hub names: " + err.Error()) // embedded: a build fault
	}
	return table
})

// HubIDs are the names on a hub of models with a built-in config, the model's own
// first. Some have none.
func HubIDs(builtIn string) []string { return hub()[builtIn] }
