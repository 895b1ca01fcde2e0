package lastgood

import (
	"maps"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// Names are the Names of an answer.
type Names map[string]discovery.Name

// Since returns the names that were confirmed at the given time or later, where those that
// say nothing of it were confirmed until the other.
func (n Names) Since(earliest, otherwise time.Time) Names {
	n = maps.Clone(n)
	for name, known := range n {
		if known.Until.IsZero() {
			known.Until = otherwise
		}
		if n[name] = known; known.Until.Before(earliest) {
			delete(n, name)
		}
	}
	return n
}

// orLater returns n, where each name has what other says of it if that was so until later. What
// says nothing of it is so still in n, and in other was so at the given time.
func (n Names) orLater(other Names, confirmed time.Time) Names {
	n = maps.Clone(n)
	for name, known := range other.Since(time.Time{}, confirmed) {
		if mine := n[name].Until; !mine.IsZero() && mine.Before(known.Until) {
			n[name] = known
		}
	}
	return n
}

// size returns about how many bytes n takes.
func (n Names) size() (bytes int) {
	const name, address = 100, 20
	for of, known := range n {
		bytes += name + len(of)
		for _, a := range known.Addresses {
			bytes += address + len(a)
		}
	}
	return bytes
}
