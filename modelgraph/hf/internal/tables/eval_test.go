package tables

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// TestPartsOfLists: numbers of a list whose parts have lengths.
func TestPartsOfLists(t *testing.T) {
	for text, want := range map[string]any{
		`["stage",["list",2,0,3],1]`:   0.0,
		`["stage",["list",2,0,3],2]`:   2.0,
		`["stage",["list",2,-4,3],4]`:  2.0,
		`["stage",["list",2,0,3],5]`:   nil, // beyond the last part
		`["stage",["list",2,3],-1]`:    nil,
		`["stage",["list",2,"'x"],2]`:  nil,
		`["stage",7,0]`:                nil,
		`["within",["list",2,0,3],1]`:  1.0,
		`["within",["list",2,0,3],4]`:  2.0,
		`["within",["list",2,-4,3],2]`: 0.0,
		`["within",["list",2,3],5]`:    nil,
	} {
		var e any
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		of := &evaluation{}
		if got := of.eval(e, nil); got != want || (of.err == nil) != (want != nil) {
			t.Errorf("%s is %v, error %v, want %v", text, got, of.err, want)
		}
	}
}

// TestOfStages: stages of a backbone, and those that it gives, by what a file says of them.
func TestOfStages(t *testing.T) {
	for text, want := range map[string]string{
		`["stages",2,1]`:                       `["stem","stage1","stage2"]`,
		`["stages",2,0]`:                       `["stage1","stage2"]`,
		`["stages","'x",1]`:                    "",
		`["stages",1e9,1]`:                     "",
		`["stages",null,1]`:                    "",
		`["outputs",["stages",3,1],null,null]`: `[3]`,
		`["outputs",["stages",3,1],["list","'stage2"],null]`: `[2]`,
		`["outputs",["stages",3,0],["list","'stage2"],null]`: `[1]`,
		`["outputs",["stages",3,1],null,["list",1,-1]]`:      `[1,-1]`,
		`["outputs",["stages",3,1],["list","'stage4"],null]`: "", // there is none
		`["outputs",["stages",3,1],["list",2],null]`:         "",
		`["outputs",["stages",3,1],"'stage2",null]`:          "",
		`["outputs",["stages",3,1],null,2]`:                  "",
		`["outputs",["stages",0,0],null,null]`:               "",
		`["outputs",7,null,null]`:                            "",
		`["outnames",["stages",3,1],null,null]`:              `["stage3"]`,
		`["outnames",["stages",3,1],null,["list",0,-1]]`:     `["stem","stage3"]`,
		`["outnames",["stages",3,1],["list","'stem"],null]`:  `["stem"]`,
		`["outnames",["stages",3,1],null,["list",4]]`:        "",
		`["outnames",["stages",3,1],null,["list",-5]]`:       "",
		`["outnames",["stages",3,1],null,["list",1.5]]`:      "",
		`["outnames",["stages",3,1],null,["list","'stem"]]`:  "",
	} {
		var e any
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		of := &evaluation{}
		if got := of.eval(e, nil); (of.err == nil) != (want != "") || of.err == nil && InJSON(got) != want {
			t.Errorf("%s is %v, error %v, want %s", text, got, of.err, want)
		}
	}
}

// TestLabels: another name of num_labels counts first, as TimmWrapperConfig.from_dict has it.
func TestLabels(t *testing.T) {
	timm, plain := &ConfigClass{Alias: map[string]string{"num_classes": "num_labels"}}, &ConfigClass{Labels: 3}
	for _, c := range []struct {
		class *ConfigClass
		said  map[string]any
		want  float64
	}{
		{timm, map[string]any{"num_classes": 7.0, "num_labels": 4.0, "id2label": map[string]any{"0": "a"}}, 7},
		{timm, map[string]any{"num_labels": 4.0}, 4},
		{plain, map[string]any{"num_classes": 7.0}, 3},
	} {
		if got := labels(c.class, c.said); got != c.want {
			t.Errorf("%v: %v labels, want %v", c.said, got, c.want)
		}
	}
	inside := constructed(timm, map[string]any{"num_classes": 7.0, "num_labels": 4.0, "label_names": []any{"a"}})
	if diff := cmp.Diff(map[string]any{"num_labels": 4.0}, inside); diff != "" {
		t.Errorf("fields of a config inside another one (-want +got):\n%s", diff)
	}
}

// TestPlainActivations: a field may have any activation without tensors, if builds had two of them.
func TestPlainActivations(t *testing.T) {
	some := &Class{Texts: [][]any{{false, "hidden_act", []any{"gelu", "silu"}}, {false, "kind", []any{"gelu", "odd"}}}}
	for _, c := range []struct {
		field, value string
		want         bool
	}{{"hidden_act", "relu", true}, {"hidden_act", "odd", false}, {"kind", "gelu", true}, {"kind", "relu", false}} {
		if got := allTexts(c.value, some.texts(false, c.field)); got != c.want {
			t.Errorf("%s %q: known %v, want %v", c.field, c.value, got, c.want)
		}
	}
}

// TestTakesList: a class takes lists of a field if a rule asks for one.
func TestTakesList(t *testing.T) {
	asks := &Class{Rules: map[string]any{"width": []any{"?", []any{"many", "$image_size"}, 1.0, 2.0}}}
	if !asks.takesList("image_size") || asks.takesList("num_channels") {
		t.Error("want a class that takes lists of image_size alone")
	}
}
