package safetensors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bytesOf is a file of one-byte tensors.
func bytesOf(names ...string) string {
	var entries []string
	for i, n := range names {
		entries = append(entries, fmt.Sprintf(`%q:{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}`, n, i, i+1))
	}
	return file("{"+strings.Join(entries, ",")+"}", len(names))
}

const index2 = `{"metadata":{"total_size":3},"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors","c":"model-2.safetensors"}}`

// folders maps the content of a folder to the tensors and warnings, or to the
// error, that it gives. A tensor is FILE:NAME.
var folders = map[string]struct {
	files   map[string]string
	tensors string
	warning string
	err     string
}{
	"single": {
		files:   map[string]string{"model.safetensors": bytesOf("a", "b")},
		tensors: "model.safetensors:a model.safetensors:b",
	},
	"shards": {
		files:   map[string]string{"model.safetensors.index.json": index2, "model-2.safetensors": bytesOf("b", "c"), "model-1.safetensors": bytesOf("a")},
		tensors: "model-1.safetensors:a model-2.safetensors:b model-2.safetensors:c",
	},
	"shards in a folder": {
		files:   map[string]string{"model.safetensors.index.json": weightMap("sub/x.safetensors"), "sub/x.safetensors": bytesOf("t")},
		tensors: "sub/x.safetensors:t",
	},
	"index and single": {
		files:   map[string]string{"model.safetensors.index.json": weightMap("s.safetensors"), "s.safetensors": bytesOf("t"), "model.safetensors": bytesOf("u")},
		tensors: "model.safetensors:u",
		warning: `model.safetensors: 1 other .safetensors files of the folder are ignored: "s.safetensors"`,
	},
	"diffusers": {
		files:   map[string]string{"diffusion_pytorch_model.safetensors": bytesOf("a"), "diffusion_pytorch_model.fp16.safetensors": bytesOf("a")},
		tensors: "diffusion_pytorch_model.safetensors:a",
		warning: "diffusion_pytorch_model.fp16.safetensors",
	},
	"diffusers variant index": {
		files:   map[string]string{"m.safetensors.index.fp16.json": weightMap("x.safetensors"), "x.safetensors": bytesOf("t")},
		tensors: "x.safetensors:t",
	},
	"one other name": {
		files:   map[string]string{"adapter_model.safetensors": bytesOf("a"), "config.json": "{}"},
		tensors: "adapter_model.safetensors:a",
	},
	"consolidated beside shards": {
		files:   map[string]string{"model.safetensors.index.json": index2, "model-1.safetensors": bytesOf("a"), "model-2.safetensors": bytesOf("b", "c"), "consolidated.safetensors": "junk"},
		tensors: "model-1.safetensors:a model-2.safetensors:b model-2.safetensors:c",
	},
	"consolidated alone": {
		files:   map[string]string{"consolidated.safetensors": bytesOf("a")},
		tensors: "consolidated.safetensors:a",
	},
	"several": {
		files: map[string]string{"a.safetensors": bytesOf("a"), "b.safetensors": bytesOf("b")},
		err:   `2 *.safetensors files and nothing that says which to read ("a.safetensors", "b.safetensors"): keep one, or add the model.safetensors.index.json`,
	},
	"several indexes": {
		files: map[string]string{"a.safetensors.index.json": "{}", "b.safetensors.index.json": "{}"},
		err:   "2 *.safetensors.index.json files",
	},
	"none": {
		files: map[string]string{"pytorch_model.bin": ""},
		err:   "no .safetensors file in the folder",
	},
	"tensor in two shards": {
		files: map[string]string{"model.safetensors.index.json": index2, "model-1.safetensors": bytesOf("a", "b"), "model-2.safetensors": bytesOf("b", "c")},
		err:   `model-2.safetensors: tensor "b": also in model-1.safetensors`,
	},
	"listed but absent": {
		files: map[string]string{"model.safetensors.index.json": index2, "model-1.safetensors": bytesOf("a"), "model-2.safetensors": bytesOf("b")},
		err:   `model.safetensors.index.json: weight_map "c": not in model-2.safetensors`,
	},
	"listed in the wrong shard": {
		files: map[string]string{"model.safetensors.index.json": index2, "model-1.safetensors": bytesOf("a", "c"), "model-2.safetensors": bytesOf("b")},
		err:   `weight_map "c": not in model-2.safetensors, but in model-1.safetensors`,
	},
	"present but not listed": {
		files:   map[string]string{"model.safetensors.index.json": index2, "model-1.safetensors": bytesOf("a", "z"), "model-2.safetensors": bytesOf("b", "c")},
		tensors: "model-1.safetensors:a model-2.safetensors:b model-2.safetensors:c",
		warning: `model.safetensors.index.json: 1 tensors of the shards are not listed and are ignored: "z"`,
	},
	"shard not listed": {
		files:   map[string]string{"model.safetensors.index.json": index2, "model-1.safetensors": bytesOf("a"), "model-2.safetensors": bytesOf("b", "c"), "model-3.safetensors": bytesOf("d")},
		tensors: "model-1.safetensors:a model-2.safetensors:b model-2.safetensors:c",
		warning: `1 other .safetensors files of the folder are ignored: "model-3.safetensors"`,
	},
	"shards missing": {
		files: map[string]string{"model.safetensors.index.json": index2},
		err:   "model-1.safetensors: opening in DIR: no such file or directory (named by model.safetensors.index.json)\nmodel-2.safetensors: opening in DIR: no such file",
	},
	"total_size lies": {
		files:   map[string]string{"model.safetensors.index.json": strings.Replace(index2, "3", "9223372036854775807", 1), "model-1.safetensors": bytesOf("a"), "model-2.safetensors": bytesOf("b", "c")},
		tensors: "model-1.safetensors:a model-2.safetensors:b model-2.safetensors:c",
		warning: "metadata.total_size is 9223372036854775807, the tensors take 3 bytes: not used",
	},
	"bad shards": {
		files: map[string]string{"model.safetensors.index.json": index2, "model-1.safetensors": "x", "model-2.safetensors": file("[]", 0)},
		err:   "model-1.safetensors: byte 0: file of 1 bytes is too short for the 8-byte header length\nmodel-2.safetensors: byte 8: found [, want {",
	},
	"shard is a folder": {
		files: map[string]string{"model.safetensors.index.json": weightMap("sub"), "sub/x": ""},
		err:   "sub: a directory: want a regular file",
	},
	"file is a folder": {
		files: map[string]string{"model.safetensors/x": ""},
		err:   "model.safetensors: a directory: want a regular file",
	},
	"index leaves the folder": {
		files: map[string]string{"model.safetensors.index.json": weightMap("../x.safetensors")},
		err:   `model.safetensors.index.json: weight_map "t": file "../x.safetensors": not a plain relative path`,
	},
}

func TestReadFolder(t *testing.T) {
	for name, c := range folders {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range c.files {
				write(t, filepath.Join(dir, filepath.FromSlash(name)), content)
			}
			got, err := readFolder(dir)
			if c.err != "" {
				if want := strings.ReplaceAll(c.err, "DIR", dir); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error is\n%v\nwant\n%s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var tensors []string
			for _, x := range got.Tensors {
				tensors = append(tensors, got.Files[x.File]+":"+x.Name)
			}
			if s := strings.Join(tensors, " "); s != c.tensors {
				t.Errorf("tensors are\n%s\nwant\n%s", s, c.tensors)
			}
			w := strings.Join(got.Warnings, "\n")
			if (w == "") != (c.warning == "") || !strings.Contains(w, c.warning) || len(got.Warnings) > 1 {
				t.Errorf("warnings are %q, want %q", w, c.warning)
			}
		})
	}
}

// A Hugging Face snapshot, in which the index and the shards are links.
func TestReadFolderSnapshot(t *testing.T) {
	repo := filepath.Join(t.TempDir(), "models--ORG--NAME")
	snap := filepath.Join(repo, "snapshots", "abc123")
	for name, content := range map[string]string{
		"model.safetensors.index.json": index2, "model-1.safetensors": bytesOf("a"), "model-2.safetensors": bytesOf("b", "c"),
	} {
		write(t, filepath.Join(repo, "blobs", "sha-"+name), content)
		link(t, "../../blobs/sha-"+name, filepath.Join(snap, name))
	}
	c, err := readFolder(snap)
	if err != nil || len(c.Tensors) != 3 || len(c.Warnings) != 0 {
		t.Errorf("snapshot gives %+v, %v", c, err)
	}
	out := filepath.Join(t.TempDir(), "model-1.safetensors")
	write(t, out, bytesOf("a"))
	if err := os.Remove(filepath.Join(snap, "model-1.safetensors")); err != nil {
		t.Fatal(err)
	}
	link(t, out, filepath.Join(snap, "model-1.safetensors"))
	if _, err := readFolder(snap); err == nil || !strings.Contains(err.Error(), "model-1.safetensors: link to ") {
		t.Errorf("a shard that links out gives %v", err)
	}
}

// The order of the errors must not depend on which reader is first.
func TestReadFolderManyErrors(t *testing.T) {
	dir := t.TempDir()
	sparseFolder(t, dir, 40, 2, 1)
	for i := range 40 {
		write(t, filepath.Join(dir, fmt.Sprintf("model-%05d-of-00040.safetensors", i+1)), "x")
	}
	_, first := readFolder(dir)
	if first == nil || !strings.HasSuffix(first.Error(), "\nand 30 more errors") || !strings.HasPrefix(first.Error(), "model-00001-of-00040") {
		t.Fatalf("error is %v", first)
	}
	for range 20 {
		if _, err := readFolder(dir); err.Error() != first.Error() {
			t.Fatalf("errors differ:\n%v\n%v", err, first)
		}
	}
}

// The sum of tensors is bounded although every file is within its limit.
func TestReadFolderManyLinks(t *testing.T) {
	if testing.Short() {
		t.Skip("reads hundreds of thousands of entries")
	}
	dir := t.TempDir()
	h, _ := header("m", 100_000, 0)
	write(t, filepath.Join(dir, "big"), file(h, 0))
	var entries []string
	for i := range 100 {
		name := fmt.Sprintf("link%d.safetensors", i)
		link(t, "big", filepath.Join(dir, name))
		entries = append(entries, fmt.Sprintf(`"t%d":%q`, i, name))
	}
	write(t, filepath.Join(dir, "model.safetensors.index.json"), `{"weight_map":{`+strings.Join(entries, ",")+`}}`)
	if _, err := readFolder(dir); err == nil || !strings.Contains(err.Error(), "more than 250000 tensors in all files") {
		t.Errorf("error is %v", err)
	}
}
