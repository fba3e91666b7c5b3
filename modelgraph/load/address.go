package load

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// hubs are the known hosts of models' pages. prefix comes before a model's name in its address, and
// fetch is the command that fetches a file of it.
var hubs = map[string]struct{ prefix, fetch string }{
	"huggingface.co": {"", fetchHuggingFace}, "hf.co": {"", fetchHuggingFace}, "hf-mirror.com": {"", fetchHuggingFace},
	"modelscope.cn": {"models/", fetchModelScope}, "modelscope.ai": {"models/", fetchModelScope},
}

const (
	fetchHuggingFace = "hf download %s config.json"
	fetchModelScope  = "modelscope download --model %s config.json"
)

// address returns the model's name in the address of its page on a hub. The address may lack
// https:// and have anything after the name (/tree/main). ok is false for other texts.
func address(text string) (name, fetch string, ok bool) {
	scheme := strings.Contains(text, "://")
	if !scheme {
		text = "https://" + text
	}
	page, err := url.Parse(text)
	if err != nil || page.Scheme != "https" && page.Scheme != "http" {
		return "", fetchHuggingFace, scheme
	}
	hub, known := hubs[strings.TrimPrefix(strings.ToLower(page.Host), "www.")]
	if !known {
		return "", fetchHuggingFace, scheme
	}
	rest, found := strings.CutPrefix(strings.Trim(page.Path, "/"), hub.prefix)
	parts := strings.Split(rest, "/")
	pages := []string{"tree", "blob", "resolve", "raw", "commits", "discussions"}
	others := []string{"datasets", "spaces", "collections", "papers", "docs", "blog", "models", "api"}
	if name = parts[0]; len(parts) > 1 && !slices.Contains(pages, parts[1]) {
		name += "/" + parts[1]
	}
	if !found || slices.Contains(others, parts[0]) || !isName(name) {
		return "", hub.fetch, true
	}
	return name, hub.fetch, true
}

// nameOf returns the model's name in a text that is not a path, and the command that fetches its
// config.
func nameOf(text string) (name, fetch string, err error) {
	name, fetch, is := address(text)
	switch {
	case is && name == "":
		return "", "", fmt.Errorf("%q is not the address of a model (https://huggingface.co/ORG/NAME is one)", text)
	case !is && !isName(text):
		return "", "", fmt.Errorf("%s: no such file or folder", text)
	case !is:
		name = text
	}
	return name, fetch, nil
}
