package hf

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
)

// nameRecord has Transformers' results for names (fixtures/oracle/README.md: names.json.gz).
type nameRecord struct {
	Case    string      `json:"case"`
	Class   string      `json:"model_class"`
	Prefix  string      `json:"base_model_prefix"`
	Ignored []string    `json:"ignored"`
	Names   []nameRow   `json:"names"`
	Saved   []savedName `json:"saved"`
}

// nameRow is one checkpoint name; To is empty for an unexpected one.
type nameRow struct {
	From, To, Pattern string
	Ignored           bool
}

func (r *nameRow) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&r.From, &r.To, &r.Pattern, &r.Ignored})
}

type savedName struct {
	Name  string
	Shape []int64
}

func (s *savedName) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&s.Name, &s.Shape})
}

// TestNames compares the place of every checkpoint name with Transformers'.
func TestNames(t *testing.T) {
	configs := oracleConfigs(t)
	records := readNames(t)
	if len(records) < 105 {
		t.Fatalf("%d records: names.json.gz is cut short", len(records))
	}
	for _, r := range records {
		t.Run(r.Case, func(t *testing.T) { r.check(t, configs[r.Case]) })
	}
}

func (r *nameRecord) check(t *testing.T, config json.RawMessage) {
	t.Helper()
	g, c, err := beforeFiles(config)
	if err != nil {
		t.Fatal(err)
	}
	if g.Class != r.Class {
		t.Fatalf("class %s, Transformers makes %s", g.Class, r.Class)
	}
	l := loadingOf(g, c)
	if l.prefix != r.Prefix {
		t.Errorf("base model prefix %q, Transformers has %q", l.prefix, r.Prefix)
	}
	a := &assignment{graph: g, names: l}
	a.index()
	for _, n := range r.Names {
		s, ok := l.module(n.From, func(name string) bool { return a.state[name] != nil })
		to := ""
		if ok {
			to = s.name
		}
		if to != n.To || ok && (s.by != nil) != (n.Pattern != "") {
			t.Errorf("%s goes to %q (stacked %v), in Transformers to %q (%q)", n.From, to, (s.by != nil), n.To, n.Pattern)
		}
		if !ok && l.ignored(s.name) != n.Ignored {
			t.Errorf("%s ignored: %v, in Transformers %v", n.From, !n.Ignored, n.Ignored)
		}
	}
}

// TestNamedClasses: the table has every class that a family builds, except published code.
func TestNamedClasses(t *testing.T) {
	for modelType, f := range families {
		for _, class := range f.known() {
			own := baseOf(modelType) == nil && configClassOf(modelType) == nil
			if namedClassOf(class, modelType) == nil && !own && !slices.Contains(f.also, class) {
				t.Errorf("%s of %s is not in conversions.jsonl.gz", class, modelType)
			}
		}
	}
}

// TestTransform checks the effect of a rule on a name.
func TestTransform(t *testing.T) {
	experts := nameRule{From: `(?P<g0>mlp.experts.(?P<n0>.*)\.gate_proj.weight)|(?P<g1>mlp.experts.(?P<n1>.*)\.up_proj.weight)`, To: []string{"mlp.experts.gate_up_proj"}, Ops: [][]any{{"MergeModulelist", 0.}, {"Concatenate", 1.}}}
	towers := nameRule{From: `(?P<g0>^model)`, Unless: `^model(?:\.(language_model|visual))`, To: []string{"model.language_model"}}
	norms := nameRule{From: `(?P<g0>norm(\d+))`, To: []string{`norms.\1`}}
	for _, c := range []struct {
		rule       nameRule
		below      *scope
		name, want string
		source     int
		member     string
	}{
		{experts, nil, "layers.3.mlp.experts.17.up_proj.weight_scale_inv", "layers.3.mlp.experts.gate_up_proj_scale_inv", 1, "17"},
		{experts, nil, "layers.3.mlp.experts.0.gate_proj.weight", "layers.3.mlp.experts.gate_up_proj", 0, "0"},
		{experts, nil, "layers.3.mlp.gate_proj.weight", "", 0, ""},
		{experts, newScope("model", "text"), "model.text.mlp.experts.1.up_proj.weight", "model.text.mlp.experts.gate_up_proj", 1, "1"},
		{experts, newScope("model", "text"), "text.mlp.experts.1.up_proj.weight", "text.mlp.experts.gate_up_proj", 1, "1"},
		{experts, newScope("model", "text"), "other.mlp.experts.1.up_proj.weight", "", 0, ""},
		{towers, nil, "model.layers.0.weight", "model.language_model.layers.0.weight", 0, ""},
		{towers, nil, "model.visual.weight", "", 0, ""},
		{norms, nil, "layer.norm12.weight", "layer.norms.12.weight", 0, ""},
	} {
		rule := newTransform(&c.rule, c.below)
		found, ok := rule.match(c.name)
		if ok != (c.want != "") || found.name != c.want || found.source != c.source || found.member != c.member {
			t.Errorf("%s: %+v, %t; want %q of source %d, member %q", c.name, found, ok, c.want, c.source, c.member)
		}
	}
}

// oracleConfigs are the configurations of all oracle cases.
func oracleConfigs(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	files, err := filepath.Glob("../../fixtures/oracle/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no oracle files: %v", err)
	}
	configs := make(map[string]json.RawMessage)
	for _, file := range files {
		if notCases[filepath.Base(file)] {
			continue
		}
		for _, c := range readOracle(t, file) {
			configs[c.Case] = c.Config
		}
	}
	return configs
}

func readNames(t *testing.T) []nameRecord {
	t.Helper()
	var records []nameRecord
	readGzip(t, "../../fixtures/oracle/names.json.gz", &records)
	return records
}
