package hf

import "testing"

// TestMeantType: a misspelt type gets a suggestion; a type far from all others gets none.
func TestMeantType(t *testing.T) {
	for modelType, want := range map[string]string{"lama": ` (did you mean "llama"?)`, "mistrall": ` (did you mean "mistral"?)`, "novel": "", "x": "", "": ""} {
		if got := meantType(modelType); got != want {
			t.Errorf("%q: %q, want %q", modelType, got, want)
		}
	}
}
