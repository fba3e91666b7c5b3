package hf

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// nameRecord is what Transformers 5.17 does with checkpoint names
// (fixtures/oracle/README.md: names.json.gz).
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
	g, _, c, err := fromConfig("config.json", config)
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
		if to != n.To || ok && s.stacked != (n.Pattern != "") {
			t.Errorf("%s goes to %q (stacked %v), in Transformers to %q (%q)", n.From, to, s.stacked, n.To, n.Pattern)
		}
		if !ok && l.ignored(s.name) != n.Ignored {
			t.Errorf("%s ignored: %v, in Transformers %v", n.From, !n.Ignored, n.Ignored)
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
