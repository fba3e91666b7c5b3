package hf

import "testing"

// TestMeantType: a type with a slip has the type that was meant, and one that is far from all has
// none.
func TestMeantType(t *testing.T) {
	for modelType, want := range map[string]string{"lama": ` (did you mean "llama"?)`, "mistrall": ` (did you mean "mistral"?)`, "novel": "", "x": "", "": ""} {
		if got := meantType(modelType); got != want {
			t.Errorf("%q: %q, want %q", modelType, got, want)
		}
	}
}
