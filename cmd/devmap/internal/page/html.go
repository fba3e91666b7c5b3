package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

//go:embed ui/page.html ui/*.css ui/*.js
var ui embed.FS

// Write writes the page as one HTML file. It needs no other file and no network, which its
// Content-Security-Policy forbids.
func (page *Page) Write(to io.Writer) error {
	data, err := page.json()
	if err != nil {
		return err
	}
	style, err := joined("ui/*.css")
	if err != nil {
		return err
	}
	script, err := joined("ui/*.js")
	if err != nil {
		return err
	}
	frame, err := ui.ReadFile("ui/page.html")
	if err != nil {
		return err
	}
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'", hash(script), hash(style))
	_, err = strings.NewReplacer("DEVMAP_POLICY", policy, "/*DEVMAP_CSS*/", style, "DEVMAP_DATA", data, "/*DEVMAP_JS*/", script).WriteString(to, string(frame))
	return err
}

// hash names a script or a style in a Content-Security-Policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// joined returns the files of a pattern in the order of their names.
func joined(pattern string) (string, error) {
	names, err := fs.Glob(ui, pattern)
	if err != nil {
		return "", err
	}
	texts := make([]string, len(names))
	for i, name := range names {
		text, err := ui.ReadFile(name)
		if err != nil {
			return "", err
		}
		texts[i] = string(text)
	}
	return strings.Join(texts, "\n"), nil
}

// WriteJSON writes the data alone.
func (page *Page) WriteJSON(to io.Writer) error {
	data, err := page.json()
	if err != nil {
		return err
	}
	_, err = io.WriteString(to, data+"\n")
	return err
}

// json returns the data in a form that cannot end its element of the page. Each text is one line
// without control characters: names come from models and files.
func (page *Page) json() (string, error) {
	var text strings.Builder
	safe := json.WithMarshalers(json.MarshalToFunc(func(to *jsontext.Encoder, value string) error {
		return to.WriteToken(jsontext.String(out.OneLine(value)))
	}))
	err := json.MarshalWrite(&text, page, safe, json.Deterministic(true), json.FormatNilSliceAsNull(false), jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true))
	return text.String(), err
}
