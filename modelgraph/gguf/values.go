package gguf

import (
	"slices"
)

// Limits of metadata. Those of the format are higher; no published file reaches these.
const (
	maxKeys       = 65_536
	maxKeyBytes   = 65_535  // llama.cpp's own limit is 2^30
	maxTextBytes  = 1 << 30 // gguf.cpp: GGUF_MAX_STRING_LENGTH
	maxArrayItems = 1 << 30 // gguf.cpp: GGUF_MAX_ARRAY_ELEMENTS
	shortText     = 4096    // bytes; longer ones (chat templates) are checked, and not kept
	shortItems    = 4096    // longer arrays (tokens) keep their length alone
)

// value is one value of the metadata.
type value struct {
	kind    kind
	text    string  // of a string
	numbers []int64 // of whole numbers and truth values, one or an array
	items   int64   // of an array
}

// readValues reads the metadata. It refuses empty and repeated keys.
func readValues(from *source, count int64) map[string]value {
	values := make(map[string]value, min(count, 256))
	for range count {
		key := from.text("the name of a key", maxKeyBytes)
		place := "key " + quoted(key)
		if _, twice := values[key]; twice {
			from.fail(place, "it is there twice")
		}
		if key == "" {
			from.fail("", "a key has no name")
		}
		read := value{kind: kind(from.u32())}
		switch {
		case read.kind == kindString:
			read.text = readText(from, place)
		case read.kind == kindArray:
			readArray(from, place, &read)
		case read.kind.width() > 0:
			if number, whole := from.number(read.kind); whole {
				read.numbers = []int64{number}
			}
		default:
			from.fail(place, "type %d of its value is unknown", read.kind)
		}
		if from.err != nil {
			return nil
		}
		values[key] = read
	}
	return values
}

// readText reads a string, and keeps a short one.
func readText(from *source, place string) string {
	length := from.length(place, "bytes of text", 1, maxTextBytes)
	if length > shortText {
		from.skip(length)
		return ""
	}
	buffer := make([]byte, length)
	from.bytes(buffer)
	return string(buffer)
}

// readArray reads an array, and keeps a short one of numbers.
func readArray(from *source, place string, into *value) {
	of := kind(from.u32())
	if of.width() == 0 && of != kindString {
		from.fail(place, "type %d of its items is unknown, or arrays lie in arrays", of)
		return
	}
	least := of.width()
	if of == kindString {
		least = 8 // its length
	}
	into.items = from.length(place, "items", least, maxArrayItems)
	switch {
	case of == kindString:
		for range into.items {
			from.skip(from.length(place, "bytes of text", 1, maxTextBytes))
			if from.err != nil {
				return
			}
		}
	case into.items > shortItems:
		from.skip(into.items * least)
	default:
		into.numbers = make([]int64, into.items)
		for i := range into.numbers {
			number, whole := from.number(of)
			into.numbers[i] = number
			if !whole {
				into.numbers = nil
				from.skip((into.items - int64(i) - 1) * least)
				return
			}
		}
	}
}

// Text returns the string of a key, empty if there is none. A key of the architecture has no
// prefix: "block_count" is llama.block_count.
func (file *File) Text(key string) string { return file.of(key).text }

// Number returns the whole number or the truth value (0 or 1) of a key, or absent if there is none.
func (file *File) Number(key string, absent int64) int64 {
	if found := file.of(key); found.kind != kindArray && len(found.numbers) == 1 {
		return found.numbers[0]
	}
	return absent
}

// Numbers returns the numbers of a key for each of count layers. One number counts for all; nil if
// the key is absent or has numbers for fewer layers.
func (file *File) Numbers(key string, count int64) []int64 {
	found := file.of(key)
	switch {
	case len(found.numbers) == 1 && found.kind != kindArray:
		return slices.Repeat(found.numbers, int(count))
	case int64(len(found.numbers)) >= count:
		return found.numbers[:count]
	}
	return nil
}

// Items returns the length of an array.
func (file *File) Items(key string) int64 { return file.of(key).items }

// Has reports whether the metadata has a key.
func (file *File) Has(key string) bool { return file.of(key).known() }

func (value value) known() bool { return value.kind != 0 || value.numbers != nil }

func (file *File) of(key string) value {
	if found, is := file.values[file.Architecture+"."+key]; is {
		return found
	}
	return file.values[key]
}
