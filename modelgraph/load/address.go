package load

import (
	"fmt"
	"slices"
	"strings"
)

// hubs are the hosts whose pages of models are known: how the address of a model
// goes on, and the command that fetches a file of it.
var hubs = map[string]struct{ prefix, fetch string }{
	"huggingface.co": {"", fetchHuggingFace}, "hf.co": {"", fetchHuggingFace}, "hf-mirror.com": {"", fetchHuggingFace},
	"modelscope.cn": {"models/", fetchModelScope}, "modelscope.ai": {"models/", fetchModelScope},
}

const (
	fetchHuggingFace = "hf download %s config.json"
	fetchModelScope  = "modelscope download --model %s config.json"
)

// address is the name of the model whose page on a hub a text is the address of,
// with or without https://, whatever follows the name (/tree/main); ok is false
// for other texts.
func address(text string) (name, fetch string, ok bool) {
	rest, scheme := text, false
	for _, prefix := range []string{"https://", "http://"} {
		if after, found := cutPrefixFold(rest, prefix); found {
			rest, scheme = after, true
		}
	}
	host, page, _ := strings.Cut(rest, "/")
	host = strings.TrimPrefix(strings.ToLower(host), "www.")
	hub, known := hubs[host]
	if !known {
		return "", fetchHuggingFace, scheme
	}
	page, found := strings.CutPrefix(page, hub.prefix)
	if end := strings.IndexAny(page, "?#"); end >= 0 {
		page = page[:end]
	}
	parts := strings.Split(strings.Trim(page, "/"), "/")
	pages := []string{"tree", "blob", "resolve", "raw", "commits", "discussions"}
	switch others := []string{"datasets", "spaces", "collections", "papers", "docs", "blog", "models", "api"}; {
	case !found || slices.Contains(others, parts[0]):
		return "", hub.fetch, true
	case len(parts) > 1 && !slices.Contains(pages, parts[1]):
		name = parts[0] + "/" + parts[1]
	default:
		name = parts[0]
	}
	if !isName(name) {
		name = ""
	}
	return name, hub.fetch, true
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}

// nameOf is the name that a text which is no path means, and the command that
// fetches its config.
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
