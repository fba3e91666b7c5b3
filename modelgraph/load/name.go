package load

import (
	"path/filepath"
	"strings"
)

// isName reports whether text can be NAME or ORG/NAME of a model. It has only letters that Hugging
// Face and ModelScope allow, and no known file ending.
func isName(text string) bool {
	parts := strings.Split(text, "/")
	if len(parts) > 2 || formOf(text) != "" {
		return false
	}
	for _, ending := range []string{".json", ".safetensors"} {
		if strings.HasSuffix(strings.ToLower(text), ending) {
			return false
		}
	}
	for _, part := range parts {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.Contains(part, "--") || strings.Contains(part, "..") || strings.Trim(part, nameLetters) != "" {
			return false
		}
	}
	return true
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// lastPart returns NAME of ORG/NAME.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// home returns a folder below the user's home, or "" if there is none.
func home(env func(string) string, parts ...string) string {
	dir := env("HOME")
	if dir == "" {
		dir = env("USERPROFILE")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

// expand replaces a leading ~, as huggingface_hub does.
func expand(dir string, env func(string) string) string {
	if dir == "~" || strings.HasPrefix(dir, "~/") {
		return home(env, strings.TrimPrefix(dir[1:], "/"))
	}
	return dir
}
