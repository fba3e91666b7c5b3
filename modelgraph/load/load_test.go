package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/devmap-dev/devmap/modelgraph/hf"
)

const (
	llama = `{"model_type":"llama","hidden_size":8,"intermediate_size":16,"num_hidden_layers":1,"num_attention_heads":2,"vocab_size":32,"rope_theta":Infinity}`
	toy   = `{"format_version":"devmap.model/v1","name":"toy","layers":[{"name":"a","params":[{"name":"w","shape":[4],"dtype":"bf16"}]}]}`
)

// net is a safetensors file of one tensor.
func net() string {
	header := `{"a.w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + "12345678"
}

func write(tb testing.TB, path, data string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// paths are files by what they hold, the argument, and the name and parameter
// count of the graph or the error.
var paths = map[string]struct {
	files  map[string]string
	arg    string
	name   string
	params int64
	err    string
}{
	"config":            {files: map[string]string{"net/config.json": llama}, arg: "net/config.json", name: "net", params: 1176},
	"config by name":    {files: map[string]string{"tiny.json": llama}, arg: "tiny.json", name: "tiny", params: 1176},
	"config only":       {files: map[string]string{"net/config.json": llama}, arg: "net", name: "net", params: 1176},
	"trailing slash":    {files: map[string]string{"net/config.json": llama}, arg: "net/", name: "net", params: 1176},
	"dots":              {files: map[string]string{"net/config.json": llama}, arg: "net/../net/.", name: "net", params: 1176},
	"model.json":        {files: map[string]string{"m.json": toy}, arg: "m.json", name: "toy", params: 4},
	"no ending":         {files: map[string]string{"m": toy}, arg: "./m", name: "toy", params: 4},
	"folder of ours":    {files: map[string]string{"net/model.json": toy}, arg: "net", name: "toy", params: 4},
	"both":              {files: map[string]string{"net/model.json": toy, "net/config.json": llama}, arg: "net", name: "net", params: 1176},
	"safetensors":       {files: map[string]string{"w.safetensors": net()}, arg: "w.safetensors", name: "w", params: 2},
	"folder of tensors": {files: map[string]string{"net/model.safetensors": net()}, arg: "net", name: "net", params: 2},
	"index": {
		files: map[string]string{"net/model.safetensors.index.json": `{"metadata":{},"weight_map":{"a.w":"x.safetensors"}}`, "net/x.safetensors": net()},
		arg:   "net/model.safetensors.index.json", name: "net", params: 2,
	},
	"bin beside":     {files: map[string]string{"net/config.json": llama, "net/pytorch_model.bin": "x"}, arg: "net", name: "net", params: 1176},
	"bin alone":      {files: map[string]string{"net/pytorch_model.bin": "x"}, arg: "net", err: `"pytorch_model.bin" is not read on its own`},
	"missing":        {arg: "net/config.json", err: "no such file or folder"},
	"empty":          {arg: "", err: "the model's path is empty"},
	"plan":           {files: map[string]string{"p.json": `{"format_version":"devmap.plan/v1","model":{}}`}, arg: "p.json", err: `"devmap.plan/v1" is not a model`},
	"newer":          {files: map[string]string{"p.json": `{"format_version":"devmap.model/v9","name":"x","layers":[]}`}, arg: "p.json", err: `"devmap.model/v9" is not "devmap.model/v1"`},
	"no version":     {files: map[string]string{"p.json": `{"name":"x","layers":[]}`}, arg: "p.json", err: "format_version"},
	"adapter":        {files: map[string]string{"a.json": `{"peft_type":"LORA"}`}, arg: "a.json", err: "PEFT adapter, not of a model; give the base model and lora_rank"},
	"list":           {files: map[string]string{"a.json": `[1]`}, arg: "a.json", err: "not a JSON object"},
	"cut":            {files: map[string]string{"a.json": `{"model_type":`}, arg: "a.json", err: "a.json"},
	"gguf":           {files: map[string]string{"a.gguf": ggufFile}, arg: "a.gguf", name: "a", params: 3},
	"gguf inside":    {files: map[string]string{"d/a.gguf": ggufFile, "d/mmproj-a.gguf": ggufFile}, arg: "d", name: "a", params: 3},
	"gguf by bytes":  {files: map[string]string{"blob": ggufFile}, arg: "./blob", name: "blob", params: 3},
	"two gguf":       {files: map[string]string{"d/a.gguf": ggufFile, "d/b.gguf": ggufFile}, arg: "d", err: `it has 2 GGUF models: give one of them: ["a.gguf" "b.gguf"]`},
	"no gguf":        {files: map[string]string{"a.gguf": "hello"}, arg: "a.gguf", err: `a.gguf: not a GGUF file: it begins with "hell"`},
	"LFS gguf":       {files: map[string]string{"a.gguf": "version https://git-lfs.github.com/spec/v1\n"}, arg: "a.gguf", err: "git lfs pull"},
	"onnx":           {files: map[string]string{"a.onnx": ""}, arg: "a.onnx", err: "it has no graph"},
	"pickle":         {files: map[string]string{"a.pt": ""}, arg: "a.pt", err: "reading PyTorch weights (pickle) is not built yet"},
	"LFS pointer":    {files: map[string]string{"a.safetensors": "version https://git-lfs.github.com/spec/v1\n"}, arg: "a.safetensors", err: "git lfs pull"},
	"BOM":            {files: map[string]string{"d/config.json": "\xef\xbb\xbf" + llama}, arg: "d", err: "byte order mark"},
	"UTF-16":         {files: map[string]string{"config.json": "\xff\xfe{\x00"}, arg: "config.json", err: "config.json: UTF-16 text: save it as UTF-8"},
	"gzip":           {files: map[string]string{"config.json": "\x1f\x8b\x08"}, arg: "config.json", err: "gunzip it first"},
	"HTML":           {files: map[string]string{"config.json": "<!DOCTYPE html>"}, arg: "config.json", err: "an HTML page"},
	"HTML weights":   {files: map[string]string{"a.safetensors": "<!DOCTYPE html><p>"}, arg: "a.safetensors", err: "no safetensors file: an HTML page"},
	"HTML index":     {files: map[string]string{"d/model.safetensors.index.json": "<html>"}, arg: "d", err: "an HTML page"},
	"LFS config":     {files: map[string]string{"d/config.json": "version https://git-lfs.github.com/spec/v1\n"}, arg: "d", err: "git lfs pull"},
	"empty file":     {files: map[string]string{"a.json": ""}, arg: "a.json", err: "the file is empty"},
	"other text":     {files: map[string]string{"a.json": "hello there\nyou"}, arg: "a.json", err: `it begins with "hello there"`},
	"nothing there":  {files: map[string]string{"d/README": ""}, arg: "d", err: "no config.json and no .safetensors file"},
	"device":         {arg: "/dev/null", err: "a device"},
	"unknown name":   {arg: "org/none", err: "or fetch it: hf download org/none config.json"},
	"unknown ending": {arg: "none.gguf", err: "no such file or folder"},
}

// ggufFile is a GGUF file with a key and a tensor of three elements.
const ggufFile = "GGUF\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00" +
	"\x14\x00\x00\x00\x00\x00\x00\x00general.architecture\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00llama" +
	"\x09\x00\x00\x00\x00\x00\x00\x00blk.0.w.a\x01\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x18\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func TestModel(t *testing.T) {
	for name, c := range paths {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for file, data := range c.files {
				write(t, file, data)
			}
			g, err := Model(c.arg, Options{Env: func(string) string { return "" }})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("error %v, want one line with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if g.Name != c.name || g.ParamCount() != c.params || g.Source != c.arg {
				t.Errorf("%s from %s: %d parameters, want %s: %d", g.Name, g.Source, g.ParamCount(), c.name, c.params)
			}
		})
	}
}

func TestUnsupportedIsTyped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tflite")
	write(t, path, "TFL3")
	_, err := Model(path, Options{})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "TensorFlow Lite") {
		t.Errorf("%v is not unsupported", err)
	}
}

// TestCaches: if a name is looked up, in order.
func TestCaches(t *testing.T) {
	const hub = "models--Qwen--Qwen2.5-3B"
	for name, c := range map[string]struct {
		env   map[string]string // DIR is the test's folder
		files map[string]string // folder to vocabulary size
		vocab int64
	}{
		"HF_HUB_CACHE":    {map[string]string{"HF_HUB_CACHE": "DIR/c", "HF_HOME": "DIR/no"}, map[string]string{"c/" + hub + "/snapshots/r1": "10"}, 10},
		"HF_HOME":         {map[string]string{"HF_HOME": "DIR/h"}, map[string]string{"h/hub/" + hub + "/snapshots/r1": "11"}, 11},
		"XDG":             {map[string]string{"XDG_CACHE_HOME": "DIR/x"}, map[string]string{"x/huggingface/hub/" + hub + "/snapshots/r1": "12"}, 12},
		"home":            {map[string]string{"HOME": "DIR"}, map[string]string{".cache/huggingface/hub/" + hub + "/snapshots/r1": "13"}, 13},
		"tilde":           {map[string]string{"HOME": "DIR", "HF_HOME": "~/t"}, map[string]string{"t/hub/" + hub + "/snapshots/r1": "14"}, 14},
		"refs/main":       {map[string]string{"HF_HUB_CACHE": "DIR"}, map[string]string{hub + "/snapshots/r1": "15", hub + "/snapshots/r2": "16", hub + "/refs/main=r1\n": ""}, 15},
		"hostile ref":     {map[string]string{"HF_HUB_CACHE": "DIR"}, map[string]string{"away": "17", hub + "/snapshots/r2": "18", hub + "/refs/main=../../away": ""}, 18},
		"newest":          {map[string]string{"HF_HUB_CACHE": "DIR"}, map[string]string{hub + "/snapshots/r1": "19", hub + "/snapshots/r0": "20", hub + "/snapshots/r3=empty": ""}, 20},
		"ModelScope":      {map[string]string{"MODELSCOPE_CACHE": "DIR/m"}, map[string]string{"m/models/Qwen/Qwen2___5-3B": "21"}, 21},
		"ModelScope home": {map[string]string{"HOME": "DIR"}, map[string]string{".cache/modelscope/hub/Qwen/Qwen2___5-3B": "22"}, 22},
		"built in":        {map[string]string{"HOME": "DIR"}, nil, 99},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, vocab := range c.files {
				if file, data, ok := strings.Cut(path, "="); ok {
					if data == "empty" {
						file = filepath.Join(file, "README")
					}
					write(t, filepath.Join(dir, file), data)
					continue
				}
				write(t, filepath.Join(dir, path, "config.json"), strings.Replace(llama, "32", vocab, 1))
				if at := time.Now().Add(-time.Hour); strings.HasSuffix(path, "r1") {
					if err := os.Chtimes(filepath.Join(dir, path), at, at); err != nil {
						t.Fatal(err)
					}
				}
			}
			env := func(key string) string { return strings.Replace(c.env[key], "DIR", dir, 1) }
			in := fstest.MapFS{"Qwen/qwen2.5-3b.json": {Data: []byte(strings.Replace(llama, "32", "99", 1))}}
			g, err := Model("Qwen/Qwen2.5-3B", Options{Env: env, BuiltIn: in})
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Layers[0].Params[0].Shape[0]; got != c.vocab || !strings.EqualFold(g.Name, "Qwen2.5-3B") || g.Source != "Qwen/Qwen2.5-3B" {
				t.Errorf("%s from %s with vocabulary %d, want %d", g.Name, g.Source, got, c.vocab)
			}
		})
	}
}

func TestBuiltIn(t *testing.T) {
	none := func(string) string { return "" }
	fsys := fstest.MapFS{
		"llama-3.1-8b/config.json": {Data: []byte(llama)}, "gpt2.json": {Data: []byte(llama)}, "Qwen/Qwen3-8B/config.json": {Data: []byte(llama)},
		"toy.json": {Data: []byte(toy)}, "README.md": {},
		"pipe/model_index.json": {Data: []byte(`{"_class_name":"FluxPipeline"}`)}, "pipe/transformer/config.json": {Data: []byte("{}")},
		"hub.json": {Data: []byte(`{"llama-3.1-8b":["meta-llama/Llama-3.1-8B","meta-llama/Llama-3.1-8B-Instruct"]}`)},
	}
	if names := Names(fsys); !slices.Equal(names, []string{"Qwen/Qwen3-8B", "gpt2", "llama-3.1-8b", "pipe", "toy"}) {
		t.Errorf("built in are %q", names)
	}
	for arg, is := range map[string]struct {
		want  string
		noted bool // as a name that is not the config's own
	}{
		"Llama-3.1-8B": {"llama-3.1-8b", false}, "meta-llama/Llama-3.1-8B": {"llama-3.1-8b", true}, "META-LLAMA/llama-3.1-8b-instruct": {"llama-3.1-8b", true},
		"llama-3.1-8b-instruct": {"llama-3.1-8b", true}, "https://huggingface.co/meta-llama/Llama-3.1-8B/tree/main": {"llama-3.1-8b", true},
		"GPT2": {"gpt2", false}, "https://hf.co/gpt2": {"gpt2", false}, "qwen/qwen3-8b": {"Qwen3-8B", false}, "qwen3-8B": {"Qwen3-8B", false}, "toy": {"toy", false},
	} {
		g, err := Model(arg, Options{Env: none, BuiltIn: fsys})
		if err != nil || g.Name != is.want {
			t.Errorf("%s: %v, want %s", arg, err, is.want)
			continue
		}
		if noted := len(g.Warnings) > 0 && strings.Contains(g.Warnings[len(g.Warnings)-1], "the built-in config of "+is.want+" is used"); noted != is.noted || strings.Contains(g.Source, "://") {
			t.Errorf("%s: from %s, notes %q", arg, g.Source, g.Warnings)
		}
	}
	for arg, want := range map[string]string{
		"acme/llama-3.1-8b": "hf download acme/llama-3.1-8b config.json", "other/Qwen3-8B": "hf download other/Qwen3-8B config.json", "qwen3-9b": "hf download ORG/qwen3-9b config.json",
		"https://modelscope.cn/models/acme/x": "modelscope download --model acme/x config.json", "pipe": "pipe is a built-in diffusion pipeline: devmap plan pipe --gpus N plans it",
		"https://huggingface.co/datasets/a/b": `"https://huggingface.co/datasets/a/b" is not the address of a model (https://huggingface.co/ORG/NAME is one)`,
		"https://example.org/a/b":             `"https://example.org/a/b" is not the address of a model (https://huggingface.co/ORG/NAME is one)`,
	} {
		g, err := Model(arg, Options{Env: none, BuiltIn: fsys})
		if arg == "pipe" && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v is no unsupported form", arg, err)
		}
		if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v, want %s", arg, g, err, want)
		}
	}
	_, err := Model("other/Qwen3-8B", Options{Env: none, BuiltIn: fsys})
	var nf *notFoundError
	if !errors.As(err, &nf) || len(nf.Near) != 1 || nf.Near[0] != "Qwen/Qwen3-8B" {
		t.Errorf("%v: want a notFoundError with the nearest name, and no far ones", err)
	}
	if _, err := Model("a/b", Options{Env: none, BuiltIn: fstest.MapFS{"hub.json": {Data: []byte(`{"a":[`)}}}); err == nil || !strings.Contains(err.Error(), "the table of hub names") {
		t.Errorf("a broken table: %v", err)
	}
}

// TestAddress: the page of a model on a hub means its name.
func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"https://huggingface.co/Qwen/Qwen2.5-7B": "Qwen/Qwen2.5-7B", "https://huggingface.co/Qwen/Qwen2.5-7B/": "Qwen/Qwen2.5-7B",
		"https://huggingface.co/Qwen/Qwen2.5-7B/tree/main": "Qwen/Qwen2.5-7B", "https://huggingface.co/Qwen/Qwen2.5-7B/blob/main/config.json?x=1#L3": "Qwen/Qwen2.5-7B",
		"HTTP://WWW.HuggingFace.co/gpt2": "gpt2", "huggingface.co/gpt2/tree/main": "gpt2", "hf.co/Qwen/Qwen3-8B": "Qwen/Qwen3-8B",
		"https://modelscope.cn/models/Qwen/Qwen2.5-7B/files": "Qwen/Qwen2.5-7B", "https://www.modelscope.cn/models/Qwen/Qwen2.5-7B": "Qwen/Qwen2.5-7B",
		"https://modelscope.cn/Qwen/Qwen2.5-7B": "", "https://huggingface.co/": "", "https://huggingface.co/spaces/a/b": "", "https://huggingface.co/a/$(x)": "",
		"https://huggingface.co/../x": "", "https://huggingface.co/a\n/b": "", "https://evil.example/huggingface.co/a/b": "", "https://huggingface.co@evil.example/a/b": "", "file:///etc": "",
	} {
		if got, _, ok := address(text); !ok || got != want {
			t.Errorf("%q means %q, %v, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{"Qwen/Qwen2.5-7B", "gpt2", "", "./huggingface.co", "a/b/c"} {
		if got, _, ok := address(text); ok {
			t.Errorf("%q is the address of %q", text, got)
		}
	}
}

// FuzzAddress: whatever text is an address, its name is one that a shell and a path
// take as it is.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"https://huggingface.co/a/b", "hf.co/a", "https://modelscope.cn/models/a/b?c", "http://", "https://huggingface.co//", "hf.co/-x/y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, fetch, _ := address(text)
		if name != "" && !isName(name) || !strings.Contains(fetch, " %s ") {
			t.Errorf("%q means %q, fetched by %q", text, name, fetch)
		}
	})
}

// FuzzModel: no JSON makes the dispatch panic, and what it reads is a graph.
func FuzzModel(f *testing.F) {
	for _, s := range []string{llama, toy, `{"format_version":"devmap.plan/v1"}`, `{"weight_map":{"a":"b"}}`, `[`, `{"layers":[],"layers":1}`, `{"a":NaN,"model_type":"bert"}`} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := fromBytes(filepath.Join(dir, "m.index.json"), data, "")
		if (g == nil) == (err == nil) {
			t.Errorf("graph %v and error %v", g, err)
		}
		if err == nil && (len(g.Units) == 0 || g.ParamBytes() < 0) {
			t.Errorf("%d units of %d bytes", len(g.Units), g.ParamBytes())
		}
	})
}

func TestHostileFiles(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.json")
	write(t, big, "{")
	if err := os.Truncate(big, maxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Model(big, Options{}); err == nil || !strings.Contains(err.Error(), "is more than the 256 MiB") {
		t.Error(err)
	}
	net := filepath.Join(dir, "net")
	write(t, filepath.Join(dir, "away.json"), toy)
	if err := os.Mkdir(net, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{nativeName, hf.ConfigName} {
		if err := os.Symlink(filepath.Join(dir, "away.json"), filepath.Join(net, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := Model(net, Options{}); err == nil || !strings.Contains(err.Error(), "link to ") {
			t.Error(fmt.Errorf("%s: %w is no refusal", name, err))
		}
	}
}
