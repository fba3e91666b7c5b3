package tables_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// TestReleases compares the tables with builds of their releases, for classes that differ between
// releases (fixtures/oracle/between.py).
func TestReleases(t *testing.T) {
	type released struct {
		Release string `json:"release"`
		typeSample
	}
	exact, refused := make(map[string]int), make(map[string]int)
	for _, sample := range fixtures.Must(fixtures.Rows[released]("../../../../fixtures/oracle/releases.jsonl.gz"))(t) {
		in := slices.IndexFunc(tables.Releases, func(r *tables.Release) bool { return r.Name == sample.Release })
		if in < 0 {
			t.Fatalf("there is no table of %s", sample.Release)
		}
		tree, err := readTypes(tables.Releases[in], sample.Config)
		if errors.As(err, new(*tables.Error)) {
			refused[sample.Release]++
			continue
		}
		if err != nil {
			t.Errorf("%s: %.150s: %v", sample.Release, sample.Config, err)
			continue
		}
		facts := typeFacts(tree)
		slices.Sort(facts["ties"])
		for name, want := range map[string]string{"tensors": sample.Tensors, "buffers": sample.Buffers, "ties": sample.Ties, "nosplit": sample.NoSplit} {
			if linesDigest(facts[name]) != want {
				t.Errorf("%s: wrong %s: %.200s", sample.Release, name, sample.Config)
			}
		}
		exact[sample.Release]++
	}
	t.Logf("exact %v, refused %v", exact, refused)
	for _, name := range []string{"5.17", "5.20", "5.23"} {
		if exact[name] < 3*refused[name] || exact[name] < 70 {
			t.Errorf("%s: %d exact, %d refused", name, exact[name], refused[name])
		}
	}
}

// TestChosenRelease reads configs by the release of the caller or the config.
func TestChosenRelease(t *testing.T) {
	const dinov3 = `{"model_type":"dinov3_vit","architectures":["DINOv3ViTModel"],"dtype":"bfloat16"`
	for _, c := range []struct{ config, asked, want string }{
		{dinov3 + `}`, "5.17", "from the table of Transformers 5.17:"},
		{dinov3 + `}`, "5.17.0", "from the table of Transformers 5.17:"},
		{dinov3 + `}`, "", "release 5.17 has other ties or modules that are not split"},
		{dinov3 + `,"transformers_version":"5.17.0"}`, "", "the answer is that of Transformers 5.17;"},
		{dinov3 + `,"transformers_version":"5.17.0"}`, tables.Newest.Name, "from the table of Transformers " + tables.Newest.Name},
		{dinov3 + `,"transformers_version":"4.57.1"}`, "", "from the table of Transformers " + tables.Newest.Name},
		{dinov3 + `,"transformers_version":"9.31.0"}`, "", `transformers_version: "9.31.0" is newer than the newest table`},
		{dinov3 + `}`, "5.3", `transformers: "5.3" is no release that has a table`},
		{dinov3 + `}`, "newest", `transformers: "newest" is no release that has a table`},
		{`{"model_type":"lfm3","architectures":["Lfm3Model"]}`, "5.17", `model_type: Transformers 5.17 has no type "lfm3"`},
		{`{"model_type":"lfm3","architectures":["Lfm3Model"],"transformers_version":"5.17.0"}`, "", "lack the type"},
		{`{"model_type":"brandnew","architectures":["BrandNewModel"],"transformers_version":"9.31.0"}`, "", `"9.31.0" is newer than all tables: update devmap`},
		{`{"model_type":"qwen2_vl","vision_config":{"depth":3,"num_hidden_layers":2}}`, "", "the answer is that of Transformers 5.24;"},
		{`{"model_type":"paligemma","vocab_size":160}`, "", "the vocab_size 257152, earlier ones 160"},
		{`{"model_type":"dinov2"}`, "", "the answer is that of Transformers 5.24;"},
	} {
		graph, err := hf.FromConfig(hf.ConfigName, []byte(c.config), c.asked)
		var said string
		if err != nil {
			said = err.Error()
		} else {
			said = strings.Join(graph.Warnings, "\n")
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s, asked %q: %s\nlacks %s", c.config, c.asked, said, c.want)
		}
		if c.asked != "" && strings.Contains(said, "--transformers selects one") {
			t.Errorf("%s, asked %q: %s", c.config, c.asked, said)
		}
	}
}

// TestReadersFollow compares hand-written readers by release with builds of both releases
// (held_out.real of fixtures/oracle).
func TestReadersFollow(t *testing.T) {
	const paligemma = `{"model_type":"paligemma","architectures":["PaliGemmaForConditionalGeneration"],"vocab_size":160}`
	const qwen = `{"model_type":"qwen2_vl","architectures":["Qwen2VLForConditionalGeneration"],"vision_config":{"depth":3,"num_hidden_layers":2}}`
	for _, c := range []struct {
		config, release string
		params          int64
	}{
		{paligemma, "5.17", 2384070912},
		{paligemma, "5.24", 2910390528},
		{qwen, "5.17", 72811316992},
		{qwen, "5.24", 72791639552},
	} {
		graph := fixtures.Must(hf.FromConfig(hf.ConfigName, []byte(c.config), c.release))(t)
		if graph.ParamCount() != c.params {
			t.Errorf("%s under %s: %d parameters, not %d", c.config, c.release, graph.ParamCount(), c.params)
		}
	}
}
