package watch

import (
	"slices"
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	gpus := []GPU{{UUID: "GPU-aa11"}, {UUID: "GPU-aa22"}, {UUID: "GPU-bb33"}, {UUID: "GPU-cc44"}}
	for list, want := range map[string][]int{
		"0,1": {0, 1}, "3, 1 ,0": {3, 1, 0}, "2": {2}, "+1": {1},
		"":                     nil,
		"-1":                   nil,
		"-1,0":                 nil,
		"0,-1,2":               {0}, // what stands behind is not visible
		"0,9,2":                {0},
		"1,1":                  nil, // twice
		"2,0,2":                nil,
		"1gpu2,0x":             {1, 0}, // as strtoul reads
		"99999999999999999999": nil,
		"GPU-bb33,GPU-aa11":    {2, 0},
		"GPU-b,GPU-c":          {2, 3},
		"GPU-bb,GPU-aa,GPU-cc": {2}, // two begin with it
		"GPU-bb,GPU-b":         nil, // twice
		"GPU-bb,1":             {2},
		"GPU-zz":               nil,
		"aa11":                 nil,
	} {
		if got, err := Visible(list, true, gpus); !slices.Equal(got, want) || err != nil {
			t.Errorf("%q: %v, %v; want %v", list, got, err, want)
		}
	}
	if got, err := Visible("", false, gpus); !slices.Equal(got, []int{0, 1, 2, 3}) || err != nil {
		t.Errorf("not set: %v, %v", got, err)
	}
	if _, err := Visible("MIG-4f2", true, gpus); err == nil || !strings.Contains(err.Error(), "in MIG mode") {
		t.Errorf("%v", err)
	}
}

// FuzzVisible: any list is refused, or is GPUs that there are, each once.
func FuzzVisible(f *testing.F) {
	for _, list := range []string{"0,1", "GPU-aa,GPU-bb", "MIG-1", "1,1", "9999999999999999999999,0", "GPU-"} {
		f.Add(list)
	}
	gpus := []GPU{{UUID: "GPU-aa11"}, {UUID: "GPU-aa22"}, {UUID: "GPU-bb33"}}
	f.Fuzz(func(t *testing.T, list string) {
		got, err := Visible(list, true, gpus)
		if err != nil && got != nil {
			t.Errorf("%q: %v and %v", list, got, err)
		}
		for i, at := range got {
			if at < 0 || at >= len(gpus) || slices.Contains(got[:i], at) {
				t.Errorf("%q: %v", list, got)
			}
		}
	})
}
