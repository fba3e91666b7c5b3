package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// oddValues lists values that replace a value of a file.
var oddValues = []string{
	"null", "true", "false", "0", "-1", "1", "3", "0.5", "-0.0", "1e400", "1e308", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
	"18446744073709551616", "1099511627776", "1099511627777", `""`, `"x"`, `"\n"`, `"a\nb"`, `"\u0000"`, `"\u202e"`, `"../../x"`, `"/etc/passwd"`, `"auto"`, `"cpu"`, `"cuda:1"`,
	`"` + "\u00e9" + `"`, "[]", "{}", "[0]", "[[]]", `{"a":1}`, `[null]`, "NaN", "Infinity", "01", `"\ud800"`, "[1,2,3,4,5,6,7,8,9]",
}

// damaged returns a file with one to three faults, mostly with one.
func (d *damage) damaged(data []byte, isJSON bool) []byte {
	for range []int{1, 1, 1, 2, 3}[d.random.IntN(5)] {
		if isJSON && d.random.Float64() < 0.85 {
			if next, ok := d.damagedValue(data); ok {
				data = next
				continue
			}
		}
		data = d.damagedBytes(data)
	}
	return data
}

// damagedBytes cuts, doubles, moves and changes bytes.
func (d *damage) damagedBytes(data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) == 0 {
		return []byte("{")
	}
	at := d.random.IntN(len(data))
	end := min(len(data), at+1+d.random.IntN(16))
	switch d.random.IntN(9) {
	case 0:
		return data[:at]
	case 1:
		return data[at:]
	case 2:
		data[at] ^= 1 << d.random.IntN(8)
	case 3:
		data[at] = byte(d.random.IntN(256))
	case 4:
		return slices.Delete(data, at, end)
	case 5:
		return slices.Insert(data, at, bytes.Clone(data[at:end])...)
	case 6:
		odd := [][]byte{{0}, {0xff, 0xfe}, []byte("\ufeff"), []byte("\r\n"), []byte("{"), []byte("]"), []byte(`"`), []byte("\\u"), []byte("-"), []byte("e999"), bytes.Repeat([]byte("["), 20000)}
		return slices.Insert(data, at, odd[d.random.IntN(len(odd))]...)
	case 7:
		for i := at; i < end; i++ {
			if data[i] >= '0' && data[i] <= '9' {
				data[i] = byte('0' + d.random.IntN(10))
			}
		}
	default:
		return append(data, data[at:]...)
	}
	return data
}

// damagedValue changes one value, key or element of a JSON file; false if there is none.
func (d *damage) damagedValue(data []byte) ([]byte, bool) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var document any
	if decoder.Decode(&document) != nil {
		return nil, false
	}
	var places []func() // each damages one place
	d.collect(&document, &places)
	places[d.random.IntN(len(places))]()
	text, err := json.Marshal(document)
	return text, err == nil
}

// collect lists the places below a value that can be damaged.
func (d *damage) collect(value *any, places *[]func()) {
	*places = append(*places, func() { *value = d.odd(*value) })
	switch inner := (*value).(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(inner))
		for _, name := range names {
			child := inner[name]
			var below []func()
			d.collect(&child, &below)
			for _, change := range below {
				*places = append(*places, func() { change(); inner[name] = child })
			}
			*places = append(*places, func() { d.member(inner, name, names) })
		}
	case []any:
		for i := range inner {
			d.collect(&inner[i], places)
		}
		*places = append(*places, func() { *value = d.elements(inner) })
	}
}

// member renames, drops, swaps or adds a member of an object.
func (d *damage) member(object map[string]any, name string, names []string) {
	other := names[d.random.IntN(len(names))]
	switch d.random.IntN(5) {
	case 0:
		delete(object, name)
	case 1:
		object[name], object[other] = object[other], object[name]
	case 2:
		object[other+"x"] = object[name]
		delete(object, name)
	case 3:
		object["unknown\n$(x)"] = object[name]
	default:
		object[name] = object[other]
	}
}

func (d *damage) elements(list []any) []any {
	if len(list) == 0 {
		return []any{json.Number("1")}
	}
	at := d.random.IntN(len(list))
	switch d.random.IntN(4) {
	case 0:
		return slices.Delete(slices.Clone(list), at, at+1)
	case 1:
		return append(slices.Clone(list), list[at])
	case 2:
		list = slices.Clone(list)
		slices.Reverse(list)
		return list
	default:
		return list[:at]
	}
}

// odd returns a value near the given one, or a very different one.
func (d *damage) odd(value any) any {
	if number, ok := value.(json.Number); ok && d.random.Float64() < 0.5 {
		n, err := number.Float64()
		if err == nil {
			near := []float64{n + 1, n - 1, -n, n * 2, n / 2, n * 1e6, n + 0.5}
			return json.Number(fmt.Sprint(near[d.random.IntN(len(near))]))
		}
	}
	return json.RawMessage(oddOrNull(oddValues[d.random.IntN(len(oddValues))]))
}

// oddOrNull returns a text that Go's own encoder would refuse as a JSON string.
func oddOrNull(text string) []byte {
	if json.Valid([]byte(text)) {
		return []byte(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return []byte("null")
	}
	return quoted
}
