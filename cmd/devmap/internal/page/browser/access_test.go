package browser

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestAxe has axe-core look for faults that keep people out, in light and dark.
// AXE is the path of axe.min.js.
func TestAxe(t *testing.T) {
	name := os.Getenv("AXE")
	if name == "" {
		t.Skip("AXE names no axe.min.js: make browser fetches it")
	}
	rules, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{trained, plans["device map, devmap"], plans["diffusion, several GPUs"], plans["device map, does not fit"]} {
		file := report(t, strings.Fields(arguments)...)
		for _, scheme := range []string{"light", "dark"} {
			page := open(t, file)
			page.looks(scheme)
			page.renderAll()
			checkSums(t, page)
			page.script(`document.querySelectorAll('details').forEach((node) => { node.open = true; })`)
			page.script(`document.querySelectorAll('tbody').forEach((body) => [...body.children].slice(3).forEach((row) => row.remove()))`)
			page.axe(string(rules), scheme)
		}
	}
}

func (page *view) axe(rules, scheme string) {
	page.t.Helper()
	type fault struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	page.script(rules)
	answer := value[string](page, `axe.run(document).then((result) => JSON.stringify(result.violations))`)
	var faults []fault
	if err := json.Unmarshal([]byte(answer), &faults); err != nil {
		page.t.Fatal(err)
	}
	for _, fault := range faults {
		page.t.Errorf("%s: %s (%s): %s, %d times, first: %s: %s", scheme, fault.ID, fault.Impact, fault.Help, len(fault.Nodes), fault.Nodes[0].HTML, fault.Nodes[0].FailureSummary)
	}
}
