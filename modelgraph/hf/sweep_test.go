package hf

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// sweepCase is a config and what Transformers 5.17 makes of it
// (fixtures/oracle/sweep.py).
type sweepCase struct {
	Case, Class, Digest string
	Params              int64
	Config              json.RawMessage
}

// TestSweep: of every model type that Transformers has, a config is read as
// Transformers reads it, tensor for tensor, or refused. Families that are
// known here refuse few; those that the tables fill have draws of their own,
// as here more experts a token than there are may be drawn (TestFamilies).
func TestSweep(t *testing.T) {
	var cases []sweepCase
	readGzip(t, "../../fixtures/oracle/sweep.json.gz", &cases)
	types, read, refused := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, c := range cases {
		modelType, _, _ := strings.Cut(c.Case, "/")
		types[modelType] = true
		g, err := FromConfig("config.json", c.Config)
		switch {
		case err != nil:
			refused[modelType]++
			checkRefusal(t, c.Case, err)
			continue
		case strings.HasSuffix(c.Case, "/unnamed") && g.Class != c.Class: // its own class, where none is named
			continue
		case g.ParamCount() != c.Params:
			t.Errorf("%s (%s): %d parameters, Transformers has %d", c.Case, c.Class, g.ParamCount(), c.Params)
		case digest(g) != c.Digest:
			t.Errorf("%s (%s): the names, shapes or ties are not Transformers'", c.Case, c.Class)
		}
		read[modelType]++
	}
	if len(types) < 450 || len(read) < 33 {
		t.Errorf("%d types, %d of them read: the sweep has lost some", len(types), len(read))
	}
	for modelType := range types {
		if f := families[modelType]; f != nil && !f.table && read[modelType] < refused[modelType] {
			t.Errorf("%s: %d configs are read and %d refused", modelType, read[modelType], refused[modelType])
		}
	}
}

// checkRefusal: a refusal says where the fault is, or what the way out is.
func checkRefusal(t *testing.T, name string, err error) {
	t.Helper()
	var syn *modelgraph.SyntaxError
	placed := errors.As(err, &syn) && syn.Place != ""
	if !placed && !strings.HasSuffix(err.Error(), wayOut) {
		t.Errorf("%s: %v", name, err)
	}
}

// digest is sweep.py's: of the sorted lines "name shape" and "owner = name".
func digest(g *modelgraph.Graph) string {
	lines := graphTensors(g, func(l *modelgraph.Layer) []modelgraph.Tensor { return l.Params })
	for _, tie := range g.Ties {
		for _, name := range tie[1:] {
			lines = append(lines, tie[0]+" = "+name)
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])[:16]
}

// publicRead are those of public.json.gz that are read; the others, which
// once were read as small llamas, are refused.
var publicRead = wordSet(`
baichuan2-13b baichuan2-7b bert-base-uncased deepseek-llm-7b ernie-4.5-0.3b eurobert-210m gpt-oss-20b-quantised
granite-3.1-8b gte-qwen2-1.5b helium-1-2b internlm2_5-7b internlm3-8b internvl2-8b kimi-k2 ministral-8b mistral-nemo
moonlight-16b-a3b phi-3.5-mini phi-4-mini seed-oss-36b smollm2-1.7b smollm3-3b xverse-7b yi-6b
`)

// TestPublicConfigs: published models have their published number of
// parameters, or are refused.
func TestPublicConfigs(t *testing.T) {
	var models []struct {
		Name   string
		Params int64
		Config json.RawMessage
	}
	readGzip(t, "../../fixtures/oracle/public.json.gz", &models)
	for _, m := range models {
		g, err := FromConfig("config.json", m.Config)
		switch {
		case err != nil && publicRead[m.Name]:
			t.Errorf("%s: %v", m.Name, err)
		case err != nil:
			checkRefusal(t, m.Name, err)
		case g.ParamCount() != m.Params:
			t.Errorf("%s: %d parameters, it has %d", m.Name, g.ParamCount(), m.Params)
		}
	}
	if len(models) < 100 {
		t.Errorf("%d models", len(models))
	}
}
