package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	codeSpan    = regexp.MustCompile("`+[^`]+`+")
	linkText    = regexp.MustCompile(`!?\[([^\]]*)\](?:\([^)]*\))?`)
	address     = regexp.MustCompile(`https?://\S+`)
	verbs       = regexp.MustCompile(`%[-+# 0]*[\d.]*[a-zA-Z]`)
	stops       = regexp.MustCompile(`[.!?]["'’”)*]*\s+`)
	wordLike    = regexp.MustCompile(`[\p{L}\p{N}][\p{L}\p{N}'’.\-–]*`)
	inBrackets  = regexp.MustCompile(`\(([^()]*)\)`)
	joinMarks   = regexp.MustCompile(`[;:](?:\s|$)`)
	headless    = regexp.MustCompile(`(?i)\b(?:what|who) (?:is|are|was|it|they|a|the|each|every|no) |\b(?:those|that|ones?|all) (?:that|of|which|who) `)
	opensClause = regexp.MustCompile(`^(?:What|Who|Whose) [^?]*$`)
	opensOf     = regexp.MustCompile(`^Of (?:a|an|the|its|their|what|any|every|each|all|those|these|two|\d)`)
	inverted    = regexp.MustCompile(`^(?:Of|Beside|Behind|Below|Between|Under|Above|On|In|From|With|Without) [^,.;:()]{0,60}?\b(?:stands?|lies?|comes?|goes?) `)
	opensWhere  = regexp.MustCompile(`^(?:Where|Only where|Save where) `)
	whereIf     = regexp.MustCompile(`(?i)\bwhere (?:it|they|there|one|none|nothing|no|a|the|all|any|both|not) (?:[a-z-]+ ){0,4}?(?:is|are|was|has|have|does|do|fits?|can|cannot|needs)\b`)
	passive     = regexp.MustCompile(`(?i)\b(?:is|are|was|were|be|been|being)\s+(?:not |never |also |then |only |always )?(?:[a-z]{3,}ed|kept|held|drawn|given|made|done|read|written|taken|found|known|shown|sent|left|seen|built|run|met|put|split|cut|chosen|lost|set|bound)\b`)
	shortened   = regexp.MustCompile(`(?i)\b(?:e\.g|i\.e|etc|vs|cf|no|fig)\.\s$`)
)

// plain replaces markup: a code span or an address counts as one word.
func plain(text string) string {
	text = codeSpan.ReplaceAllString(text, "CODE")
	text = linkText.ReplaceAllString(text, "$1")
	text = address.ReplaceAllString(text, "URL")
	text = verbs.ReplaceAllString(text, "X")
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "*", "")), " ")
}

func countWords(text string) int { return len(wordLike.FindAllString(text, -1)) }

// sentence is a sentence with its first line.
type sentence struct {
	text string
	line int
}

func sentences(one block) (out []sentence) {
	rest, line := one.text, one.line
	for rest != "" {
		end := len(rest)
		for _, at := range stops.FindAllStringIndex(rest, -1) {
			next, _ := utf8.DecodeRuneInString(rest[at[1]:])
			if !shortened.MatchString(rest[:at[1]]) && !unicode.IsLower(next) {
				end = at[1]
				break
			}
		}
		if text := strings.TrimSpace(rest[:end]); text != "" {
			out = append(out, sentence{text, line})
		}
		line += strings.Count(rest[:end], "\n")
		rest = rest[end:]
	}
	return out
}

// block applies the rules of a block, then those of its sentences.
func (check *checker) block(file string, one block) {
	limit := check.Limits
	report := func(rule, advice string) { check.add(file, one.line, one.kind, rule, advice, one.text) }
	switch one.kind {
	case "heading":
		if countWords(plain(one.text)) > limit["heading_words"] || strings.ContainsAny(one.text[max(0, len(one.text)-1):], "?.!") {
			report("heading", fmt.Sprintf("name a task or a topic in at most %d words", limit["heading_words"]))
		}
	case "flag":
		if utf8.RuneCountInString(one.text) > limit["flag_characters"] {
			report("flag-help", fmt.Sprintf("shorten to %d characters; details belong in a help topic", limit["flag_characters"]))
		}
	case "help":
		for line := range strings.Lines(one.text) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > limit["help_columns"] {
				report("help-width", fmt.Sprintf("wrap at %d columns: %s", limit["help_columns"], strings.TrimSpace(line)))
			}
		}
	case "message":
		if countWords(plain(one.text)) > limit["message_words"] {
			report("message-length", fmt.Sprintf("say what failed in %d words; advice goes on the next line", limit["message_words"]))
		}
	}
	if one.kind == "help" {
		for _, part := range paragraphs(one) {
			check.block(file, part)
		}
		return
	}
	for _, part := range sentences(one) {
		check.sentence(file, one.kind, part)
	}
}

// paragraphs splits a help text. Indented lines are rows of tables or examples; only their words
// are checked.
func paragraphs(help block) (out []block) {
	open := false // the last block is a paragraph that may continue
	for i, line := range strings.Split(help.text, "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			open = false
		case strings.HasPrefix(line, " "):
			out, open = append(out, block{"row", help.line + i, line}), false
		case open:
			out[len(out)-1].text += "\n" + line
		default:
			out, open = append(out, block{"paragraph", help.line + i, line}), true
		}
	}
	return out
}

func (check *checker) sentence(file, kind string, part sentence) {
	text := plain(part.text)
	report := func(rule, advice string) { check.add(file, part.line, kind, rule, advice, part.text) }
	for _, banned := range check.words {
		if found := banned.match.FindString(text); found != "" {
			report("word", fmt.Sprintf("%q → %s", found, banned.usual))
		}
	}
	count := countWords(text)
	if kind == "heading" || kind == "row" || count < 5 {
		return
	}
	if count > check.Limits["sentence_words"] && kind != "message" {
		report("long", fmt.Sprintf("%d words: split it", count))
	}
	switch {
	case opensClause.MatchString(text) && !strings.HasPrefix(text, "What to "):
		report("inversion", "name the subject: do not start with a What or Who clause")
	case opensOf.MatchString(text), inverted.MatchString(text):
		report("inversion", "put the subject first")
	case opensWhere.MatchString(text), whereIf.MatchString(text):
		report("where", "start a condition with if or when")
	}
	check.punctuation(kind, text, count, report)
}

func (check *checker) punctuation(kind, text string, count int, report func(rule, advice string)) {
	limit := check.Limits
	asides := inBrackets.FindAllStringSubmatch(text, -1)
	if len(asides) > limit["parentheses"] {
		report("parentheses", "move asides into sentences of their own")
	}
	for _, aside := range asides {
		if countWords(aside[1]) > limit["parenthesis_words"] {
			report("parentheses", "move this aside into a sentence of its own")
		}
	}
	if found := len(joinMarks.FindAllString(text, -1)); found > limit["joins"] && kind != "paragraph" && kind != "message" {
		report("joins", fmt.Sprintf("%d colons and semicolons: split it", found))
	}
	if found := len(headless.FindAllString(text, -1)); found > limit["headless"] {
		report("headless", "name the things that 'what' and 'that' refer to")
	}
	if strings.Count(text, ",") > limit["commas"] && kind == "text" && count > 25 {
		report("commas", "use a list")
	}
}
