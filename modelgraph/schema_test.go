package modelgraph

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/devmap-dev/devmap/fixtures"
)

// schemaFile is the schema of model.json that editors take.
const schemaFile = "model.schema.json"

// TestSchema: the schema says what the reader reads, field by field: it is made
// of the reader's types. UPDATE_GOLDEN=1 writes it.
func TestSchema(t *testing.T) {
	var made bytes.Buffer
	encoder := json.NewEncoder(&made)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(madeSchema(t)); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(schemaFile, made.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have := fixtures.Must(os.ReadFile(schemaFile))(t)
	if !bytes.Equal(have, made.Bytes()) {
		t.Errorf("%s is not what the reader's types make: UPDATE_GOLDEN=1 go test ./modelgraph -run TestSchema writes it", schemaFile)
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema := fixtures.Must(jsonschema.NewCompiler().Compile(schemaFile))(t)
	return schema
}

func valid(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	value := fixtures.Must(jsonschema.UnmarshalJSON(strings.NewReader(text)))(t)
	return schema.Validate(value)
}

// TestSchemaTakesWhatIsRead: every model.json of the fixtures is valid, and is
// read; so is what is written of it.
func TestSchemaTakesWhatIsRead(t *testing.T) {
	schema := compiled(t)
	texts := schemaModels(t)
	for _, text := range texts {
		if err := valid(t, schema, text); err != nil {
			t.Errorf("%.200s…: %v", text, err)
			continue
		}
		graph, err := Read(strings.NewReader(text), "model.json")
		if err != nil {
			t.Error(err)
			continue
		}
		var written strings.Builder
		if err := Write(&written, graph); err != nil {
			t.Fatal(err)
		}
		if err := valid(t, schema, written.String()); err != nil {
			t.Errorf("%s as written: %v", graph.Name, err)
		}
	}
	if len(texts) < 40 {
		t.Errorf("%d models alone", len(texts))
	}
}

// schemaModels are the models that devmap.export made of Transformers' modules
// and those of the packages' test data.
func schemaModels(t *testing.T) (texts []string) {
	t.Helper()
	packed := fixtures.Must(os.Open(filepath.Join("..", "fixtures", "oracle", "exported.jsonl.gz")))(t)
	defer packed.Close()
	unpacked := fixtures.Must(gzip.NewReader(packed))(t)
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var row struct {
			Model json.RawMessage `json:"model"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(row.Model))
	}
	return append(texts, `{"$schema": "model.schema.json", "format_version": "devmap.model/v1", "layers": [{"name": "h", "repeat": 3,
 "stream": {"kind": "image", "tokens": 4, "side": 14, "multiple": 28},
 "op": {"kind": "attention", "dim": 8, "heads": 2, "kv_heads": 1, "head_dim": 4, "qk_norm": "rms", "rope": true, "rotation": {"base": 1e6}},
 "declared": {"params_bytes": 4, "forward_seconds": 0.5, "growth": {"output_bytes": {"pair": 3}}}}]}`)
}

// TestSchemaRefusesWhatIsRefused: a file that the reader refuses for its form
// is not valid either.
func TestSchemaRefusesWhatIsRefused(t *testing.T) {
	schema := compiled(t)
	const head = `{"format_version": "devmap.model/v1", "layers": [{"name": "a"`
	for _, text := range []string{
		`[]`, `{"layers": [{"name": "a"}]}`, `{"format_version": "devmap.model/v2", "layers": [{"name": "a"}]}`,
		`{"format_version": "devmap.model/v1", "layers": []}`, `{"format_version": "devmap.model/v1", "layers": [{}]}`,
		head + `, "colour": 1}]}`, head + `, "op": {"kind": "warp"}}]}`, head + `, "op": {"dim": 1}}]}`,
		head + `, "op": {"kind": "mlp", "widht": 2}}]}`, head + `, "op": {"kind": "norm", "style": "batch"}}]}`,
		head + `, "op": {"kind": "head", "dim": -1}}]}`, head + `, "params": [{"name": "w", "shape": [1], "dtype": "bf17"}]}]}`,
		head + `, "params": [{"name": "w", "shape": [-1], "dtype": "bf16"}]}]}`, head + `, "params": [{"name": "w", "shape": [1.5], "dtype": "bf16"}]}]}`,
		head + `, "stream": {"kind": "video"}}]}`, head + `, "declared": {"params_bytes": -1}}]}`, head + `, "repeat": -1}]}`,
		head + `, "declared": {"growth": {"params_bytes": {"token": 1}}}}]}`, head + `}], "max_seq": -1}`, head + `}], "taken": {"batch": -1}}`,
	} {
		if err := valid(t, schema, text); err == nil {
			t.Errorf("valid: %s", text)
		}
		if _, err := Read(strings.NewReader(text), "model.json"); err == nil {
			t.Errorf("read: %s", text)
		}
	}
}
