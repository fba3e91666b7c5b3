package ask

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBase: the flags that an adapter's config sets, and the reasons to refuse a config.
func TestBase(t *testing.T) {
	for name, is := range map[string]struct {
		config  string
		rank    string
		targets string
		err     string
	}{
		"list":       {`{"peft_type":"LORA","base_model_name_or_path":"gpt2","r":8,"target_modules":["c_proj","c_attn","c_proj"]}`, "8", "c_attn,c_proj", ""},
		"all-linear": {`{"peft_type":"LORA","base_model_name_or_path":"gpt2","r":8,"target_modules":"All-Linear"}`, "8", "all-linear", ""},
		"pattern":    {`{"peft_type":"LORA","base_model_name_or_path":"gpt2","r":8,"target_modules":".*"}`, "", "", "is a pattern"},
		"no targets": {`{"peft_type":"LORA","base_model_name_or_path":"gpt2","r":8,"target_modules":null}`, "", "", "it names no modules"},
		"no list":    {`{"peft_type":"LORA","base_model_name_or_path":"gpt2","r":8,"target_modules":[1]}`, "", "", "it is no list of names"},
		"hostile":    {`{"peft_type":"LORA","base_model_name_or_path":"gpt2","r":8,"target_modules":["a b\n$(x)"]}`, "", "", `"a b\n$(x)" is not the name of a module`},
		"comma":      {`{"peft_type":"LORA","base_model_name_or_path":"gpt2","r":8,"target_modules":["a,--gpus"]}`, "", "", "is not the name of a module"},
		"no rank":    {`{"peft_type":"LORA","base_model_name_or_path":"gpt2","target_modules":["c_attn"]}`, "", "", "r: 0 is not a rank"},
		"rank":       {`{"peft_type":"LORA","base_model_name_or_path":"gpt2","r":1e30,"target_modules":["c_attn"]}`, "", "", "not a config of PEFT"},
		"no base":    {`{"peft_type":"LORA","r":8,"target_modules":["c_attn"]}`, "", "", "it names no model"},
		"other":      {`{"peft_type":"PREFIX_TUNING","base_model_name_or_path":"gpt2"}`, "", "", "is not LORA"},
		"cut":        {`{"peft_type":`, "", "", "this is not JSON"},
		"list only":  {`[]`, "", "", "not a config of PEFT"},
		"hostile base": {
			`{"peft_type":"LORA","base_model_name_or_path":"a\n$(x)/b/c","r":8,"target_modules":["c_attn"]}`, "", "", "the adapter's base: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeFile(t, "a/"+adapterName, is.config)
			request := parsed(t, "plan")
			base, notes, err := Base(request, "a")
			if is.err != "" {
				if err == nil || !strings.Contains(ErrorText(err), is.err) {
					t.Fatalf("%v, want %s", err, is.err)
				}
				return
			}
			if err != nil || base != "gpt2" || len(notes) != 1 || !strings.Contains(notes[0], "--lora-rank "+is.rank+" --lora-targets "+is.targets) {
				t.Fatalf("%s, %q, %v", base, notes, err)
			}
			if request.work.LoRARank != 8 || !slices.Equal(request.work.LoRATargets, strings.Split(is.targets, ",")) {
				t.Errorf("rank %d of %q", request.work.LoRARank, request.work.LoRATargets)
			}
		})
	}
}

// TestNoAdapter: other arguments than an adapter's folder are not changed. A huge file or a device
// is not read.
func TestNoAdapter(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "model/config.json", "{}")
	writeFile(t, "model/"+adapterName, "{")
	for _, arg := range []string{"gpt2", "model", "none", "https://huggingface.co/gpt2", ""} {
		if base, notes, err := Base(parsed(t, "plan"), arg); base != arg || notes != nil || err != nil {
			t.Errorf("%q: %q, %q, %v", arg, base, notes, err)
		}
	}
	writeFile(t, "huge/"+adapterName, "{")
	if err := os.Truncate("huge/"+adapterName, 2<<20); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Base(parsed(t, "plan"), "huge"); err == nil || !strings.Contains(err.Error(), adapterName) {
		t.Errorf("a huge file: %v", err)
	}
	if err := os.Mkdir("device", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", "device/"+adapterName); err == nil {
		if _, _, err := Base(parsed(t, "plan"), "device"); err == nil {
			t.Error("a device was read")
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// FuzzAdapter: no text makes the reader panic. The texts it reads are words that flags accept
// unchanged.
func FuzzAdapter(f *testing.F) {
	for _, s := range []string{`{"peft_type":"LORA","base_model_name_or_path":"a","r":1,"target_modules":["q"]}`, `{"peft_type":"LORA","base_model_name_or_path":"a","r":1,"target_modules":"all-linear","layers_to_transform":[1]}`, `{"r":-1}`, `[`, `{"target_modules":{"a":1},"peft_type":"LORA","r":2,"base_model_name_or_path":"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read, targets, err := parseAdapter("a.json", data)
		if err != nil {
			return
		}
		if read.Base == "" || read.Rank < 1 || strings.ContainsAny(targets, " \n$`'\"") {
			t.Errorf("%+v, targets %q", read, targets)
		}
		read.uncounted()
	})
}
