package program

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a file, so that memory which is allocated by its numbers stays small compared with the
// file. A micro-batch or a sequence is only a number: no array is as long as the largest of them.
const (
	// MaxBytes bounds a program's file: a million instructions take 100 MB.
	MaxBytes = 1 << 30

	maxNumber  = 1 << 62 // offset + bytes stay below 2^63
	maxIndex   = 1<<31 - 1
	maxSlots   = 1 << 20
	maxDevices = 1 << 16
	maxStreams = 1 << 16 // of a device
)

// isName reports whether a name has only letters, digits, dots, underscores and brackets.
func isName[text ~string | ~[]byte](name text) bool {
	for i := range len(name) {
		switch char := name[i]; {
		case 'a' <= char && char <= 'z', 'A' <= char && char <= 'Z', '0' <= char && char <= '9':
		case char == '.', char == '_', char == '[', char == ']':
		default:
			return false
		}
	}
	return len(name) > 0
}

// isObject reports whether a buffer or a routine can have a name. In an instruction it must be
// neither "after", the word before the waits, nor a micro-batch.
func isObject[text ~string | ~[]byte](name text) bool {
	return isName(name) && string(name) != "after" && !isMicroBatch(name)
}

// isChannel reports whether a channel can have a name: it has no dots.
func isChannel[text ~string | ~[]byte](name text) bool {
	return isName(name) && strings.IndexByte(string(name), '.') < 0
}

// isMicroBatch reports whether a word is mbK.
func isMicroBatch[text ~string | ~[]byte](word text) bool {
	if len(word) < 3 || word[0] != 'm' || word[1] != 'b' {
		return false
	}
	for i := 2; i < len(word); i++ {
		if word[i] < '0' || word[i] > '9' {
			return false
		}
	}
	return true
}

// number reads a decimal number below limit.
func number[text ~string | ~[]byte](word text, limit int64) (int64, error) {
	value := int64(0)
	for i := range len(word) {
		digit := word[i] - '0'
		if digit > 9 {
			return 0, wanted(word, "a decimal number")
		}
		if value = 10*value + int64(digit); value >= limit || value >= maxNumber {
			return 0, wanted(word, fmt.Sprintf("a number below %d", min(limit, maxNumber)))
		}
	}
	if len(word) == 0 {
		return 0, wanted(word, "a decimal number")
	}
	return value, nil
}

// wanted is the error for a wrong word.
func wanted[text ~string | ~[]byte](word text, what string) error {
	if len(word) == 0 {
		return fmt.Errorf("the line ends: want %s", what)
	}
	return fmt.Errorf("%s: want %s", quoted(string(word)), what)
}

// quoted returns a word for an error, only its beginning if it is long.
func quoted(word string) string {
	const most = 60
	if len(word) <= most {
		return strconv.Quote(word)
	}
	end := most
	for end > 0 && !utf8.RuneStart(word[end]) {
		end--
	}
	return strconv.Quote(word[:end] + "…")
}
