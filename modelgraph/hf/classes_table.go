package hf

import (
	_ "embed"
	"fmt"

	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// classesGz has the module tree of every model class of Transformers 5.17, one class a line
// (fixtures/oracle/classes.py made it from Transformers itself).
//
//go:embed classes.jsonl.gz
var classesGz []byte

var listedClassTable = embedded.New("classes.jsonl.gz", classesGz)

// listedClass is one line. Names are patterns: a star matches an index of a module list.
type listedClass struct {
	Class  string   `json:"class"`
	Type   string   `json:"type"`   // model_type
	Prefix string   `json:"prefix"` // base_model_prefix
	Params []string `json:"params"` // in module order
	// Default is how many of Params, the first, the default configuration has.
	Default int `json:"default"`
	// Ties are groups of names of one parameter if word embeddings are tied; Tied is the default.
	// AlwaysTied are tied under every config.
	Ties       [][]string `json:"ties"`
	Tied       bool       `json:"tied"`
	AlwaysTied [][]string `json:"always_tied"`
	// Buffers maps each buffer to whether it is stored.
	Buffers map[string]bool `json:"buffers"`
	// NoSplit are the modules that must be whole on one device.
	NoSplit []string `json:"no_split"`
	// Ignored are expressions for stored names that are left out.
	Ignored []string `json:"ignored"`
	// Renames maps stored names, with a star for every number, to new names. Numbers are in order;
	// extra ones are dropped (stacked experts).
	Renames map[string]string `json:"renames"`
	// Converted: Transformers has rules for the names of this class, so that one which is not known
	// here may become any other.
	Converted bool `json:"converted"`
}

// findClass looks a class up; nil if Transformers 5.17 has no such class for the model type, or it
// was not built for the table.
func findClass(class, modelType string) *listedClass {
	return embedded.First[listedClass](listedClassTable, fmt.Sprintf(`{"class":%q,"type":%q,`, class, modelType))
}
