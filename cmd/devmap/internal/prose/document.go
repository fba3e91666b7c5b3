package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// block is one piece of text: a paragraph, a list item, a heading or a cell.
type block struct {
	kind string // text, heading, cell, flag, help, paragraph, row, message, comment
	line int
	text string
}

var (
	fenceLine = regexp.MustCompile("^\\s*```")
	itemStart = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	ruleLine  = regexp.MustCompile(`^\s*\|[\s:|-]+$`)
	cellText  = regexp.MustCompile(`(?:[^|\\]|\\.)+`)
)

// document checks a Markdown file.
func (check *checker) document(name, source string) {
	if limit, count := check.sizeLimit(name), utf8.RuneCountInString(source); limit > 0 && count > limit {
		check.add(name, 1, "text", "size", fmt.Sprintf("the page has %d characters, the limit is %d", count, limit), name)
	}
	var lengths []int
	passives := 0
	for _, one := range markdown(source) {
		check.block(name, one)
		if one.kind != "text" {
			continue
		}
		for _, sentence := range sentences(one) {
			text := plain(sentence.text)
			if count := countWords(text); count >= 4 {
				lengths = append(lengths, count)
				if passive.MatchString(text) {
					passives++
				}
			}
		}
	}
	if len(lengths) < 10 {
		return
	}
	slices.Sort(lengths)
	for _, figure := range []struct {
		rule        string
		value, most int
	}{
		{"median", lengths[len(lengths)/2], check.Limits["median_words"]},
		{"p95", lengths[len(lengths)*95/100], check.Limits["p95_words"]},
		{"passive", 100 * passives / len(lengths), check.Limits["passive_percent"]},
	} {
		if figure.value > figure.most {
			check.add(name, 1, "text", figure.rule, fmt.Sprintf("%d, the limit is %d", figure.value, figure.most), name)
		}
	}
}

// sizeLimit returns the limit of the page, or of the nearest folder with one; 0: none.
func (check *checker) sizeLimit(name string) int {
	longest, limit := -1, 0
	for prefix, most := range check.Characters {
		if (prefix == name || strings.HasSuffix(prefix, "/") && strings.HasPrefix(name, prefix)) && len(prefix) > longest {
			longest, limit = len(prefix), most
		}
	}
	return limit
}

// markdown splits a Markdown file into blocks, without code, HTML and front matter.
func markdown(source string) (blocks []block) {
	var open *block
	flush := func() {
		if open != nil {
			blocks = append(blocks, *open)
		}
		open = nil
	}
	code := false
	for i, line := range strings.Split(source, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fenceLine.MatchString(line):
			flush()
			code = !code
		case code:
		case trimmed == "", strings.HasPrefix(trimmed, "<"), ruleLine.MatchString(line):
			flush()
		case strings.HasPrefix(trimmed, "#"):
			flush()
			blocks = append(blocks, block{"heading", i + 1, strings.TrimLeft(trimmed, "# ")})
		case strings.HasPrefix(trimmed, "|"):
			flush()
			for _, cell := range cellText.FindAllString(trimmed, -1) {
				blocks = append(blocks, block{"cell", i + 1, strings.TrimSpace(cell)})
			}
		case itemStart.MatchString(line):
			flush()
			open = &block{"text", i + 1, itemStart.ReplaceAllString(line, "")}
		case open == nil:
			open = &block{"text", i + 1, trimmed}
		default:
			open.text += "\n" + trimmed
		}
	}
	flush()
	return blocks
}
