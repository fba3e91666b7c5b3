package tables

import (
	"bytes"
	_ "embed"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// The tables of releases of Transformers: for each, its classes with their tensors as functions of
// config fields. Lines that several releases have in common are there once.
// fixtures/oracle/releases.py describes the files, which make oracle TABLE=5.24.0 writes.
var (
	//go:embed types.jsonl.gz
	typesGz []byte
	//go:embed types-older.jsonl.gz
	olderTypesGz []byte

	typeTable      = embedded.New("types.jsonl.gz", typesGz) // lines of the newest release
	olderTypeTable = embedded.New("types-older.jsonl.gz", olderTypesGz)
)

// Class is the line of a model class, with expressions of [evaluation.eval].
type Class struct {
	Class  string `json:"class"`
	Config string `json:"config"` // its config class
	// NoSplit are the classes of modules that must be whole on one device.
	NoSplit []string `json:"nosplit"`
	// Float32 and Strict are as in [namedModel].
	Float32 []string `json:"fp32"`
	Strict  []string `json:"strict"`
	// Entries are tensors, modules and ties, in module order: [kind, name, whether it is there, …].
	// A star in a name is a number.
	Entries [][]any `json:"entries"`
	// Rounds are the numbers of a star, by the name up to it.
	Rounds map[string]any `json:"rounds"`
	// Rules are fields of the finished config that the file's fields make.
	Rules map[string]any `json:"rules"`
	// Texts are the texts that fields may have, Met the conditions that every build met: [of the
	// file, field or condition, values or outcome].
	Texts [][]any `json:"texts"`
	Met   [][]any `json:"held"`
	// Unread are fields that the class would read and no build had.
	Unread []string `json:"unread"`
	// Shown are configs that the class was built of, with modules that the default config lacks.
	Shown []map[string]any `json:"shown"`
	// Together are names that a build had together (exploring.py, together).
	Together [][]string `json:"together"`
	// Acts are fields that name activations.
	Acts []string `json:"acts"`
	// Pins are fields of the file with the only values that the entries are known for. Sets are
	// fields of configs inside that this one sets by Rules.
	Pins map[string]any `json:"pins"`
	Sets []string       `json:"sets"`
	// Linear are the modules of a whole model that are nn.Linear, Tables those with other matrices,
	// with stars for numbers.
	Linear []string `json:"linear"`
	Tables []string `json:"tables"`
}

// Float32Names are expressions for parameters that stay in that type.
func (class *Class) Float32Names(dtype modelgraph.DType) []string {
	return map[modelgraph.DType][]string{
		modelgraph.F16: slices.Concat(class.Float32, class.Strict), modelgraph.BF16: class.Strict,
	}[dtype]
}

// AnyIn reports names that one of the expressions is in; nil for none.
func AnyIn(exprs []string) func(name string) bool {
	var all []*regexp.Regexp
	for _, text := range exprs {
		expr, err := regexp.Compile(strings.ReplaceAll(text, "*", ".*"))
		if err != nil {
			return nil
		}
		all = append(all, expr)
	}
	if len(all) == 0 {
		return nil
	}
	return func(name string) bool {
		return slices.ContainsFunc(all, func(expr *regexp.Regexp) bool {
			prefix, _ := expr.LiteralPrefix()
			return strings.Contains(name, prefix) && expr.MatchString(name) // Contains is much faster
		})
	}
}

// ConfigClass is the line of a config class.
type ConfigClass struct {
	Config string               `json:"config"`
	Type   string               `json:"type"` // model_type
	Fields map[string]any       `json:"fields"`
	Null   []string             `json:"null"` // may be null, and are not by default
	Alias  map[string]string    `json:"alias"`
	Labels float64              `json:"labels"` // by default; 0: two
	Inner  map[string]typeInner `json:"inner"`
	Pops   []string             `json:"pops"` // other fields that its code reads
	Made   map[string]any       `json:"made"` // its values for fields that are null by default
	Base   map[string]any       `json:"base"` // fields that a config must have for a build
}

// typeInner is an object inside a config.
type typeInner struct {
	Config string         `json:"config"`
	Auto   bool           `json:"auto"`   // its model_type determines its class
	None   bool           `json:"none"`   // there is none by default
	Absent map[string]any `json:"absent"` // its fields if the file has none
	// Outer are fields that are those of the config around it if the file has none.
	Outer map[string]string `json:"outer"`
	Given map[string]any    `json:"given"` // its fields if the file has an object without them
}

// line reads the line of a name, nil if there is none.
func line[kind any](in *Release, key, name string) *kind {
	for read := range lines[kind](in, fmt.Sprintf(`{%q:%q,`, key, name)) {
		return read
	}
	return nil
}

// Class reads the line of a model class: the config class's if there is one.
func (in *Release) Class(name, config string) (found *Class) {
	for read := range lines[Class](in, fmt.Sprintf(`{"class":%q,`, name)) {
		if read.Config == config {
			return read
		}
		if found == nil {
			found = read
		}
	}
	return found
}

// lines reads the lines that begin so.
func lines[kind any](in *Release, head string) iter.Seq[*kind] {
	return func(yield func(*kind) bool) {
		from, found := []*embedded.Table{typeTable, olderTypeTable}, false
		if in.own != nil {
			from = []*embedded.Table{in.own}
		}
		for _, table := range from {
			for text := range table.Lines(head) {
				text, releases, several := bytes.Cut(text, []byte{'\t'})
				if span := spanOf(string(releases)); several && span>>in.At&1 == 0 {
					continue
				} else if several && in.span != nil {
					*in.span &= span
				}
				read := new(kind)
				table.Read(text, read)
				if found = true; !yield(read) {
					return
				}
			}
		}
		if !found && in.span != nil { // others may have one
			*in.span &= 1 << in.At
		}
	}
}

// spanOf reads "0-3,5" as bits.
func spanOf(text string) (span uint64) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		first, last, several := strings.Cut(part, "-")
		from, _ := strconv.Atoi(first) // written by a program
		to := from
		if several {
			to, _ = strconv.Atoi(last)
		}
		span |= 1<<(to+1) - 1<<from
	}
	return span
}

// autoOrder are the Auto classes that choose the class of a config without architectures.
var autoOrder = []string{
	"AutoModelForCausalLM", "AutoModelForImageTextToText", "AutoModelForMultimodalLM", "AutoModelForSeq2SeqLM",
	"AutoModelForSpeechSeq2Seq", "AutoModelForMaskedLM", "AutoModelForObjectDetection", "AutoModel",
	"AutoModelForDepthEstimation", "AutoModelForSemanticSegmentation", "AutoModelForUniversalSegmentation", "AutoModelForKeypointDetection",
	"AutoModelForKeypointMatching", "AutoModelForTextToSpectrogram", "AutoModelForSequenceClassification", "AutoModelForTextToWaveform", "AutoModelForPreTraining", "AutoBackbone", "alone",
}

// auto is the class that an Auto class makes of a type.
func (in *Release) auto(kind, auto string) string {
	if found := line[map[string]string](in, "type", kind); found != nil {
		return (*found)[auto]
	}
	return ""
}

// Loader is a class that AutoModelForCausalLM does not load; else empty.
func (in *Release) Loader(kind, class string) string {
	if in.auto(kind, autoOrder[0]) == class {
		return ""
	}
	return class
}

// whenSaid is a config class's use of a file's value for a field that it computes. "over" means
// that it overwrites the value, "kept" that it takes it and nothing else changes, empty that this
// is unknown.
func (in *Release) whenSaid(config, path string) string {
	type made struct {
		Said map[string]map[string]string `json:"said"`
	}
	quiet := Release{Name: in.Name, At: in.At, own: in.own}
	for found := range lines[made](&quiet, `{"said":`) {
		return found.Said[config][path]
	}
	return ""
}

// ConfigOf is the config class of a type.
func (in *Release) ConfigOf(kind string) string { return in.auto(kind, "config") }

// parametric reports activations with tensors.
func (in *Release) parametric(name string) bool {
	type header struct {
		Release string   `json:"release"`
		Acts    []string `json:"acts"`
	}
	quiet := Release{Name: in.Name, At: in.At}
	for head := range lines[header](&quiet, `{"release":`) {
		return slices.Contains(head.Acts, name)
	}
	return true
}
