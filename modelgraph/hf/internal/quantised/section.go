package quantised

import "github.com/go-json-experiment/json/jsontext"

// Section is an object of a config: quantization_config, or one inside it. A field that is absent has the getter's
// default. A value of the wrong type is a fault of the config at that field.
type Section interface {
	Members() map[string]jsontext.Value
	Has(name string) bool  // there, and not null
	Null(name string) bool // there, and null
	Pick(names []string) string
	Name(name string) string
	Flag(name string) bool
	Bool(def bool, names ...string) bool
	Dim(def int64, names ...string) int64
	Pos(def int64, names ...string) int64
	Optional(def int64, name string) int64
	Dims(name string) []int64
	Strs(name string) []string
	Sub(name string) Section
	Objects(name string) []Section
	Fail(name, format string, args ...any)
}
