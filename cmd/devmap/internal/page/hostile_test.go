package page

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// hostile are names that are markup, scripts, quotes, or text that turns or ends lines.
var hostile = []string{
	`</script><script>alert(1)</script>`, `<!--<script>`, `"><img src=x onerror=alert(1)>`, `'";--`, "a\u202eb\u2066c", "line\u2028separator\u2029",
	"\x00\x1b[31m", "\xff\xfe", `{{script}}`, `DEVMAP_DATA /*DEVMAP_JS*/ /*DEVMAP_CSS*/ DEVMAP_POLICY`, `&lt;b&gt;`, `\u003c/script>`,
}

// FuzzHostile: any text is text on the page. It comes back as one line without control characters, and the
// page has the markup of a page without it.
func FuzzHostile(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	benign := written(f, "benign")
	f.Fuzz(func(t *testing.T, text string) {
		html := written(t, text)
		for _, mark := range []string{"<", ">", "DEVMAP_POLICY", "/*DEVMAP_CSS*/"} {
			if got, want := strings.Count(html, mark), strings.Count(benign, mark); mark[0] != 'D' && mark[0] != '/' && got != want {
				t.Fatalf("%q: %d of %q, and a page without has %d", text, got, mark, want)
			}
		}
		_, data, _ := strings.Cut(html, `id="devmap-data">`)
		data, _, _ = strings.Cut(data, "</script>")
		if strings.ContainsAny(data, "<>&\u2028\u2029\u202e\u2066\x00\x1b") {
			t.Fatalf("%q: the data has a character that is no plain text", text)
		}
		var page Page
		if err := json.Unmarshal([]byte(data), &page); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := out.OneLine(text)
		if page.Title != want || page.Names[0] != want || page.Facts[0].Value != want || page.Why.Warnings[0] != want {
			t.Fatalf("%q became %q, not %q", text, page.Names[0], want)
		}
	})
}

// written is a page with a text in many places.
func written(tb testing.TB, text string) string {
	tb.Helper()
	page := &Page{
		FormatVersion: version, Title: text, Answer: answer{Sentence: text, Proof: text}, Facts: []fact{{text, text, true}}, Categories: categories,
		GPUs: []gpu{{Name: text, PeakAt: text}}, Why: &reasons{Limit: text, Changes: []Change{{Text: text, Command: text}}, Warnings: []string{text}},
	}
	page.name(text)
	var html strings.Builder
	if err := page.Write(&html); err != nil {
		tb.Fatal(err)
	}
	return html.String()
}

// TestPolicy: the page allows its own script and style by their hashes, and no request.
func TestPolicy(t *testing.T) {
	html := written(t, "x")
	for _, part := range [][2]string{{"<style>", "</style>"}, {"<script>", "</script>"}} {
		_, text, _ := strings.Cut(html, part[0])
		text, _, found := strings.Cut(text, part[1])
		if !found || !strings.Contains(html, hash(text)) {
			t.Errorf("the policy lacks the hash of what %s has", part[0])
		}
	}
	if !strings.Contains(html, "default-src 'none'") || strings.Contains(html, "unsafe-inline") || strings.Contains(html, "<link") || strings.Contains(html, " src=") {
		t.Error("the page may load something")
	}
	if strings.Contains(html, "DEVMAP_") {
		t.Error("a mark was not replaced")
	}
}
