// Package hostroom says how much memory of the host this process may still take.
package hostroom

// Room is a limit to what the process may take, and what is left of it.
type Room struct {
	Place string // as messages name it: this machine's memory
	Free  int64  // bytes; below zero where the limit is passed already
}

// Tightest is the room that has least left, or otherwise where none has less than that.
func Tightest(rooms []Room, fallback Room) Room {
	for _, room := range rooms {
		if room.Free < fallback.Free {
			fallback = room
		}
	}
	return fallback
}
