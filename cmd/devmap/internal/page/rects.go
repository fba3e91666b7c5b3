package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/executor/program"
)

// arena is the map of a device's arena, with at most so many rectangles.
func (page *Page) arena(of *simulation, number int, peak int64, most int) arena {
	device, end := &of.Devices[number], of.at(of.result.Makespan)
	out := arena{Device: int(device.ID), SizeBytes: device.Arena, Makespan: end, Peak: peak}
	var all []rect
	for i := range of.Buffers {
		if buffer := &of.Buffers[i]; int(buffer.Device) == number && buffer.Class.Throughout() {
			all = append(all, rect{buffer, buffer.Offset, buffer.Offset + buffer.Bytes, 0, end, 1})
		}
	}
	for _, life := range of.result.Devices[number].Lives {
		buffer := &of.Buffers[life.Buffer]
		if from, to := of.at(life.From), of.at(life.To); to > from {
			all = append(all, rect{buffer, buffer.Offset, buffer.Offset + buffer.Bytes, from, to, 1})
		}
	}
	joined := joinRects(all, most)
	if len(joined) < len(all) {
		out.Joined = len(all)
	}
	for _, one := range joined {
		kind := slices.Index(page.Arenas.Kinds, string(one.Class))
		if kind < 0 {
			kind = len(page.Arenas.Kinds)
			page.Arenas.Kinds = append(page.Arenas.Kinds, string(one.Class))
			page.Arenas.Categories = append(page.Arenas.Categories, ofClass[one.Class])
		}
		name := one.Name
		if one.count > 1 {
			name = fmt.Sprintf("%s and %d more", one.Name, one.count-1)
		}
		into := &out.Rects
		into.Address, into.Bytes = append(into.Address, one.low), append(into.Bytes, one.high-one.low)
		into.From, into.To = append(into.From, one.from), append(into.To, one.to)
		into.Kind, into.Name = append(into.Kind, kind), append(into.Name, page.name(name))
	}
	return out
}

// rect is a buffer's place and time, or that of several that touch.
type rect struct {
	*program.Buffer
	low, high, from, to int64
	count               int
}

// joinRects joins rectangles of one class until there are at most so many: neighbours in the arena with
// equal times, then lives of one place that follow one another, the shortest gaps first.
func joinRects(all []rect, most int) []rect {
	if len(all) <= most {
		return all
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b rect) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.low, b.low))
	})
	all = merged(all, func(last, next *rect) bool {
		return last.from == next.from && last.to == next.to && last.high == next.low
	})
	slices.SortStableFunc(all, func(a, b rect) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high), cmp.Compare(a.from, b.from))
	})
	for gap := int64(1); len(all) > most && gap < 1<<60; gap *= 4 {
		all = merged(all, func(last, next *rect) bool {
			return last.low == next.low && last.high == next.high && next.from-last.to <= gap
		})
	}
	for size := int64(1 << 10); len(all) > most && size < 1<<60; size *= 4 {
		all = merged(all, func(last, next *rect) bool { return next.low-last.high <= size && next.high-last.low <= size })
	}
	slices.SortStableFunc(all, func(a, b rect) int { return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.from, b.from)) })
	for len(all) > most {
		half := halved(all)
		if len(half) == len(all) { // one of each class
			break
		}
		all = half
	}
	return all
}

// halved joins neighbours of one class, two by two.
func halved(all []rect) (half []rect) {
	for i := 0; i < len(all); i++ {
		one := all[i]
		if i+1 < len(all) && all[i+1].Class == one.Class {
			i++
			one.join(&all[i])
		}
		half = append(half, one)
	}
	return half
}

// merged joins neighbours of one class in a list.
func merged(all []rect, join func(last, next *rect) bool) (out []rect) {
	for i := range all {
		next := &all[i]
		if len(out) > 0 {
			if last := &out[len(out)-1]; last.Class == next.Class && join(last, next) {
				last.join(next)
				continue
			}
		}
		out = append(out, *next)
	}
	return out
}

// join makes a rectangle cover another.
func (one *rect) join(other *rect) {
	one.low, one.high = min(one.low, other.low), max(one.high, other.high)
	one.from, one.to = min(one.from, other.from), max(one.to, other.to)
	one.count += other.count
}
