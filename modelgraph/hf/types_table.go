package hf

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// typesGz holds the classes of Transformers 5.24 with their tensors as
// functions of config fields (make oracle TABLE=5.24.0 writes it).
//
//go:embed types-5.24.jsonl.gz
var typesGz []byte

// release is a release of Transformers.
type release struct {
	name  string
	table *embedded.Table
}

var newest = &release{"5.24", embedded.New("types-5.24.jsonl.gz", typesGz)}

// typeClass is the line of a model class. Expressions are those of
// [evaluation.eval].
type typeClass struct {
	Class  string `json:"class"`
	Config string `json:"config"` // its config class
	// NoSplit are the classes of modules that one device must hold whole.
	NoSplit []string `json:"nosplit"`
	// Float32 and Strict are as in [namedModel].
	Float32 []string `json:"fp32"`
	Strict  []string `json:"strict"`
	// Entries are tensors, modules and ties, in module order: [kind, name,
	// whether it is there, …]. A star in a name is a number.
	Entries [][]any `json:"entries"`
	// Rounds say how many numbers a star has, by the name up to it.
	Rounds map[string]any `json:"rounds"`
	// Rules are fields of the finished config that the file's fields make.
	Rules map[string]any `json:"rules"`
	// Texts are the texts that fields may have, Met the conditions that every
	// build met: [of the file, field or condition, values or outcome].
	Texts [][]any `json:"texts"`
	Met   [][]any `json:"held"`
	// Unread are fields that the class would read and no build had.
	Unread []string `json:"unread"`
	// Shown are configs that the class was built of, with modules that the
	// default config does not have.
	Shown []map[string]any `json:"shown"`
	// Acts are fields that name activations.
	Acts []string `json:"acts"`
}

// typeConfig is the line of a config class.
type typeConfig struct {
	Config string               `json:"config"`
	Type   string               `json:"type"` // model_type
	Fields map[string]any       `json:"fields"`
	Null   []string             `json:"null"` // may be null, and are not by default
	Alias  map[string]string    `json:"alias"`
	Labels float64              `json:"labels"` // by default; 0: two
	Inner  map[string]typeInner `json:"inner"`
	Pops   []string             `json:"pops"` // other fields that its code reads
	Base   map[string]any       `json:"base"` // what a config must say for a model to be built
}

// typeInner is an object inside a config.
type typeInner struct {
	Config string         `json:"config"`
	Auto   bool           `json:"auto"`   // its model_type says its class
	None   bool           `json:"none"`   // there is none by default
	Absent map[string]any `json:"absent"` // its fields if the file has none
	Given  map[string]any `json:"given"`  // its fields if the file has it without them
}

// line reads the line of a name, nil if there is none.
func line[kind any](in *release, key, name string) *kind {
	for text := range in.table.Lines(fmt.Sprintf(`{%q:%q,`, key, name)) {
		read := new(kind)
		in.table.Read(text, read)
		return read
	}
	return nil
}

// autoOrder are the Auto classes that say which class a config without
// architectures means.
var autoOrder = []string{
	"AutoModelForCausalLM", "AutoModelForImageTextToText", "AutoModelForMultimodalLM", "AutoModelForSeq2SeqLM",
	"AutoModelForSpeechSeq2Seq", "AutoModelForMaskedLM", "AutoModelForObjectDetection", "AutoModel",
	"AutoModelForDepthEstimation", "AutoModelForSemanticSegmentation", "AutoModelForUniversalSegmentation", "AutoModelForKeypointDetection",
	"AutoModelForKeypointMatching", "AutoModelForTextToSpectrogram", "AutoModelForSequenceClassification", "alone",
}

// auto is the class that an Auto class makes of a type.
func (in *release) auto(kind, auto string) string {
	if found := line[map[string]string](in, "type", kind); found != nil {
		return (*found)[auto]
	}
	return ""
}

// loader is a class that AutoModelForCausalLM does not load; else empty.
func (in *release) loader(kind, class string) string {
	if in.auto(kind, autoOrder[0]) == class {
		return ""
	}
	return class
}

// configOf is the config class of a type.
func (in *release) configOf(kind string) string { return in.auto(kind, "config") }

// parametric reports activations that hold tensors.
func (in *release) parametric(name string) bool {
	for text := range in.table.Lines(`{"release":`) {
		var head struct {
			Release string   `json:"release"`
			Acts    []string `json:"acts"`
		}
		in.table.Read(text, &head)
		return slices.Contains(head.Acts, name)
	}
	return true
}
