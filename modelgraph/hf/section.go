package hf

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/quantised"
)

// storedSection shows package quantised an object of a config.
type storedSection struct{ of *config }

func (s storedSection) Members() map[string]jsontext.Value    { return s.of.members }
func (s storedSection) Has(name string) bool                  { return s.of.has(name) }
func (s storedSection) Null(name string) bool                 { return s.of.null(name) }
func (s storedSection) Pick(names []string) string            { return s.of.pick(names) }
func (s storedSection) Name(name string) string               { return s.of.name(name) }
func (s storedSection) Flag(name string) bool                 { return s.of.flag(name) }
func (s storedSection) Bool(def bool, names ...string) bool   { return s.of.bool(def, names...) }
func (s storedSection) Dim(def int64, names ...string) int64  { return s.of.dim(def, names...) }
func (s storedSection) Pos(def int64, names ...string) int64  { return s.of.pos(def, names...) }
func (s storedSection) Optional(def int64, name string) int64 { return s.of.optional(def, name) }
func (s storedSection) Dims(name string) []int64              { return s.of.dims(name) }
func (s storedSection) Strs(name string) []string             { return s.of.strs(name) }
func (s storedSection) Fail(name, format string, args ...any) { s.of.fail(name, format, args...) }
func (s storedSection) Sub(name string) quantised.Section     { return storedSection{s.of.sub(name)} }
func (s storedSection) Objects(name string) []quantised.Section {
	var all []quantised.Section
	for _, object := range s.of.objects(name) {
		all = append(all, storedSection{object})
	}
	return all
}
